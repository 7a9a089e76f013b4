"""Stacks pass values by SSM parameters: every parameter that a stack reads is written by a stack deployed
earlier."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.synth.conftest import Synthesis

Templates = dict[str, dict[str, Any]]


def _written(templates: Templates) -> dict[str, str]:
    """Path to the stack that writes it."""
    return {
        resource["Properties"]["Name"]: stack
        for stack, template in templates.items()
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::SSM::Parameter" and "Name" in resource["Properties"]
    }


def _read(template: dict[str, Any]) -> set[str]:
    return {
        parameter["Default"]
        for parameter in template.get("Parameters", {}).values()
        if parameter["Type"].startswith("AWS::SSM::Parameter::Value")
        and not parameter["Default"].startswith("/cdk-bootstrap/")
    }


def unwritten_reads(templates: Templates) -> list[str]:
    """`STACK: PATH` for everything that is read and written by no stack."""
    written = _written(templates)
    return [f"{name}: {path}" for name, t in templates.items() for path in sorted(_read(t) - written.keys())]


def _before(name: str, manifest: dict[str, Any]) -> set[str]:
    """Everything that is deployed before `name`."""
    direct = set(manifest["artifacts"][name].get("dependencies", []))
    return direct.union(*(_before(other, manifest) for other in direct))


def unordered_reads(templates: Templates, manifest: dict[str, Any]) -> list[str]:
    """`CONSUMER before PRODUCER` for every pair that may be deployed in the wrong order."""
    written = _written(templates)
    return sorted(
        f"{name} before {producer}"
        for name, template in templates.items()
        for producer in {written[path] for path in _read(template) if path in written}
        if producer not in _before(name, manifest)
    )


def test_every_path_that_is_read_is_written(each: Synthesis) -> None:
    assert any(_read(template) for template in each.templates.values())
    assert unwritten_reads(each.templates) == []


def test_every_path_that_is_written_is_read(each: Synthesis) -> None:
    read = set().union(*(_read(template) for template in each.templates.values()))
    # By `modelyard publish` and `modelyard verify`.
    read |= {f"/modelyard/{each.name}/delivery/{key}" for key in ("bucket", "reports")}

    assert _written(each.templates).keys() - read == set()


def test_producers_are_deployed_first(each: Synthesis) -> None:
    assert unordered_reads(each.templates, each.manifest) == []


def test_paths_are_fixed_and_name_environment_and_concern(each: Synthesis) -> None:
    stacks = each.manifest["artifacts"]
    for path, stack in _written(each.templates).items():
        concern = stacks[stack]["properties"]["stackName"].removeprefix(f"modelyard-{each.name}-")
        assert path.startswith(f"/modelyard/{each.name}/{concern}/")


@pytest.mark.parametrize(
    "path", ["/modelyard/dev/network/vpc-id", "/modelyard/dev/model-cache/file-system-id"]
)
def test_the_check_sees_a_path_that_nobody_writes(path: str, dev: Synthesis) -> None:
    templates = deepcopy(dev.templates)
    for template in templates.values():
        for resource in template["Resources"].values():
            if resource["Type"] == "AWS::SSM::Parameter" and resource["Properties"].get("Name") == path:
                resource["Properties"]["Name"] = f"{path}-renamed"

    assert any(line.endswith(path) for line in unwritten_reads(templates))


def test_the_check_sees_a_missing_order(dev: Synthesis) -> None:
    manifest = deepcopy(dev.manifest)
    manifest["artifacts"]["ModelCache"]["dependencies"].remove("Cluster")

    assert unordered_reads(dev.templates, manifest) == [
        "ModelCache before Cluster",
        "ModelCache before Network",
    ]
