"""Cost of hostile files: time and peak memory of `modelyard validate FILE`, compared with a file of three
lines.

Time is that of the fastest of three runs, memory that of the largest, start-up included, measured by the
kernel for that process. The limits are 1 s of CPU time and 200 MiB; files beyond them are marked, and the run
fails. If a file of three lines takes more than half a second, the limit is twice its time: a busy machine is
slower for every file.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.files import THREE_LINES, write_all

RUNS = 3
MOST_SECONDS = 1.0
MOST_MIB = 200.0


def measure(path: Path, environments: Path) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MiB of one run."""
    words = ["modelyard", "validate", str(path), "--environments", str(environments), "--env", "local"]
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1), (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 2)]
        began = time.perf_counter()
        child = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
        _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def quickest(path: Path, environments: Path) -> tuple[float, float, float]:
    """The fewest seconds, and the most MiB, of several runs."""
    wall, seconds, memory = zip(*(measure(path, environments) for _ in range(RUNS)), strict=True)
    return min(wall), min(seconds), max(memory)


def main() -> None:
    environments = Path("environments").resolve()
    with tempfile.TemporaryDirectory() as place:
        three = Path(place) / "three-lines.yaml"
        three.write_text(THREE_LINES, encoding="utf-8")
        base = quickest(three, environments)
        print(
            f"\n{'wall s':>6} {'CPU s':>6} {'ratio':>5} {'MiB':>5} {'ratio':>5}  "
            f"modelyard validate, quickest of {RUNS} runs; ratios to three lines"
        )
        print(f"{base[0]:6.2f} {base[1]:6.2f} {1:5.1f} {base[2]:5.0f} {1:5.1f}  three lines")
        beyond = []
        for name, path in write_all(Path(place)).items():
            wall, seconds, memory = quickest(path, environments)
            wrong = seconds > max(MOST_SECONDS, 2 * base[1]) or memory > MOST_MIB
            beyond += [name] if wrong else []
            print(
                f"{wall:6.2f} {seconds:6.2f} {seconds / base[1]:5.1f} {memory:5.0f} {memory / base[2]:5.1f}  "
                f"{name.replace('_', ' ')}{' BEYOND THE LIMIT' if wrong else ''}",
                flush=True,
            )
    print(f"{len(beyond)} files beyond {MOST_SECONDS:g} s or {MOST_MIB:g} MiB")
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
