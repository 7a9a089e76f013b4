"""Record of Modelyard's output, to compare two versions of the code byte by byte.

    behaviour.py record FOLDER       rendered trees, answers as JSON and templates of every environment here
    behaviour.py compare OLD NEW     what differs between two records; exit 1 when anything does

`record` uses the command line and `app.py` of the working directory alone, so it can be run in an older
checkout as well. Environments are those that the project ships and those of `tests/fixtures`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TARGETS = ("kubernetes", "compose", "kserve", "sim")
PROJECTS = (".", "tests/fixtures/everything", "tests/fixtures/serving", "tests/fixtures/platforms")
MISTAKEN = ("tests/fixtures/ten_mistakes.yaml", "tests/fixtures/qwen3-vl-8b-24gb.yaml")
_SHOWN = 12  # shown lines per difference
_TRACE = re.compile(r"/tmp/jsii-kernel-\w+")  # jsii's temporary folder, in stack traces


@dataclass(frozen=True)
class Recorded:
    """One command and its output: standard output and exit code go to `answer`, files to where the command
    writes them."""

    command: tuple[str, ...]
    answer: Path
    settings: tuple[tuple[str, str], ...] = ()
    folder: Path = Path()
    places: tuple[tuple[str, str], ...] = ()
    """Paths of this run that are replaced in the record."""

    def run(self) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("MODELYARD_")}
        done = subprocess.run(
            self.command,
            cwd=self.folder,
            env=environ | {"NO_COLOR": "1", "PYTHONPATH": ""} | dict(self.settings),
            capture_output=True,
            text=True,
            check=False,
        )
        self.answer.parent.mkdir(parents=True, exist_ok=True)
        text = f"{done.stdout}{done.stderr}exit {done.returncode}\n"
        for place, name in self.places:
            text = text.replace(place, name)
        self.answer.write_text(text, encoding="utf-8")


def runs(out: Path, root: Path, scratch: Path) -> Iterator[Recorded]:
    """All commands that are recorded for the checkout at `root`."""
    for project in PROJECTS:
        base = root / project
        folders = ("--models", f"{project}/models", "--environments", f"{project}/environments")
        place = out / (base.name if project != "." else "shipped")
        names = sorted(path.stem for path in (base / "environments").glob("*.yaml"))
        models = sorted(path.stem for path in (base / "models").glob("*.yaml"))
        yield Recorded(
            ("modelyard", "validate", "-o", "json", *folders), place / "validate.json", folder=root
        )
        for name in names:
            chosen = (*folders, "--env", name)
            for command in ("plan", "checklist"):
                answer = place / name / f"{command}.json"
                yield Recorded(("modelyard", command, "-o", "json", *chosen), answer, folder=root)
            yield Recorded(("modelyard", "plan", *chosen), place / name / "plan.txt", folder=root)
            for target in TARGETS:
                answer = place / name / f"render-{target}.txt"
                # A relative path, because it appears in the output.
                trees = os.path.relpath(place / name / "trees", root)
                command = ("modelyard", "render", *chosen, "--target", target, "--out", trees)
                yield Recorded(command, answer, folder=root, places=((trees, "TREES"),))
            settings = json.loads((root / "cdk.json").read_text(encoding="utf-8"))["context"] | {"env": name}
            variables = {
                "CDK_OUTDIR": str(place / name / "cdk.out"),
                "CDK_CONTEXT_JSON": json.dumps(settings),
            }
            own = scratch / place.name / name
            yield Recorded(
                (sys.executable, str(root / "app.py")),
                place / name / "synth.txt",
                tuple(variables.items()),
                own,
            )
        for model in models:
            answer = place / "explain" / f"{model}.json"
            chosen = (*folders, "--env", names[0])
            yield Recorded(("modelyard", "explain", model, "-o", "json", *chosen), answer, folder=root)
    for path in MISTAKEN:
        answer = out / "mistaken" / f"{Path(path).stem}.json"
        yield Recorded(("modelyard", "validate", "-o", "json", path), answer, folder=root)


def record(out: Path) -> None:
    root = Path.cwd()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        wanted = list(runs(out.resolve(), root, Path(scratch)))
        for each in wanted:
            if not each.folder.exists():  # app.py looks for models and environments here
                project = next(p for p in PROJECTS if (Path(p).name or "shipped") == each.folder.parent.name)
                each.folder.mkdir(parents=True)
                for name in ("models", "environments"):
                    shutil.copytree(root / project / name, each.folder / name)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(Recorded.run, wanted))
    print(f"{out}: {len(wanted)} commands recorded")


def compare(old: Path, new: Path) -> int:
    """Print each difference and return their number."""
    files = {
        path.relative_to(folder)
        for folder in (old, new)
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".zip"
    }
    different = 0
    for name in sorted(files):
        texts = [_text(folder / name) for folder in (old, new)]
        before, after = texts
        if before == after:
            continue
        different += 1
        if before is None or after is None:
            print(f"{'+' if before is None else '-'} {name}")
            continue
        print(f"! {name}")
        lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
        for line in lines[:_SHOWN]:
            print(f"    {line[:200]}")
        if len(lines) > _SHOWN:
            print(f"    ... {len(lines) - _SHOWN} more lines")
    print(f"{len(files)} files compared, {different} differ")
    return 1 if different else 0


def _text(path: Path) -> str | None:
    return _TRACE.sub("", path.read_text(encoding="utf-8", errors="replace")) if path.exists() else None


def main(arguments: list[str]) -> int:
    match arguments:
        case ["record", folder]:
            record(Path(folder))
            return 0
        case ["compare", old, new]:
            return compare(Path(old), Path(new))
        case _:
            print(__doc__, file=sys.stderr)
            return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
