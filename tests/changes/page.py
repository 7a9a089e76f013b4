"""docs/reference/changes.md: what a change of each setting does."""

from __future__ import annotations

from pathlib import Path

from tests.changes.comparison import in_the_account, in_the_cluster
from tests.changes.kubernetes_effects import REFUSED
from tests.changes.settings import Change, File, changes

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "changes.md"

HEAD = """# What a change does

What a changed setting does to what runs already. Computed by `python -m tests.changes` from what is rendered and
synthesised with an old and a new value, with Kubernetes' and Karpenter's rules for fields, and with the resource schemas of
CloudFormation. A dash: only what the plan and the checks say. Keys below `overrides` do what they do in the model's file.

- *in place*: objects are updated, and no pod starts again.
- *replicas start again, a few at a time*: a rolling update, as `rollout` and `availability` say; the endpoint answers.
- *nodes are replaced*: Karpenter's drift, within the pool's disruption budget; *that no longer fit*: only those.
- *replaces*: AWS makes a new resource and deletes the old one. *updates*, *adds*, *removes*: so it does.
"""
_TITLES: dict[File, str] = {"model": "models/NAME.yaml", "environment": "environments/NAME.yaml"}


def page() -> str:
    """The whole page; takes a minute or two, for every changed environment is synthesised."""
    text = [HEAD]
    for file, title in _TITLES.items():
        columns = ["in the cluster"] + (["in the account"] if file == "environment" else [])
        text += [f"## {title}\n", f"| Setting | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}"]
        text += [row(change) for change in changes() if change.file == file]
        text.append("")
    return "\n".join(text)


def row(change: Change) -> str:
    cells = [change.says or in_words(in_the_cluster(change), change.way_out)]
    if change.file == "environment":
        cells.append("likewise" if change.says else in_words(in_the_account(change)))
    return f"| `{change.key}` | {' | '.join(cells)} |"


def in_words(effects: list[str], way_out: str = "") -> str:
    """Effects as a cell of the table."""
    return "; ".join(f"{each}: {way_out}" if each == REFUSED else each for each in effects) or "-"
