"""Every setting's change is known, and what the page says of it is computed."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from modelyard.objects.composition import checked_objects
from modelyard.project import load_project
from tests.changes import aws_effects, kubernetes_effects
from tests.changes.comparison import in_the_cluster, objects, sides
from tests.changes.kubernetes_effects import IMMUTABLE, REFUSED, refused
from tests.changes.page import PAGE, in_words, page
from tests.changes.settings import Change, File, changes, keys
from tests.synthesised import ROOT

ALL = {(change.file, change.key): change for change in changes()}
NAMES = [f"{file}: {key}" for file, key in ALL]


@pytest.mark.parametrize("file", ["model", "environment"])
def test_every_key_has_a_change(file: File) -> None:
    assert [key for of, key in ALL if of == file] == keys(file)


@pytest.mark.parametrize("change", ALL.values(), ids=NAMES)
def test_the_page_says_what_a_change_does_in_the_cluster(change: Change) -> None:
    """The column of the account takes a synthesis for each row: test_the_whole_page_is_computed."""
    rows = [line for line in _page().splitlines() if line.startswith(f"| `{change.key}` | ")]
    [cell] = [line.split(" | ")[1].removesuffix(" |") for line in rows if _of(line) == change.file]

    assert cell == change.says or cell == in_words(in_the_cluster(change), change.way_out)


@pytest.mark.parametrize("change", ALL.values(), ids=NAMES)
def test_what_is_refused_has_a_way_out(change: Change) -> None:
    if not change.before and not change.after:
        return
    before, after = (objects(*side) for side in sides(change))

    if refused(before, after) or refused(after, before):
        assert change.says or change.way_out


@pytest.mark.story
def test_the_whole_page_is_computed() -> None:
    assert _page() == page()


def test_a_planted_change_of_a_claim_is_refused() -> None:
    before = objects({}, {})
    after = deepcopy(dict(before))
    after["PersistentVolumeClaim", "models", "model-cache"]["spec"]["resources"]["requests"]["storage"] = (
        "1Gi"
    )

    assert refused(before, after) == ["PersistentVolumeClaim models model-cache: spec.resources"]
    assert kubernetes_effects.effects(before, after) == [REFUSED]


def test_a_planted_label_of_a_pod_starts_replicas_again() -> None:
    before = objects({}, {})
    after = deepcopy(dict(before))
    after["Deployment", "models", "qwen"]["spec"]["template"]["metadata"]["labels"]["x"] = "y"

    assert kubernetes_effects.effects(before, after) == ["replicas start again, a few at a time"]


def test_a_requirement_of_a_pool_is_asked_of_each_node_and_a_taint_replaces_all() -> None:
    before = objects({}, {})
    fitted, hashed = deepcopy(dict(before)), deepcopy(dict(before))
    template = ("NodePool", None, "g6e")
    fitted[template]["spec"]["template"]["spec"]["requirements"].append({"key": "x", "operator": "Exists"})
    hashed[template]["spec"]["template"]["spec"]["taints"] = []

    assert kubernetes_effects.effects(before, fitted) == ["nodes that no longer fit are replaced"]
    assert kubernetes_effects.effects(before, hashed) == ["nodes are replaced"]


def test_a_resource_goes_with_what_it_was_made_for() -> None:
    def stack(cidr: str) -> dict[str, Any]:
        return {
            "Network": {
                "Resources": {
                    "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": cidr}},
                    "Flow": {"Type": "AWS::EC2::FlowLog", "Properties": {"ResourceId": {"Ref": "Vpc"}}},
                    "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": cidr}},
                }
            }
        }

    assert aws_effects.effects(stack("10.0.0.0/16"), stack("10.1.0.0/16")) == [
        "replaces EC2 FlowLog, EC2 VPC",
        "updates SNS Topic",
    ]


def test_the_kinds_are_those_that_are_rendered() -> None:
    planned = load_project("prod", ROOT / "models", ROOT / "environments").plan()
    assert planned is not None
    kinds = {item["kind"] for found in checked_objects(planned).values() for item in found}

    assert len(IMMUTABLE.keys() & kinds) >= 8


def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


def _of(line: str) -> File:
    """The file of a row: only an environment has a column for the account."""
    return "environment" if line.count(" | ") == 2 else "model"
