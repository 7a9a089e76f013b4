"""Journal and inventory: recorded resources, existing resources, and what boto3 has to confirm."""

from __future__ import annotations

from pathlib import Path

from modelyard.localcloud import entries, journal
from modelyard.localcloud.inventory import Presence, StackResource, judge
from modelyard.localcloud.journal import Action, EmulationLevel, Entry, Journal


def entry(
    logical_id: str,
    action: Action = Action.CREATE,
    *,
    physical_id: str = "",
    level: EmulationLevel = EmulationLevel.CREATED,
    error: str = "",
) -> Entry:
    return Entry(
        action=action,
        stack="S",
        logical_id=logical_id,
        type="AWS::SQS::Queue",
        physical_id=physical_id or logical_id.lower(),
        level=level,
        detail={"kept": [1, {"a": "b"}]},
        error=error,
    )


def resource(logical_id: str) -> StackResource:
    return StackResource(
        stack="S", type="AWS::SQS::Queue", logical_id=logical_id, physical_id=logical_id.lower()
    )


def presence(
    logical_id: str, claims: list[Entry], *, existing: bool = False, unchecked: bool = False
) -> Presence:
    place = f"S/{logical_id}"
    [row] = judge(
        [resource(logical_id)],
        journal.current(claims),
        {place} if existing else set(),
        {place} if unchecked else set(),
    )
    return row.presence


def test_an_entry_survives_the_file(tmp_path: Path) -> None:
    written = [entry("A"), entry("B", Action.UPDATE, level=EmulationLevel.RECORDED, error="no")]
    file = tmp_path / "journal.jsonl"

    for one in written:
        Journal(file).write(one)

    assert entries.read(file) == written


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert entries.read(tmp_path / "journal.jsonl") == []


def test_what_was_deleted_does_not_stand() -> None:
    assert journal.current([entry("A"), entry("A", Action.DELETE)]) == {}


def test_what_failed_changes_nothing() -> None:
    first = entry("A")

    assert journal.current([first, entry("A", Action.UPDATE, error="no")]) == {("S", "A"): first}


def test_a_successor_outlives_the_deletion_of_its_predecessor() -> None:
    successor = entry("A", Action.UPDATE, physical_id="new")

    standing = journal.current(
        [entry("A", physical_id="old"), successor, entry("A", Action.DELETE, physical_id="old")]
    )

    assert standing == {("S", "A"): successor}


def test_created_needs_boto3s_word() -> None:
    assert presence("A", [entry("A")], existing=True) is Presence.CREATED
    assert presence("A", [entry("A")]) is Presence.MISSING


def test_a_type_nobody_can_look_for_is_never_called_created() -> None:
    assert presence("A", [entry("A")], unchecked=True) is Presence.UNCHECKED


def test_recorded_and_ignored_are_not_looked_for() -> None:
    assert presence("A", [entry("A", level=EmulationLevel.RECORDED)]) is Presence.RECORDED
    assert presence("A", [entry("A", level=EmulationLevel.IGNORED)]) is Presence.IGNORED


def test_a_resource_the_journal_does_not_know_must_exist() -> None:
    assert presence("A", [], existing=True) is Presence.CREATED
    assert presence("A", []) is Presence.MISSING
