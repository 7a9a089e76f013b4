"""The plan counts what the stacks make: lines of an environment's own cost, held against its templates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from modelyard.planning import plan
from modelyard.planning.fixed_cost import EnvironmentCost, environment_cost
from modelyard.spec import Environment
from modelyard.spec.endpoints import Endpoints
from modelyard.spec.loading import Catalogue
from tests.synth.conftest import Synthesis, environment_file
from tests.synth.test_platforms import PLATFORMS


def _cost(data: dict[str, Any]) -> EnvironmentCost:
    return environment_cost(plan(Catalogue(models={}), Environment.model_validate(data)), date(2026, 11, 22))


def _counts(cost: EnvironmentCost) -> dict[str, float]:
    return {line.name: line.count for line in cost.lines}


def _every(synthesis: Synthesis, kind: str) -> list[dict[str, Any]]:
    return [each for stack in synthesis.templates for each in synthesis.properties(stack, kind)]


def _made(synthesis: Synthesis) -> dict[str, float]:
    """The same counts, from the templates."""
    interfaces = [
        e for e in _every(synthesis, "AWS::EC2::VPCEndpoint") if e["VpcEndpointType"] == "Interface"
    ]
    groups = _every(synthesis, "AWS::EKS::Nodegroup")
    templates = _every(synthesis, "AWS::EC2::LaunchTemplate")
    disks = [
        d["Ebs"]["VolumeSize"] for t in templates for d in t["LaunchTemplateData"]["BlockDeviceMappings"]
    ]
    nodes = sum(group["ScalingConfig"]["DesiredSize"] for group in groups)
    made = {
        "EKS control plane": len(_every(synthesis, "AWS::EKS::Cluster")),
        "interface endpoints": sum(len(endpoint["SubnetIds"]) for endpoint in interfaces),
        "NAT gateways": len(_every(synthesis, "AWS::EC2::NatGateway")),
        "system nodes": nodes,
        "disks of system nodes, GiB": nodes * sum(disks),
        "FSx for Lustre, GiB": sum(f["StorageCapacity"] for f in _every(synthesis, "AWS::FSx::FileSystem")),
        "KMS keys": len(_every(synthesis, "AWS::KMS::Key")),
        "secrets": len(_every(synthesis, "AWS::SecretsManager::Secret")),
        "CloudWatch alarms": len(_every(synthesis, "AWS::CloudWatch::Alarm")),
        "EKS capability Argo CD": len(_every(synthesis, "AWS::EKS::Capability")),
    }
    return {name: count for name, count in made.items() if count}


def _hold(cost: EnvironmentCost, synthesis: Synthesis) -> None:
    made = _made(synthesis)
    counted = {name: count for name, count in _counts(cost).items() if name in made or name in _IN_TEMPLATES}
    assert counted == made


_IN_TEMPLATES = {
    *(
        "EKS control plane",
        "interface endpoints",
        "NAT gateways",
        "system nodes",
        "disks of system nodes, GiB",
    ),
    *("FSx for Lustre, GiB", "KMS keys", "secrets", "CloudWatch alarms", "EKS capability Argo CD"),
}


def test_every_shipped_environment_is_counted_as_it_is_made(each: Synthesis) -> None:
    _hold(_cost(environment_file(each.name)), each)
    addresses = len(_every(each, "AWS::EC2::EIP"))
    assert _counts(_cost(environment_file(each.name)))["public IPv4 addresses"] == addresses


@pytest.mark.parametrize("name", sorted(path.stem for path in PLATFORMS.glob("*.yaml")))
def test_every_kind_of_platform_is_counted_as_it_is_made(
    name: str, synthesise: Callable[[str, dict[str, Any]], Synthesis]
) -> None:
    data = environment_file(name, PLATFORMS)

    _hold(_cost(data), synthesise(f"cost-{name}", data))


@pytest.mark.parametrize("choice", ["all", "essential", "none"])
def test_every_choice_of_endpoints_is_counted_as_it_is_made(
    choice: Endpoints, synthesise: Callable[[str, dict[str, Any]], Synthesis]
) -> None:
    data = environment_file("local")
    data["network"]["endpoints"] = choice

    _hold(_cost(data), synthesise(f"cost-{choice}", data))
