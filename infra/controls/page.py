"""`python -m infra.controls.page docs/explanation/controls.md` writes the list of accepted findings into the
page.
its page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from infra.controls.acknowledgement import AcceptedRules
from infra.controls.acknowledgements import ACKNOWLEDGEMENTS
from modelyard.writing import write_file

BEGIN = "<!-- acknowledgements: python -m infra.controls.page writes this -->"
END = "<!-- end of acknowledgements -->"


def with_list(page: str) -> str:
    """`page` with the current list."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{acknowledgements()}\n\n{END}{after}"


def acknowledgements() -> str:
    rows = ["| Checker | Rule | Where | Why |", "|---|---|---|---|"]
    rows += [
        f"| {each.checker} | {_rules(each)} | `{each.path}` | {_reason(each)} |" for each in ACKNOWLEDGEMENTS
    ]
    return "\n".join(rows)


def _rules(each: AcceptedRules) -> str:
    short = (
        rule.replace("AwsSolutions-", "")
        .replace("Policy::arn:<AWS::Partition>:iam::aws:policy/", "")
        .replace("Resource::", "")
        for rule in each.rules
    )
    merged: dict[str, list[str]] = {}
    for rule in short:
        match = re.fullmatch(r"(\w+)\[(.*)\]", rule)
        merged.setdefault(match[1] if match else rule, []).extend([match[2]] if match else [])
    return "; ".join(
        f"{name} {', '.join(f'`{part}`' for part in parts)}".strip() for name, parts in merged.items()
    )


def _reason(each: AcceptedRules) -> str:
    return each.reason + (" (only where `removal` is destroy)" if each.disposable else "")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write_file(path, with_list(path.read_text(encoding="utf-8")))
