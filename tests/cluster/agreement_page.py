"""The table of docs/explanation/agreement-with-karpenter.md: `make agreement` writes what Karpenter did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.cluster.agreement import ENVIRONMENTS, Verdict, plan_of
from tests.cluster.programs import ROOT

PAGE = ROOT / "docs" / "explanation" / "agreement-with-karpenter.md"
BEGIN = "<!-- agreement: make agreement writes this -->"
END = "<!-- end of agreement -->"
_HEAD = ("Model", "On", "Types that fit", *ENVIRONMENTS)

Row = tuple[str, ...]


def with_column(page: str, environment: str, verdicts: Iterable[Verdict]) -> str:
    """`page` with what Karpenter launched in one environment."""
    before, _, rest = page.partition(BEGIN)
    table, _, after = rest.partition(END)
    written = {row[0]: row for row in _rows(table)}
    launched = _launched(verdicts)
    column = _HEAD.index(environment)
    rows = []
    for model in plan_of(environment).models:
        name = f"`{model.name}`"
        row = list(written.get(name, ("",) * len(_HEAD)))
        fitting = model.placement.instance_types
        row[:3] = [name, _checkpoint(model.model.model.uri), str(len(fitting))]
        row[column] = launched.get(model.name, "nothing")
        rows.append(tuple(row))
    return f"{before}{BEGIN}\n\n{_table(rows)}\n\n{END}{after}"


def _launched(verdicts: Iterable[Verdict]) -> Mapping[str, str]:
    found: dict[str, set[str]] = {}
    for each in verdicts:
        agreed = "" if not [*each.differences] else " (differs)"
        found.setdefault(each.model.name, set()).add(each.launched + agreed)
    return {name: ", ".join(sorted(types)) for name, types in found.items()}


def _checkpoint(uri: str) -> str:
    return uri.removeprefix("hf://")


def _rows(table: str) -> Iterable[Row]:
    for line in table.splitlines()[4:]:
        if line.startswith("|"):
            yield tuple(cell.strip() for cell in line.strip("|").split("|"))


def _table(rows: Sequence[Row]) -> str:
    lines = [_HEAD, ("---",) * len(_HEAD), *sorted(rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
