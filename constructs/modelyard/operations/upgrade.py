"""The way from one Kubernetes minor to the next: what has to fit, and in which order it is done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from modelyard.releases import addon_version, addons, chart, kubectl, minors
from modelyard.spec import Environment


@dataclass(frozen=True)
class Obstacle:
    """Why the upgrade must not begin, and what removes it."""

    reason: str
    fix: str


@dataclass(frozen=True)
class UpgradeStep:
    """One step, who does it, and what is seen meanwhile."""

    name: str
    what: str


def obstacles(current: str, target: str) -> Iterator[Obstacle]:
    """What is in the way from `current` to `target`, both Kubernetes minors such as 1.35."""
    known = minors()
    if target not in known:
        yield Obstacle(
            f"Kubernetes {target} is not among {', '.join(known)}", "update Modelyard, or name one of them"
        )
        return
    distance = _minor(target) - _minor(current)
    if distance < 0:
        yield Obstacle(
            f"{target} is older than {current}",
            "EKS takes a version back only in the hours after an upgrade: aws eks update-cluster-version",
        )
    elif distance > 1:
        between = f"1.{_minor(current) + 1}"
        yield Obstacle(
            f"{current} to {target} skips {between}",
            f"upgrade to {between} first; EKS takes one minor at a time",
        )
    karpenter, least = chart("karpenter").version, known[target].least_karpenter
    if _numbers(karpenter) < _numbers(least):
        yield Obstacle(
            f"Karpenter {karpenter} does not know Kubernetes {target}",
            f"deploy Karpenter {least} or newer first",
        )
    skew = abs(_minor(kubectl()) - _minor(target))
    if skew > 1:
        yield Obstacle(
            f"the installer's kubectl is {kubectl()}, {skew} minors from {target}",
            "update Modelyard: kubectl works one minor around the cluster's",
        )


def upgrade_steps(environment: Environment, current: str, target: str) -> tuple[UpgradeStep, ...]:
    """The steps in their order. A deploy does the first four; nodes follow in their own time."""
    changed = [
        f"{name} {addon_version(name, target)}"
        for name in addons()
        if addon_version(name, current) != addon_version(name, target)
    ]
    auto = environment.cluster.auto_mode
    window = "between 02:00 and 04:00 UTC" if environment.strict else "one at a time"
    steps = [
        UpgradeStep("control plane", f"{current} to {target}: ten to twenty minutes, the API stays up"),
        UpgradeStep("add-ons", ", ".join(changed) or "the same versions fit both"),
    ]
    if auto:
        steps.append(
            UpgradeStep("nodes", f"EKS Auto Mode replaces them, {window} within each pool's budgets")
        )
    else:
        steps += [
            UpgradeStep(
                "system nodes", "the node group is replaced node by node, as PodDisruptionBudgets allow"
            ),
            UpgradeStep(
                "Karpenter's nodes",
                f"their AMI release is pinned, its build follows the cluster's minor: nodes drift, and are replaced {window}",
            ),
        ]
    steps.append(UpgradeStep("kubectl", f"of the installer is {kubectl()}, within one minor of {target}"))
    return tuple(steps)


def days_of_support(version: str, today: date) -> int | None:
    """Days until standard support of a minor ends; None where AWS has not said."""
    known = minors().get(version)
    return (known.support_ends - today).days if known and known.support_ends else None


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
