"""Whether an environment is up as deployed: every check that needs no access to the private cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from modelyard.live.api.aws import Account
from modelyard.live.delivery.comparison import Changes, compare, delivery_bucket, listed
from modelyard.live.eks import addon_names, described_addon, described_cluster, described_node_groups, issues
from modelyard.live.parameters import handed_over
from modelyard.live.stacks import DeployedStack, environment_stacks
from modelyard.live.verification.reports import JobOutcome, answering, check_jobs, job_outcome, job_reports
from modelyard.names import stack_name
from modelyard.planning.identity import cluster_addons
from modelyard.spec import Environment
from modelyard.writing import tree_files

CheckName = Literal["stacks", "cluster", "node groups", "add-ons", "tree", "models"]
Outcome = Literal["passed", "failed", "pending"]

_SETTLED: Final = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}
_SETTLING: Final = {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"}
_CHANGING: Final = {"CREATING", "UPDATING"}


@dataclass(frozen=True)
class Observation:
    """Result of one check. `problems` is empty if nothing is known to be wrong; `seen` says what was checked.

    `transient`: the problems may resolve themselves. `pending`: not known yet. `look`: commands that show
    more about the problems.
    """

    check: CheckName
    seen: str
    problems: tuple[str, ...]
    transient: bool = False
    pending: tuple[JobOutcome, ...] = ()
    look: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """`pending` if nothing is wrong and something is not known yet."""
        return "failed" if self.problems else "pending" if self.pending else "passed"

    @property
    def final(self) -> bool:
        """Whether it has failed for good."""
        return bool(self.problems) and not self.transient

    def overdue(self) -> Observation:
        """The observation after the timeout: pending items have failed."""
        if not self.pending:
            return self
        look = ("kubectl -n flux-system get kustomizations", *(each.job.logs for each in self.pending))
        problems = (*self.problems, *map(str, self.pending))
        return replace(self, problems=problems, pending=(), look=(*self.look, *look))


def verify(account: Account, settings: Environment, tree: Path) -> list[Observation]:
    """All checks that apply; without a cluster, checks of its contents are skipped."""
    deployed = {stack.name: stack for stack in environment_stacks(account.ask, settings.name)}
    standing = described_cluster(account.ask, settings.cluster_name)
    seen = [_stacks(deployed, settings), _cluster(standing, settings)]
    if standing is not None:
        # Auto Mode has no node group, and those of an existing cluster are not ours.
        if not (settings.cluster.auto_mode or settings.cluster.existing):
            seen.append(_node_groups(account, settings))
        if cluster_addons(settings):
            seen.append(_addons(account, settings))
    delivery = deployed.get(stack_name(settings.name, "delivery"))
    if settings.delivery == "flux" and delivery is not None and delivery.status in _SETTLED:
        seen.append(_delivered(account, settings, tree))
        if settings.reports_checks:
            seen.append(_models(account, settings, tree))
    return seen


def _stacks(found: Mapping[str, DeployedStack], settings: Environment) -> Observation:
    needed = ["network", "cluster", *(["delivery"] if settings.delivers_from_aws else [])]
    missing = [name for concern in needed if (name := stack_name(settings.name, concern)) not in found]
    unsettled = {name: found[name].status for name in sorted(found) if found[name].status not in _SETTLED}
    problems = [f"no stack {name}" for name in missing]
    problems += [f"{name} is {status}" for name, status in unsettled.items()]
    bare = (
        [name for name in sorted(found) if not found[name].protected] if settings.removal == "retain" else []
    )
    problems += [f"{name} has no termination protection, and removal: retain promises it" for name in bare]
    transient = not missing and not bare and set(unsettled.values()) <= _SETTLING
    look = tuple(
        f"aws cloudformation update-termination-protection --enable-termination-protection --stack-name {name} "
        f"--region {settings.region}"
        for name in bare
    )
    return Observation("stacks", f"{len(found)} stacks", tuple(problems), transient, look=look)


def _cluster(found: dict[str, Any] | None, settings: Environment) -> Observation:
    if found is None:
        return Observation("cluster", settings.cluster_name, ("there is no such cluster",))
    problems = [] if found["status"] == "ACTIVE" else [f"it is {found['status']}"]
    if found["version"] != settings.cluster.version:
        problems.append(f"it runs Kubernetes {found['version']}, the file says {settings.cluster.version}")
    public = found.get("resourcesVpcConfig", {}).get("endpointPublicAccess", False)
    if public and not (settings.cluster.public_access_cidrs or settings.cluster.existing):
        problems.append("its API server is public; the file says it is private")
    problems += issues(found)
    seen = f"{settings.cluster_name}, Kubernetes {found['version']}"
    return Observation("cluster", seen, tuple(problems), found["status"] in _CHANGING)


def _node_groups(account: Account, settings: Environment) -> Observation:
    found = described_node_groups(account.ask, settings.cluster_name)
    return _parts("node groups", ", ".join(found), found, "there is none: nothing could run Karpenter")


def _addons(account: Account, settings: Environment) -> Observation:
    """Those of the cluster; of an existing one, those that Modelyard has installed."""
    names = sorted(addon_names(account.ask, settings.cluster_name))
    names = [name for name in names if not settings.cluster.has(name)]
    found = {name: described_addon(account.ask, settings.cluster_name, name) for name in names}
    return _parts("add-ons", f"{len(names)} add-ons", found, "there is none: nodes could not become ready")


def _parts(check: CheckName, seen: str, found: Mapping[str, dict[str, Any]], none: str) -> Observation:
    """Parts of the cluster by name; EKS retries those that did not fail for good."""
    problems = [problem for name, part in found.items() for problem in _ailments(name, part)]
    mending = all(part["status"] in {"ACTIVE", "DEGRADED", *_CHANGING} for part in found.values())
    return Observation(check, seen, tuple(problems) if found else (none,), bool(found) and mending)


def _ailments(name: str, found: dict[str, Any]) -> list[str]:
    """Problems that EKS reports for a part of the cluster."""
    inactive = [] if found["status"] == "ACTIVE" else [f"{name} is {found['status']}"]
    return [*inactive, *(f"{name}: {issue}" for issue in issues(found))]


def _delivered(account: Account, settings: Environment, tree: Path) -> Observation:
    """Whether the bucket that Flux reads holds `tree`, file by file."""
    bucket = delivery_bucket(account.ask, settings.name)
    if bucket is None:
        return Observation("tree", "", ("the delivery stack has no bucket; deploy it again",))
    there, here = listed(account.ask, bucket), tree_files(tree)
    if there.held:
        begun = f"a publication has begun and has not ended, so Flux applies nothing; modelyard publish --env {settings.name}"
        return Observation("tree", f"{len(here)} files in {bucket}", (begun,), transient=True)
    changes = compare(account.ask, there, here)
    known = changes.delivered is not None
    others = f", and {len(changes.foreign)} that modelyard did not write" if known and changes.foreign else ""
    problems = [] if here else ["nothing is rendered; run `modelyard render` first"]
    return Observation("tree", f"{len(here)} files in {bucket}{others}", (*problems, *_differences(changes)))


def _differences(changes: Changes) -> Iterator[str]:
    """Without a list of delivered keys, every object counts as ours."""
    stray = (
        changes.deletions if changes.delivered is not None else sorted((*changes.deletions, *changes.foreign))
    )
    for name in changes.missing:
        yield f"{name} was not delivered"
    for name in stray:
        yield f"{name} was delivered and is not rendered any more"
    for name in changes.differing:
        yield f"{name} differs from what is rendered"


def _models(account: Account, settings: Environment, tree: Path) -> Observation:
    """Whether every model with a check Job in the tree has answered, from the Jobs' reports."""
    bucket = handed_over(account.ask, settings.name, "delivery", "reports")
    if bucket is None:
        return Observation("models", "", ("the delivery stack has no bucket for reports; deploy it again",))
    delivery = delivery_bucket(account.ask, settings.name)
    reports = job_reports(account.ask, bucket, delivery, check_jobs(tree))
    outcomes = [job_outcome(job, found) for job, found in reports.items()]
    answered, asked = answering(outcomes)
    failed = [each for each in outcomes if each.state == "failed"]
    return Observation(
        "models",
        f"{answered} of {asked} models answered" if asked else "no model is asked",
        tuple(map(str, failed)),
        pending=tuple(each for each in outcomes if each.state == "pending"),
        look=tuple(each.job.logs for each in failed),
    )
