"""Comparison of two releases: every kind of change is reported, with the fix."""

from __future__ import annotations

from dataclasses import replace

from modelyard.engines import newest_release, release
from modelyard.engines.differences import Difference, differences
from modelyard.engines.release import Flag

NEW = newest_release("vllm")


def test_a_release_does_not_differ_from_itself() -> None:
    assert list(differences(NEW, NEW)) == []


def test_what_came_and_went_between_two_real_releases() -> None:
    old = release("vllm", "0.32.0")
    assert old

    found = {(each.change, each.what, each.name) for each in differences(old, NEW)}

    assert {
        ("added", "flag", "watchdog-config"),
        ("added", "tool parser", "beam"),
        ("changed", "flag", "kv-cache-dtype"),
    } <= found
    assert not [each for each in found if each[:2] == ("removed", "flag")]


def test_every_kind_of_change_is_told_with_a_way_out() -> None:
    flags = dict(NEW.flags)
    flags["seed"] = Flag("seed", "string")
    flags["swap-space"] = Flag("swap-space", "integer")
    flags["gone"] = Flag("gone", "boolean")
    del flags["monokernel"]
    old = replace(NEW, flags=flags, tool_parsers=NEW.tool_parsers | {"old"})

    assert list(differences(old, NEW)) == [
        Difference("removed", "flag", "gone", fix="remove it"),
        Difference("added", "flag", "monokernel", "boolean"),
        Difference("changed", "flag", "seed", "takes integer, took string"),
        Difference("removed", "flag", "swap-space", fix="use kv-offloading-size"),
        Difference("removed", "tool parser", "old"),
    ]
