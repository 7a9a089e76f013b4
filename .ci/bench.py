"""Cost of the commands: CPU seconds (user and system, including children) and peak memory, the median of five
runs.

Then the cost of a project of a thousand files, and of planning by number of models: CPU seconds of `plan`
alone, the median of five fresh processes, over pools of every accelerator in the catalogue. `bench.py COUNT`
is one such run.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from modelyard.checkpoints import architectures
from modelyard.hardware import accelerators, types_with
from modelyard.planning import plan
from modelyard.spec import Catalogue, Environment, Model

COMMANDS = (
    "modelyard --version",
    "modelyard catalog --output json",
    "modelyard validate --env prod",
    "modelyard plan --env prod",
    "modelyard explain qwen3-32b-fp8 --env prod",
    "modelyard render --env prod --out .tools/bench",
)
RUNS = 5

SIZES = (10, 100, 1000)
REGION = "us-east-1"  # offers most of the catalogue


def measure(command: str) -> tuple[float, float]:
    """CPU seconds and peak MiB of one run, measured by the kernel for this child only."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        words = command.split()
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1), (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 2)]
        child = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"{command} ended with {code}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def thousand_files() -> None:
    """A project of a thousand model files of three lines: planned, rendered, and rendered again after one of
    them changed."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("models", "environments"):
            (folder / name).mkdir()
        (folder / "environments/bench.yaml").write_text(
            f'account: "123456789012"\nregion: {REGION}\navailabilityZones: [{REGION}a, {REGION}b]\n'
            "pools:\n  g6e: {accelerator: l40s, limit: 1000000}\n",
            encoding="utf-8",
        )
        lines = "model: hf://Qwen/Qwen3-8B\naccelerator: l40s\nreplicas: {min: 2, max: 4}\n"
        for number in range(1000):
            (folder / f"models/model-{number:04}.yaml").write_text(lines, encoding="utf-8")
        at = f"--env bench --models {folder}/models --environments {folder}/environments"
        plans = [measure(f"modelyard plan {at}")[0] for _ in range(RUNS)]
        render = f"modelyard render {at} --out {folder}/dist"
        first = measure(render)[0]
        again = []
        for replicas in range(3, 3 + RUNS):
            changed = lines.replace("min: 2, max: 4", f"min: {replicas}, max: 9")
            (folder / "models/model-0500.yaml").write_text(changed, encoding="utf-8")
            again.append(measure(render)[0])
    second = statistics.median(again)
    print(f"\n{'CPU s':>6}  a thousand model files of three lines")
    print(f"{statistics.median(plans):6.2f}  plan\n{first:6.2f}  render")
    print(f"{second:6.2f}  render after one changed: {second / first:.2f} of the first")


def whole_catalogue() -> Environment:
    """A pool for every accelerator, with every instance type of the region."""
    kinds = [kind for kind in accelerators() if any(REGION in t.offered_regions for t in types_with(kind))]
    return Environment.model_validate(
        {
            "name": "bench",
            "account": "123456789012",
            "region": REGION,
            "availabilityZones": [f"{REGION}a", f"{REGION}b", f"{REGION}c"],
            "pools": {kind: {"accelerator": kind, "limit": 1_000_000} for kind in kinds},
            "secrets": {"hf-token": "bench/hf-token"},
        }
    )


def generated(count: int) -> Catalogue:
    """Models of every known architecture in turn; a third use `accelerator: auto`."""
    chance = random.Random(count)
    ids, kinds = sorted(architectures().repositories()), sorted(whole_catalogue().pools)

    def names() -> Iterator[tuple[str, Model]]:
        for number in range(count):
            name, low = f"model-{number:04}", chance.randint(0, 3)
            kind = "auto" if number % 3 == 0 else f"{chance.choice(kinds)}:{chance.choice((1, 1, 2, 4, 8))}"
            lines = {
                "name": name,
                "model": {"uri": "hf://bench/weights", "architecture": ids[number % len(ids)]},
                "accelerator": kind,
                "replicas": {"min": low, "max": low + chance.randint(1, 3)},
                "engine": {"maxModelLen": 1 << chance.randint(10, 14)} if number % 2 else {},
            }
            yield name, Model.model_validate(lines)

    return Catalogue(MappingProxyType(dict(names())))


def planning(count: int) -> tuple[float, int]:
    """CPU seconds of planning `count` models, including reading tables, and how many are deployable."""
    catalogue, environment = generated(count), whole_catalogue()
    began = time.process_time()
    planned = plan(catalogue, environment)
    return time.process_time() - began, len(planned.models)


def afresh(count: int) -> tuple[float, int]:
    """The median of `planning` over fresh processes."""
    command = [sys.executable, __file__, str(count)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(RUNS)]
    seconds, run = zip(*(line.split() for line in runs), strict=True)
    return statistics.median(map(float, seconds)), int(run[0])


def main() -> None:
    if len(sys.argv) > 1:
        print(*planning(int(sys.argv[1])))
        return
    print(f"{'CPU s':>6} {'MiB':>5}  command")
    for command in COMMANDS:
        runs = [measure(command) for _ in range(RUNS)]
        seconds, memory = (statistics.median(values) for values in zip(*runs, strict=True))
        print(f"{seconds:6.2f} {memory:5.0f}  {command}")
    thousand_files()
    print(f"\n{'CPU s':>6} {'models':>6} {'run':>5}  plan, {len(whole_catalogue().pools)} pools")
    found = {}
    for count in SIZES:
        found[count], able = afresh(count)
        print(f"{found[count]:6.2f} {count:6} {able:5}")
    few, some, many = SIZES
    slopes = [(found[b] - found[a]) / (b - a) for a, b in ((few, some), (some, many))]
    print(
        f"each further model: {1000 * slopes[0]:.2f} ms up to {some}, {1000 * slopes[1]:.2f} ms up to {many}; "
        f"ratio {slopes[1] / slopes[0]:.2f}, linear or better up to 1"
    )


if __name__ == "__main__":
    main()
