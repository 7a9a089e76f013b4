"""What the embedded AWS did with each resource, one JSON object per line.

The level says what is behind a green stack:

    created    an object in an emulated service; boto3 lists it
    recorded   accepted and stored here; nothing was executed (a Helm release without a Kubernetes API)
    ignored    no effect in a deployment (CDK metadata)

The server writes, `entries` reads; the inventory verifies `created` and never trusts it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

FILE_NAME = "journal.jsonl"


class EmulationLevel(StrEnum):
    CREATED = "created"
    RECORDED = "recorded"
    IGNORED = "ignored"


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One action on one resource; `error`: why it failed, in which case nothing changed."""

    action: Action
    stack: str
    logical_id: str
    type: str
    physical_id: str
    level: EmulationLevel
    detail: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    def to_line(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_line(cls, line: str) -> Entry:
        """The inverse of `to_line`.

        Raises:
            ValueError: not a line of this journal.
        """
        try:
            fields = json.loads(line)
            return cls(
                **fields | {"action": Action(fields["action"]), "level": EmulationLevel(fields["level"])}
            )
        except (LookupError, RecursionError, TypeError):
            raise ValueError("it is no entry of a journal") from None


class Journal:
    """The writer: an append-only file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()  # custom resources run in their own threads

    def write(self, entry: Entry) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(entry.to_line() + "\n")


def current(entries: list[Entry]) -> dict[tuple[str, str], Entry]:
    """Current resources: the last successful entry of each (stack, logical id) that is not a deletion."""
    standing: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        key = (entry.stack, entry.logical_id)
        if entry.error:
            continue
        if entry.action is not Action.DELETE:
            standing[key] = entry
        elif key in standing and standing[key].physical_id == entry.physical_id:
            del standing[key]  # deleting a replaced resource keeps its successor
    return standing
