"""Cost of synthesis by number of models: CPU seconds of the stacks of one environment, without planning and
rendering, the median of three fresh processes. `bench_synth.py COUNT` is one such run.

Manifests travel as an asset, not inside a template, so the stacks know nothing of models: the ratio should be
1, apart from the asset's files, which are read once.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = (1, 30, 300)
RUNS = 3
ROOT = Path(__file__).parents[1]


def run(count: int) -> float:
    """CPU seconds, including jsii's Node."""
    import aws_cdk as cdk

    from infra.platform import add_platform
    from modelyard.spec import load_environment

    settings, _, findings = load_environment(ROOT / "environments" / "prod.yaml")
    assert settings is not None, findings
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        for number in range(count):
            folder = tree / "models" / f"model-{number}"
            folder.mkdir(parents=True)
            for part in range(11):  # the number of objects per model
                (folder / f"object-{part}.yaml").write_text(f"# {number} {part}\n" * 40, encoding="utf-8")
        flags = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
        before = cpu()
        app = cdk.App(
            outdir=str(Path(scratch) / "out"), context=flags, builtin_cloud_formation_validation=False
        )
        add_platform(app, settings, tree=tree)
        app.synth()
        return cpu() - before


def cpu() -> float:
    """CPU seconds of this process and all descendants: jsii's Node still runs, as a child of its launcher."""
    ticks = os.sysconf("SC_CLK_TCK")
    used: dict[int, float] = {}
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has exited
            continue
        process = int(stat.parent.name)
        parents[process], used[process] = int(fields[1]), (int(fields[11]) + int(fields[12])) / ticks
    return sum(seconds for process, seconds in used.items() if _below(process, os.getpid(), parents))


def _below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process:
        if process == ancestor:
            return True
        process = parents.get(process, 0)
    return False


def main() -> None:
    if len(sys.argv) > 1:
        print(run(int(sys.argv[1])))
        return
    seconds = {}
    for count in SIZES:
        answers = [
            float(
                subprocess.run(
                    [sys.executable, __file__, str(count)], capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(RUNS)
        ]
        seconds[count] = statistics.median(answers)
    print(f"\n{'CPU s':>6} {'models':>7}  synthesis of prod's stacks, median of {RUNS} runs")
    for count, value in seconds.items():
        print(f"{value:6.2f} {count:7}")
    print(f"{SIZES[-1]} models cost {seconds[SIZES[-1]] / seconds[SIZES[0]]:.2f} of {SIZES[0]}")


if __name__ == "__main__":
    main()
