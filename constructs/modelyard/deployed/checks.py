"""Does an environment stand as it was deployed? Everything that can be seen without reaching into a private cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from modelyard.planning.identity import ENVIRONMENT_TAG
from modelyard.spec import Environment

Clients = Callable[[str], Any]
"""Name of an AWS service to a boto3 client."""

_SETTLED: Final = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}


@dataclass(frozen=True)
class Answer:
    """`problems` is empty where all is as it should be; `seen` says what was looked at."""

    check: str
    seen: str
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.problems


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
    problems += [f"{name} is {status}" for name, status in sorted(found.items()) if status not in _SETTLED]
    return Answer("stacks", f"{len(found)} stacks", tuple(problems))


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
    return Answer("cluster", f"{settings.cluster_name}, Kubernetes {found['version']}", tuple(problems))


def node_groups(clients: Clients, settings: Environment) -> Answer:
    eks = clients("eks")
    names = _all(eks, "list_nodegroups", "nodegroups", settings)
    problems = [] if names else ["there is none: nothing could run Karpenter"]
    for name in names:
        found = eks.describe_nodegroup(clusterName=settings.cluster_name, nodegroupName=name)["nodegroup"]
        problems += _ailments(name, found)
    return Answer("node groups", ", ".join(names), tuple(problems))


def addons(clients: Clients, settings: Environment) -> Answer:
    eks = clients("eks")
    names = _all(eks, "list_addons", "addons", settings)
    problems = [] if names else ["there is none: nodes could not become ready"]
    for name in names:
        found = eks.describe_addon(clusterName=settings.cluster_name, addonName=name)["addon"]
        problems += _ailments(name, found)
    return Answer("add-ons", f"{len(names)} add-ons", tuple(problems))


def delivered(clients: Clients, settings: Environment, tree: Path) -> Answer:
    """Whether the bucket that Flux reads holds `tree`, file by file."""
    resources = clients("cloudformation").describe_stack_resources(
        StackName=f"modelyard-{settings.name}-delivery"
    )["StackResources"]
    buckets = [each["PhysicalResourceId"] for each in resources if each["ResourceType"] == "AWS::S3::Bucket"]
    if len(buckets) != 1:
        return Answer("tree", "", (f"the delivery stack has {len(buckets)} buckets",))
    s3 = clients("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=buckets[0])
    there = {item["Key"]: item["ETag"].strip('"') for page in pages for item in page.get("Contents", [])}
    here = {
        str(path.relative_to(tree)): path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()
    }
    problems = list(
        _differences(here, there, lambda key: s3.get_object(Bucket=buckets[0], Key=key)["Body"].read())
    )
    return Answer("tree", f"{len(here)} files in {buckets[0]}", tuple(problems))


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
    return answers
