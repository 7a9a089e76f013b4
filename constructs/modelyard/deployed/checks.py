"""Does an environment stand as it was deployed? Everything that can be seen without reaching into a private cluster."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from modelyard.deployed.models import CheckJob, Report, Verdict, answering, check_jobs, read_report, verdict
from modelyard.planning.identity import ENVIRONMENT_TAG
from modelyard.spec import Environment
from modelyard.writing import MARKER, Ownership, tree_files

Clients = Callable[[str], Any]
"""Name of an AWS service to a boto3 client."""

HOLD: Final = ".sourceignore"
"""A key in the bucket that Flux' source-controller reads before all others (its documentation of Buckets, "Excluding
files"): as long as a publication lasts, it ignores everything."""

_SETTLED: Final = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}
_SETTLING: Final = {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"}
_CHANGING: Final = {"CREATING", "UPDATING"}


@dataclass(frozen=True)
class Answer:
    """`problems` is empty where nothing is known to be wrong; `seen` says what was looked at.

    `transient`: the problems may pass by themselves. `pending`: what nobody can say yet. `look`: commands that say more of
    the problems.
    """

    check: str
    seen: str
    problems: tuple[str, ...]
    transient: bool = False
    pending: tuple[Verdict, ...] = ()
    look: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """`passed`, `failed` or, where nothing is wrong and something is not known yet, `pending`."""
        return "failed" if self.problems else "pending" if self.pending else "passed"

    @property
    def final(self) -> bool:
        """Whether it has failed for good."""
        return bool(self.problems) and not self.transient

    def overdue(self) -> Answer:
        """The answer once nobody waits any more: what is pending has failed."""
        if not self.pending:
            return self
        look = ("kubectl -n flux-system get kustomizations", *(each.job.logs for each in self.pending))
        problems = (*self.problems, *map(str, self.pending))
        return replace(self, problems=problems, pending=(), look=(*self.look, *look))


def stacks(clients: Clients, settings: Environment) -> Answer:
    pages = clients("cloudformation").get_paginator("describe_stacks").paginate()
    found = {
        stack["StackName"]: stack["StackStatus"]
        for page in pages
        for stack in page["Stacks"]
        if {"Key": ENVIRONMENT_TAG, "Value": settings.name} in stack.get("Tags", [])
    }
    needed = ["network", "cluster", *(["delivery"] if settings.delivery != "none" else [])]
    missing = [name for name in needed if f"modelyard-{settings.name}-{name}" not in found]
    problems = [f"no stack modelyard-{settings.name}-{name}" for name in missing]
    unsettled = {name: status for name, status in sorted(found.items()) if status not in _SETTLED}
    problems += [f"{name} is {status}" for name, status in unsettled.items()]
    transient = not missing and set(unsettled.values()) <= _SETTLING
    return Answer("stacks", f"{len(found)} stacks", tuple(problems), transient)


def cluster(clients: Clients, settings: Environment) -> Answer:
    eks = clients("eks")
    try:
        found = eks.describe_cluster(name=settings.cluster_name)["cluster"]
    except eks.exceptions.ResourceNotFoundException:
        return Answer("cluster", settings.cluster_name, ("there is no such cluster",))
    problems = [] if found["status"] == "ACTIVE" else [f"it is {found['status']}"]
    if found["version"] != settings.cluster.version:
        problems.append(f"it runs Kubernetes {found['version']}, the file says {settings.cluster.version}")
    public = found.get("resourcesVpcConfig", {}).get("endpointPublicAccess", False)
    if public and not settings.cluster.public_access_cidrs:
        problems.append("its API server is public; the file says it is private")
    problems += _issues(found)
    seen = f"{settings.cluster_name}, Kubernetes {found['version']}"
    return Answer("cluster", seen, tuple(problems), found["status"] in _CHANGING)


def node_groups(clients: Clients, settings: Environment) -> Answer:
    eks = clients("eks")
    names = _all(eks, "list_nodegroups", "nodegroups", settings)
    found = {
        name: eks.describe_nodegroup(clusterName=settings.cluster_name, nodegroupName=name)["nodegroup"]
        for name in names
    }
    return _parts("node groups", ", ".join(names), found, "there is none: nothing could run Karpenter")


def addons(clients: Clients, settings: Environment) -> Answer:
    eks = clients("eks")
    names = _all(eks, "list_addons", "addons", settings)
    found = {
        name: eks.describe_addon(clusterName=settings.cluster_name, addonName=name)["addon"] for name in names
    }
    return _parts("add-ons", f"{len(names)} add-ons", found, "there is none: nodes could not become ready")


def delivered(clients: Clients, settings: Environment, tree: Path) -> Answer:
    """Whether the bucket that Flux reads holds `tree`, file by file."""
    bucket = _handed_over(clients, settings, "bucket")
    if bucket is None:
        return Answer("tree", "", ("the delivery stack has no bucket; deploy it again",))
    s3 = clients("s3")

    def read(key: str) -> bytes:
        return bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())

    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    there = {item["Key"]: item["ETag"].strip('"') for page in pages for item in page.get("Contents", [])}
    here = tree_files(tree)
    if there.pop(HOLD, None) is not None:
        begun = f"a publication has begun and has not ended, so Flux applies nothing; modelyard publish --env {settings.name}"
        return Answer("tree", f"{len(here)} files in {bucket}", (begun,), transient=True)
    ours = _ours(there, here, read)
    others = f", and {len(there) - len(ours)} that modelyard did not write" if len(there) > len(ours) else ""
    return Answer("tree", f"{len(here)} files in {bucket}{others}", tuple(_differences(here, ours, read)))


def _ours(
    there: Mapping[str, str], here: Mapping[str, bytes], read: Callable[[str], bytes]
) -> dict[str, str]:
    """Keys of the bucket that a delivery wrote; all of them where none has left a list."""
    if MARKER not in there:
        return dict(there)
    try:
        ours = {MARKER, *(path.as_posix() for path in Ownership.from_json(read(MARKER)).files)}
    except ValueError:
        return dict(there)
    return {key: tag for key, tag in there.items() if key in ours or key in here}


def models(clients: Clients, settings: Environment, tree: Path) -> Answer:
    """Whether every model that the tree's jobs ask has answered, by what these jobs have reported."""
    bucket = _handed_over(clients, settings, "reports")
    if bucket is None:
        return Answer("models", "", ("the delivery stack has no bucket for reports; deploy it again",))
    reports = _reports(clients("s3"), bucket, _handed_over(clients, settings, "bucket"), check_jobs(tree))
    verdicts = [verdict(job, found) for job, found in reports.items()]
    answered, asked = answering(verdicts)
    failed = [each for each in verdicts if each.state == "failed"]
    return Answer(
        "models",
        f"{answered} of {asked} models answered" if asked else "no model is asked",
        tuple(map(str, failed)),
        pending=tuple(each for each in verdicts if each.state == "pending"),
        look=tuple(each.job.logs for each in failed),
    )


def _reports(
    s3: Any, bucket: str, delivery: str | None, jobs: Iterable[CheckJob]
) -> dict[CheckJob, list[Report]]:
    """What the pods of each job have reported since its file last came into the bucket that Flux reads."""
    there: dict[str, list[tuple[str, datetime]]] = defaultdict(list)
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            there[item["Key"].partition("/")[0]].append((item["Key"], item["LastModified"]))
    gone: dict[str, datetime] = {}
    if there and delivery:  # who goes back to an earlier state gets a job of the same name, which asks again
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=delivery, Prefix="checks/"):
            for marker in page.get("DeleteMarkers", []):
                last = gone.get(marker["Key"], marker["LastModified"])
                gone[marker["Key"]] = max(last, marker["LastModified"])
    return {
        job: [
            read_report(key, s3.get_object(Bucket=bucket, Key=key)["Body"].read())
            for key, time in there[job.name]
            if job.file not in gone or time > gone[job.file]
        ]
        for job in jobs
    }


def _handed_over(clients: Clients, settings: Environment, key: str) -> str | None:
    """What the delivery stack has published under `key`; None where it has not."""
    ssm = clients("ssm")
    try:
        answer = ssm.get_parameter(Name=f"/modelyard/{settings.name}/delivery/{key}")
    except ssm.exceptions.ParameterNotFound:
        return None
    return str(answer["Parameter"]["Value"])


def _differences(
    here: Mapping[str, bytes], there: Mapping[str, str], read: Callable[[str], bytes]
) -> Iterator[str]:
    if not here:
        yield "nothing is rendered; run `modelyard render` first"
    for name in sorted(here.keys() - there.keys()):
        yield f"{name} was not delivered"
    for name in sorted(there.keys() - here.keys()):
        yield f"{name} was delivered and is not rendered any more"
    for name in sorted(here.keys() & there.keys()):
        digest = hashlib.md5(here[name], usedforsecurity=False).hexdigest()
        # The tag of an object that came in parts is not the hash of its content.
        same = read(name) == here[name] if "-" in there[name] else digest == there[name]
        if not same:
            yield f"{name} differs from what is rendered"


def _all(eks: Any, operation: str, key: str, settings: Environment) -> list[str]:
    pages = eks.get_paginator(operation).paginate(clusterName=settings.cluster_name)
    return sorted(name for page in pages for name in page[key])


def _parts(check: str, seen: str, found: Mapping[str, Mapping[str, Any]], none: str) -> Answer:
    """The answer over parts of the cluster by name; EKS looks after those that did not fail for good."""
    problems = [problem for name, part in found.items() for problem in _ailments(name, part)]
    mending = all(part["status"] in {"ACTIVE", "DEGRADED", *_CHANGING} for part in found.values())
    return Answer(check, seen, tuple(problems) if found else (none,), bool(found) and mending)


def _ailments(name: str, found: Mapping[str, Any]) -> list[str]:
    """What EKS says against a part of the cluster."""
    inactive = [] if found["status"] == "ACTIVE" else [f"{name} is {found['status']}"]
    return [*inactive, *(f"{name}: {issue}" for issue in _issues(found))]


def _issues(found: Mapping[str, Any]) -> list[str]:
    issues = found.get("health", {}).get("issues", [])
    return [f"{issue.get('code')}: {issue.get('message', 'no message')}" for issue in issues]


def verify(clients: Clients, settings: Environment, tree: Path) -> list[Answer]:
    """Every check that applies, all in one run; where there is no cluster the checks of what is in it are left out."""
    answers = [stacks(clients, settings), cluster(clients, settings)]
    if answers[-1].problems != ("there is no such cluster",):
        if not settings.cluster.auto_mode:  # which has no node group
            answers.append(node_groups(clients, settings))
        answers.append(addons(clients, settings))
    if settings.delivery == "flux" and not any("delivery" in problem for problem in answers[0].problems):
        answers.append(delivered(clients, settings, tree))
        if settings.reports_checks:
            answers.append(models(clients, settings, tree))
    return answers
