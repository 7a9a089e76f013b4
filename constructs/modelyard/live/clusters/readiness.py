"""State of a cluster in EKS before an upgrade: version, add-ons, insights, and AMIs of the next minor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from modelyard.hardware import accelerators
from modelyard.live.api.answers import Unanswered
from modelyard.live.api.aws import Account, Operation
from modelyard.live.clusters.node_group import NoTemplate, other_changes
from modelyard.live.clusters.upgrade import Obstacle
from modelyard.live.eks import addon_names, described_addon
from modelyard.live.parameters import parameter
from modelyard.spec import Environment

_INSIGHTS = Operation("eks", "ListInsights")
_GENERAL: Final = ("arm64", "standard")


@dataclass
class Readiness:
    """Findings; `unchecked` lists what could not be checked, and why."""

    obstacles: list[Obstacle] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    addons: dict[str, str] | None = None
    unchecked: list[str] = field(default_factory=list)


def readiness(account: Account, environment: Environment, status: str, target: str) -> Readiness:
    """Run all queries; unanswered ones are recorded as unchecked."""
    found = Readiness()
    if status != "ACTIVE":
        found.obstacles.append(
            Obstacle(
                f"the cluster is {status}",
                f"aws eks wait cluster-active --name {environment.cluster_name} --region {environment.region}",
            )
        )
    for what, ask in (
        ("add-ons", _addons),
        ("upgrade insights", _insights),
        ("images", _missing_images),
        ("system nodes", _node_group),
    ):
        try:
            ask(account, environment, target, found)
        except Unanswered as why:
            found.unchecked.append(f"{what}: {why}")
    return found


def _addons(account: Account, environment: Environment, target: str, found: Readiness) -> None:
    cluster, installed = environment.cluster_name, {}
    for name in addon_names(account.ask, cluster):
        addon = described_addon(account.ask, cluster, name)
        installed[name] = addon["addonVersion"]
        if addon["status"] != "ACTIVE":
            issues = "; ".join(each.get("message", "") for each in addon.get("health", {}).get("issues", ()))
            found.obstacles.append(
                Obstacle(
                    f"add-on {name} is {addon['status']}{f': {issues}' if issues else ''}",
                    f"aws eks describe-addon --cluster-name {cluster} --addon-name {name} --region {environment.region}",
                )
            )
    found.addons = installed


def _insights(account: Account, environment: Environment, target: str, found: Readiness) -> None:
    answer = account.ask(
        _INSIGHTS,
        clusterName=environment.cluster_name,
        filter={"categories": ["UPGRADE_READINESS"], "kubernetesVersions": [target]},
    )
    for each in answer["insights"]:
        status = each["insightStatus"]
        said = f"EKS insight '{each['name']}': {status.get('reason') or status['status']}"
        if status["status"] == "ERROR":
            found.obstacles.append(
                Obstacle(
                    said,
                    f"aws eks describe-insight --cluster-name {environment.cluster_name} --id {each['id']} "
                    f"--region {environment.region}",
                )
            )
        elif status["status"] != "PASSING":
            found.notes.append(said)


def _node_group(account: Account, environment: Environment, target: str, found: Readiness) -> None:
    if environment.cluster.auto_mode:
        return
    try:
        changes = other_changes(account.ask, environment)
    except NoTemplate as why:
        found.unchecked.append(
            "other changes of the system nodes, which EKS refuses beside a version: "
            f"{why}; first cdk diff -c env={environment.name}"
        )
        return
    if changes:
        found.obstacles.append(
            Obstacle(
                f"the next deploy also changes the system nodes' {', '.join(changes)}; EKS refuses that beside a version, and "
                "the cluster's stack would roll back",
                f"deploy that with the present version first: cdk deploy Cluster -c env={environment.name}",
            )
        )


def _missing_images(account: Account, environment: Environment, target: str, found: Readiness) -> None:
    if environment.cluster.auto_mode:
        return  # AWS chooses the AMIs
    for alias, path in sorted(set(_image_parameters(environment, target))):
        if parameter(account.ask, path) is None:
            found.obstacles.append(
                Obstacle(
                    f"AMI release {alias} has no build for Kubernetes {target}: {path} does not exist",
                    "pin a newer release under `ami` of the pool or of cluster.generalNodes, and deploy that first",
                )
            )


def _image_parameters(environment: Environment, target: str) -> Iterator[tuple[str, str]]:
    """AMI alias and public SSM parameter, as Karpenter resolves them for the cluster's minor."""
    wanted = [(environment.cluster.general_nodes.ami, *_GENERAL)]
    for pool in environment.pools.values():
        vendor = accelerators()[pool.accelerator].vendor if pool.accelerator in accelerators() else "cpu"
        if vendor != "cpu":
            wanted.append((pool.ami, "x86_64", "nvidia" if vendor == "nvidia" else "neuron"))
    for alias, architecture, variant in wanted:
        family, _, release = alias.partition("@")
        if release == "latest":
            continue
        if family == "bottlerocket":
            suffix = "-nvidia" if variant == "nvidia" else ""
            folder = f"/aws/service/bottlerocket/aws-k8s-{target}{suffix}/{architecture}"
            yield alias, f"{folder}/{release.removeprefix('v')}/image_id"
        else:
            folder = f"/aws/service/eks/optimized-ami/{target}/amazon-linux-2023/{architecture}/{variant}"
            name = f"amazon-eks-node-al2023-{architecture}-{variant}-{target}-{release}"
            yield alias, f"{folder}/{name}/image_id"
