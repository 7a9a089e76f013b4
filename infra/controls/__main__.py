"""`make controls`: all checkers over all apps, or over the named ones; exit code 1 if a finding is open or an
acknowledgement is stale."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from infra.controls.acknowledgements import SHIPPED
from infra.controls.survey import CHECKOV, Survey, shipped_apps, stale, survey
from infra.controls.violation import Checker
from modelyard.cli.printing import console, count, table

CHECKERS: tuple[Checker, ...] = (
    "cdk-nag",
    "cfn-guard",
    "template-rules",
    "cfn-validate",
    "cfn-lint",
    "checkov",
)


def main(root: Path, wanted: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        apps = shipped_apps(root, folder, wanted)
        surveys = survey(apps, checkov=root / CHECKOV, workspace=folder / "checkov")
    unaccepted = [violation for each in surveys for violation in each.verdict.open]
    for violation in unaccepted:
        print(violation)
    # Stale acknowledgements can only be found over all apps together.
    unused = [] if wanted else stale(surveys, SHIPPED)
    for acknowledgement, rule in unused:
        print(f"nothing to accept: {acknowledgement.checker} {rule} at {acknowledgement.path}")
    _print(surveys)
    return 1 if unaccepted or unused else 0


def _print(surveys: list[Survey]) -> None:
    rows = []
    for each in surveys:
        accepted = Counter(violation.checker for violation, _ in each.verdict.accepted)
        still_open = Counter(violation.checker for violation in each.verdict.open)
        for checker in CHECKERS:
            rows.append(
                (
                    each.name,
                    str(len(each.templates)),
                    checker,
                    str(accepted[checker]),
                    str(still_open[checker]),
                )
            )
    columns = ("app", "templates", "checker", "accepted", "open")
    console().print(table("Controls", columns, rows, right=("templates", "accepted", "open")))
    total = sum(len(each.verdict.open) for each in surveys)
    print(f"{'ok' if not total else 'not ok'}: {count(total, 'finding')} open")


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), sys.argv[1:]))
