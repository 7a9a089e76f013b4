"""The upgrade from one Kubernetes minor to the next: prerequisites, and the order of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from packaging.version import Version

from modelyard.planning.identity import cluster_addons
from modelyard.releases import addon_version, chart, kubectl, minors, node_release
from modelyard.spec import Environment


@dataclass(frozen=True)
class Obstacle:
    """Why the upgrade must not start, and the fix."""

    reason: str
    fix: str


@dataclass(frozen=True)
class UpgradeStep:
    """One step: what changes, and what to expect meanwhile."""

    name: str
    what: str


def obstacles(environment: Environment, current: str, target: str) -> Iterator[Obstacle]:
    """What blocks the upgrade from `current` to `target`, both Kubernetes minors such as 1.35."""
    known = minors()
    if target not in known:
        yield Obstacle(
            f"Kubernetes {target} is not among {', '.join(known)}",
            "name one of them, or take a release of Modelyard that knows it",
        )
        return
    distance = Version(target).minor - Version(current).minor
    if distance < 0:
        yield Obstacle(
            f"{target} is older than {current}, and a deploy takes no version back",
            "stay where you are; the versions that charts and add-ons have are in the plan for the next minor",
        )
    elif distance > 1:
        between = f"1.{Version(current).minor + 1}"
        yield Obstacle(
            f"{current} to {target} skips {between}, and EKS takes one minor at a time",
            f"modelyard upgrade-plan --to {between}"
            if between in known
            else f"aws eks update-cluster-version --name {environment.cluster_name} --kubernetes-version {between} "
            f"--region {environment.region}",
        )
    karpenter, least = chart("karpenter").version, known[target].least_karpenter
    if not environment.cluster.auto_mode and Version(karpenter) < Version(least):
        yield Obstacle(
            f"Karpenter {karpenter} does not know Kubernetes {target}",
            f"deploy a release of Modelyard with Karpenter {least} or newer first",
        )
    release = environment.cluster.system_nodes.release_version
    if release and not environment.cluster.auto_mode and not release.startswith(f"{target}."):
        yield Obstacle(
            f"cluster.systemNodes.releaseVersion is {release}, not of Kubernetes {target}",
            f"leave it out to get {node_release(target)}, or name a release of {target}, in the same change as the version",
        )
    skew = abs(Version(kubectl()).minor - Version(target).minor)
    if skew > 1:
        yield Obstacle(
            f"the installer's kubectl is {kubectl()}, {skew} minors from {target}",
            "take a release of Modelyard with a newer one: kubectl works one minor around the cluster's",
        )


def upgrade_steps(
    environment: Environment, current: str, target: str, installed: Mapping[str, str] | None = None
) -> tuple[UpgradeStep, ...]:
    """The steps in order: one deploy does everything except the nodes, which Karpenter or EKS Auto Mode
    replace afterwards.

    `installed`: add-on versions reported by EKS; default: the versions that a deploy of `current` installs.
    """
    auto = environment.cluster.auto_mode
    steps = [
        UpgradeStep("control plane", f"{current} to {target}: ten to twenty minutes, the API stays up"),
        UpgradeStep(
            "add-ons",
            ", ".join(_addon_changes(environment, current, target, installed)) or "the same fit both",
        ),
    ]
    window = "between 02:00 and 04:00 UTC" if environment.strict else "at any hour"
    if auto:
        steps.append(
            UpgradeStep(
                "nodes", f"EKS Auto Mode replaces them afterwards, {window}, as budgets of the pools allow"
            )
        )
    else:
        steps += [
            UpgradeStep(
                "system nodes",
                f"replaced one by one, as PodDisruptionBudgets allow, with AMI release {_release(environment, target)}",
            ),
            UpgradeStep(
                "Karpenter's nodes",
                f"afterwards: the pinned AMI release ({', '.join(_images(environment))}) has a build for each minor, so "
                f"nodes drift and are replaced {window}; models answer throughout where they have two replicas",
            ),
        ]
    steps.append(
        UpgradeStep("kubectl", f"the installer's is {kubectl()}, within one minor of {target}: nothing to do")
    )
    return tuple(steps)


def days_of_support(version: str, today: date) -> int | None:
    """Days until standard support of a minor ends; None if AWS has not announced it."""
    known = minors().get(version)
    return (known.support_ends - today).days if known and known.support_ends else None


def _addon_changes(
    environment: Environment, current: str, target: str, installed: Mapping[str, str] | None
) -> Iterator[str]:
    stated = environment.cluster.addon_versions  # pinned, whatever the cluster's minor
    for name in cluster_addons(environment) if installed is None else installed:
        before = stated.get(name) or _known_addon(name, current) if installed is None else installed[name]
        after = stated.get(name) or _known_addon(name, target)
        if after and before != after:
            yield f"{name} {before} to {after}" if before else f"{name} {after}"


def _known_addon(name: str, minor: str) -> str | None:
    try:
        return addon_version(name, minor)
    except KeyError:
        return None


def _release(environment: Environment, target: str) -> str:
    return environment.cluster.system_nodes.release_version or node_release(target)


def _images(environment: Environment) -> list[str]:
    return sorted({environment.cluster.general_nodes.ami, *(pool.ami for pool in environment.pools.values())})
