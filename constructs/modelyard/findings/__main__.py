"""Write `docs/findings/CODE.md` from the registry, or check that they are up to date: `… DIR [--check]`."""

from __future__ import annotations

import sys
from pathlib import Path

from modelyard.findings.registry import CHECKS, Check
from modelyard.writing import write_file


def page(check: Check) -> str:
    """The page of one check."""
    return (
        f"# {check.code}: {check.title}\n\n"
        f"Severity: {check.severity}"
        + ("; an environment with `policy: strict` makes it an error" if check.severity == "warning" else "")
        + f".\n\n## Why it matters\n\n{check.cause}\n\n## What to do\n\n{check.fix}\n"
    )


def index() -> str:
    """The list of all checks."""
    rows = "".join(f"| [{c.code}]({c.code}.md) | {c.severity} | {c.title} |\n" for c in CHECKS.values())
    return f"# Findings\n\n`modelyard explain CODE` prints the same.\n\n| code | severity | what |\n|---|---|---|\n{rows}"


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    pages = {folder / f"{code}.md": page(check) for code, check in CHECKS.items()} | {
        folder / "README.md": index()
    }
    present = set(folder.glob("*.md"))
    stale = [path for path, text in pages.items() if path not in present or path.read_text("utf-8") != text]
    extra = sorted(present - set(pages))
    if "--check" in arguments:
        for path in [*stale, *extra]:
            print(
                f"{path} is not as the registry says; run python -m modelyard.findings {folder}",
                file=sys.stderr,
            )
        return 1 if stale or extra else 0
    for path in stale:
        write_file(path, pages[path])
    for path in extra:
        # Delete pages of removed codes only; other files are not ours.
        if path.read_text("utf-8").startswith(f"# {path.stem}: "):
            path.unlink()
        else:
            print(f"{path} is no page of a finding: left alone", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
