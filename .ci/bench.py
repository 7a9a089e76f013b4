"""What the commands cost: CPU seconds (user and system, children included) and peak memory, the median of five runs."""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

COMMANDS = (
    "modelyard catalog --output json",
    "modelyard validate --env prod",
    "modelyard plan --env prod",
    "modelyard explain qwen3-32b-fp8 --env prod",
    "modelyard render --env prod --out .tools/bench",
)
RUNS = 5


def measure(command: str) -> tuple[float, float]:
    """CPU seconds and peak MiB of one run; the kernel counts for exactly this child."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        words = command.split()
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1), (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 2)]
        child = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"{command} ended with {code}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    print(f"{'CPU s':>6} {'MiB':>5}  command")
    for command in COMMANDS:
        runs = [measure(command) for _ in range(RUNS)]
        seconds, memory = (statistics.median(values) for values in zip(*runs, strict=True))
        print(f"{seconds:6.2f} {memory:5.0f}  {command}")


if __name__ == "__main__":
    main()
