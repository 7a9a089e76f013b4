"""`python -m tests.fuzz [--seconds N] [READER]...`: every reader for its share of the time, then a table.

The exit code is 1 if one failed; the failing input is in `.tools/fuzz`, named in the table.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.readers import READERS

CRASHES = Path(".tools/fuzz")
_STARTING = 4
"""Seconds that a process takes to instrument what it imports."""


@dataclass(frozen=True)
class Run:
    """What one process of the fuzzer said; `crash` is the file with the input, and `said` the last lines
    before it."""

    name: str
    executions: int
    features: int
    slowest: int
    memory: int
    crash: Path | None
    said: str

    def __str__(self) -> str:
        figures = f"{self.executions:9,} {self.features:8,} {self.slowest:7} {self.memory:5}"
        return f"{figures}  {self.name}{f'  FAILED: {self.crash}' if self.crash else ''}"


def _run(name: str, seconds: int) -> Run:
    prefix = CRASHES / f"{name.replace(' ', '-').replace('.', '-')}-"
    before = set(CRASHES.glob(f"{prefix.name}*"))  # another run may fail at the same time
    with tempfile.TemporaryDirectory() as place:
        corpus = Path(place) / "corpus"
        corpus.mkdir()
        command = [sys.executable, "-m", "tests.fuzz.one", name, str(seconds), str(corpus), str(prefix)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = done.stdout + done.stderr
    left = sorted(set(CRASHES.glob(f"{prefix.name}*")) - before)
    crash = left[0] if left else prefix.with_name(f"{prefix.name}output") if done.returncode else None
    if crash is not None and not left:
        crash.write_text(said, encoding="utf-8")
    features = re.findall(r" ft: (\d+)", said)
    return Run(
        name,
        _figure(said, "number_of_executed_units"),
        int(features[-1]) if features else 0,
        _figure(said, "slowest_unit_time_sec"),
        _figure(said, "peak_rss_mb"),
        crash,
        "\n".join(line for line in said.splitlines() if not line.startswith(("#", "INFO", "stat::")))[-3000:],
    )


def _figure(said: str, name: str) -> int:
    found = re.search(rf"stat::{name}:\s+(\d+)", said)
    return int(found[1]) if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=int, default=600, help="for all readers together")
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"one of {', '.join(READERS)}")
    asked = parser.parse_args()
    if unknown := set(asked.readers) - set(READERS):
        parser.error(f"no reader {', '.join(unknown)}; there are {', '.join(READERS)}")
    names = asked.readers or list(READERS)
    CRASHES.mkdir(parents=True, exist_ok=True)
    share = max(2, asked.seconds // len(names) - _STARTING)
    print(f"{'inputs':>9} {'features':>8} {'slowest':>7} {'MiB':>5}  reader, {share} s each", flush=True)
    runs = []
    for name in names:
        runs.append(_run(name, share))
        print(runs[-1], flush=True)
    failed = [run for run in runs if run.crash]
    for run in failed:
        print(f"\n{run.name}: the input lies in {run.crash}\n{run.said}")
    total = sum(run.executions for run in runs)
    print(f"{total:,} inputs, {len(failed)} of {len(runs)} readers failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
