"""The Kubernetes version, and the cluster with its add-ons and nodes, if Modelyard has made it already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from packaging.version import Version

from modelyard.hardware.tables import yaml_table
from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import (
    AccountCheck,
    Case,
    Diagnosis,
    days_between,
    ok,
    one_by_one,
    problem,
)
from modelyard.live.eks import (
    ABSENT,
    DESCRIBE_ADDON,
    DESCRIBE_CLUSTER,
    DESCRIBE_NODE_GROUP,
    LIST_ADDONS,
    LIST_NODE_GROUPS,
    addon_names,
    described_addon,
    described_cluster,
    described_node_groups,
    issues,
)
from modelyard.planning.identity import cluster_addons
from modelyard.spec.cluster import Cluster

_VERSIONS = Operation("eks", "DescribeClusterVersions")
_ADDON_VERSIONS = Operation("eks", "DescribeAddonVersions")
_VPCS = Operation("ec2", "DescribeVpcs")
_STANDARD = "STANDARD_SUPPORT"
_KNOWN: tuple[str, ...] = get_args(Cluster.model_fields["version"].annotation)
_NEWER_RELEASE = f"this release of Modelyard knows {', '.join(_KNOWN)}: take a newer one"


def _judge_version(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    wanted = case.environment.cluster.version
    rows = ask(_VERSIONS)["clusterVersions"]
    known = {row["clusterVersion"]: row for row in rows}
    # EKS may be newer: an environment file only accepts versions known to this release of Modelyard.
    standard = sorted(
        (v for v in _KNOWN if v in known and _support(known[v]) == _STANDARD), key=Version, reverse=True
    )
    best = standard[0] if standard else None
    fix = _version_line(case, best) if best else _NEWER_RELEASE
    row = known.get(wanted)
    if row is None or _support(row) != _STANDARD:
        support = "unknown to EKS" if row is None else f"in {_support(row).lower().replace('_', ' ')}"
        yield problem(wanted, f"Kubernetes {wanted} is {support}, not in standard support", fix)
        return
    end = row.get("endOfStandardSupportDate")
    if end is None:
        yield ok(wanted, f"Kubernetes {wanted} is in standard support")
        return
    left = days_between(case.now, end)
    facts = f"Kubernetes {wanted} is in standard support until {end:%Y-%m-%d}, {left} days"
    if left < yaml_table("account.yaml")["kubernetes"]["daysOfSupportLeft"] and best != wanted:
        yield problem(wanted, facts, fix)
    else:
        yield ok(wanted, facts)


def _support(row: dict[str, Any]) -> str:
    """EKS has two fields: `versionStatus` replaces `status`, which some regions may still return alone."""
    return str(row.get("versionStatus") or row.get("status", "unknown")).upper().replace("-", "_")


def _version_line(case: Case, version: str) -> str:
    return f"in {case.file}: cluster: {{version: {version!r}}}"


def _judge_cluster(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    environment = case.environment
    name, wanted = environment.cluster_name, environment.cluster.version
    if environment.cluster.existing:
        return
    cluster = described_cluster(ask, name)
    if cluster is None:
        yield ok(name, "not there yet; `cdk deploy` makes it")
        return
    has = cluster["version"]
    runs, said = Version(has), Version(wanted)
    has_mode = "auto-mode" if (cluster.get("computeConfig") or {}).get("enabled") else "karpenter"
    if has_mode != environment.cluster.compute:
        yield problem(
            name,
            f"the cluster runs with compute: {has_mode}, {case.file} says {environment.cluster.compute}; that replaces the "
            "cluster, which CloudFormation refuses for a fixed name, and nodes of both kinds would have no owner",
            f"in {case.file}: cluster: {{compute: {has_mode}}}; for the other, make a second environment and move the callers",
        )
        return
    if moved := _another_network(ask, case, cluster):
        yield moved
        return
    if cluster["status"] != "ACTIVE":
        yield problem(
            name,
            f"the cluster is {cluster['status']}",
            f"aws eks wait cluster-active --name {name} --region {environment.region}",
        )
    elif runs > said:
        yield problem(
            name,
            f"the cluster runs Kubernetes {has}, {case.file} says {wanted}, and a deploy takes no version back",
            _version_line(case, has) if has in _KNOWN else _NEWER_RELEASE,
        )
    elif said.minor - runs.minor > 1:
        step = f"1.{runs.minor + 1}"
        yield problem(
            name,
            f"the cluster runs Kubernetes {has}, {case.file} says {wanted}, and EKS goes one minor version at a time",
            f"{_version_line(case, step)}, deploy, then go on"
            if step in _KNOWN
            else f"aws eks update-cluster-version --name {name} --kubernetes-version {step} --region {environment.region}",
        )
    elif has != wanted:
        yield ok(name, f"runs Kubernetes {has}; the next deploy upgrades it to {wanted}")
    else:
        yield ok(name, f"active, Kubernetes {has}")


def _another_network(ask: Ask, case: Case, cluster: dict[str, Any]) -> Diagnosis | None:
    """A problem if the file's network is not the cluster's: its subnets and security groups stay in one
    VPC."""
    network, there = case.environment.network, (cluster.get("resourcesVpcConfig") or {}).get("vpcId")
    if not there:
        return None
    if network.vpc:
        has, said, line = there, network.vpc.id, f"network: {{vpc: {{id: {there}}}}}"
    else:
        found = ask(_VPCS, Filters=[{"Name": "vpc-id", "Values": [there]}])["Vpcs"]
        has, said = (found[0]["CidrBlock"] if found else network.cidr), network.cidr
        line = f"network: {{cidr: {has}}}"
    if has == said:
        return None
    return problem(
        case.environment.cluster_name,
        f"the cluster is in {has}, {case.file} says {said}; a deploy would make another VPC, into which EKS moves no cluster",
        f"in {case.file}: {line}; for another network, make a second environment and move the callers",
    )


def _judge_addons(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    name = case.environment.cluster_name
    if case.environment.cluster.existing:
        return
    try:
        installed = addon_names(ask, name)
    except Refusal as refused:
        if refused.code == ABSENT:
            return  # without a cluster there are no add-ons; check `cluster` reports that
        raise
    yield from one_by_one(installed, lambda addon: _addon(ask, case, addon))


def _addon(ask: Ask, case: Case, name: str) -> Diagnosis:
    environment = case.environment
    wanted = environment.cluster.version
    addon = described_addon(ask, environment.cluster_name, name)
    offered = ask(_ADDON_VERSIONS, kubernetesVersion=wanted, addonName=name)["addons"]
    versions = [version for each in offered for version in each["addonVersions"]]
    compatible = [version["addonVersion"] for version in versions]
    default = next(
        (
            version["addonVersion"]
            for version in versions
            if any(c.get("defaultVersion") for c in version.get("compatibilities", ()))
        ),
        compatible[0] if compatible else None,
    )
    facts = f"{addon['addonVersion']}, {addon['status']}"
    update = (
        f"aws eks update-addon --cluster-name {environment.cluster_name} --addon-name {name} "
        f"--addon-version {default} --region {environment.region}"
    )
    if default is None:
        return problem(
            name,
            f"{facts}; EKS has no version of it for Kubernetes {wanted}",
            f"keep {case.file} at its version",
        )
    if addon["addonVersion"] not in compatible:
        return problem(name, f"{facts}, is not made for Kubernetes {wanted}", update)
    if addon["status"] not in ("ACTIVE", "UPDATING", "CREATING"):
        return problem(name, f"{facts} {'; '.join(issues(addon))}".rstrip(), update)
    return ok(name, facts)


def _judge_nodes(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    """Whether a deploy would take the system nodes' AMI back, which EKS refuses."""
    environment = case.environment
    if environment.cluster.auto_mode or environment.cluster.existing:
        return
    try:
        groups = described_node_groups(ask, environment.cluster_name)
    except Refusal as refused:
        if refused.code == ABSENT:
            return
        raise
    wanted = environment.cluster.system_release
    for name, group in groups.items():
        runs = str(group.get("releaseVersion", ""))
        if _release_day(runs) > _release_day(wanted):
            yield problem(
                name,
                f"the nodes run AMI release {runs}, a deploy would take them back to {wanted}, and EKS takes none back",
                f"in {case.file}: cluster: {{systemNodes: {{releaseVersion: {runs}}}}}",
            )
        else:
            yield ok(name, f"AMI release {runs}" if runs == wanted else f"AMI release {runs}, then {wanted}")


def _release_day(release: str) -> str:
    """The day in a release such as 1.36.2-20260714; later is newer."""
    return release.rpartition("-")[2]


def _judge_versions(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    """Whether EKS still offers the versions that a deploy installs: it withdraws old builds."""
    cluster = case.environment.cluster
    offered = {
        addon["addonName"]: [version["addonVersion"] for version in addon["addonVersions"]]
        for addon in ask(_ADDON_VERSIONS, kubernetesVersion=cluster.version)["addons"]
    }
    wanted = cluster_addons(case.environment)
    missing = [name for name in wanted if cluster.addon_version(name) not in offered.get(name, ())]
    for name in missing:
        newest = offered.get(name, [])[:1]
        yield problem(
            name,
            f"EKS does not offer {cluster.addon_version(name)} for Kubernetes {cluster.version}, which a deploy installs",
            f"in {case.file}: cluster: {{addonVersions: {{{name}: {newest[0]}}}}}"
            if newest
            else f"aws eks describe-addon-versions --addon-name {name} --kubernetes-version {cluster.version} "
            f"--region {case.environment.region}",
        )
    if not missing:
        yield ok(
            cluster.version, f"EKS offers all {len(wanted)} add-ons at the versions that a deploy installs"
        )


KUBERNETES = AccountCheck("kubernetes", (_VERSIONS,), _judge_version)
CLUSTER = AccountCheck("cluster", (DESCRIBE_CLUSTER, _VPCS), _judge_cluster)
ADDONS = AccountCheck("addons", (LIST_ADDONS, DESCRIBE_ADDON, _ADDON_VERSIONS), _judge_addons)
NODES = AccountCheck("system nodes", (LIST_NODE_GROUPS, DESCRIBE_NODE_GROUP), _judge_nodes)
VERSIONS = AccountCheck("versions", (_ADDON_VERSIONS,), _judge_versions)
