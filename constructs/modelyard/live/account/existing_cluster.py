"""Whether an existing cluster is as its environment file says, and lets a deploy add what it lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from modelyard.live.account.principals import admitted
from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, one_by_one, problem, unknown
from modelyard.live.eks import (
    ABSENT,
    DESCRIBE_ADDON,
    DESCRIBE_CLUSTER,
    LIST_ADDONS,
    addon_names,
    described_addon,
    described_cluster,
)
from modelyard.names import ENVIRONMENT_TAG
from modelyard.planning.identity import cluster_addons
from modelyard.releases import addons, minors
from modelyard.spec.existing_cluster import ExistingCluster

_ENTRY = Operation("eks", "DescribeAccessEntry")
_INSTANCES = Operation("ec2", "DescribeInstances")
_ROLE = Operation("iam", "GetRole")
_ENFORCED = re.compile(r"\benableNetworkPolicy\b[\"']?\s*:\s*[\"']?true\b", re.IGNORECASE)
_NETWORK_PLUGIN = "vpc-cni"


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    environment = case.environment
    existing, name = environment.cluster.existing, environment.cluster_name
    if existing is None:
        return
    cluster = described_cluster(ask, name)
    if cluster is None:
        yield problem(
            name,
            f"{environment.region} of account {environment.account} has no such cluster",
            f"in {case.file}: cluster: {{name: …}}: aws eks list-clusters --region {environment.region}",
        )
        return
    if _ours(case, cluster):
        yield problem(
            name,
            f"Modelyard has made this cluster; with `existing` in {case.file}, a deploy would delete it",
            f"take existing out of {case.file}",
        )
        return
    found = [*_differences(case, existing, cluster)]
    yield from found or [ok(name, f"{case.file} describes it as it is")]
    yield from _admission(ask, case, cluster)
    roles = {"nodeRole": existing.node_role, "secretsRole": existing.secrets_role}
    yield from one_by_one(
        (key for key, role in roles.items() if role), lambda key: _role(ask, case, key, roles[key] or "")
    )
    yield from _groups(ask, case, existing)


def _groups(ask: Ask, case: Case, existing: ExistingCluster) -> Iterator[Diagnosis]:
    """Whether the nodes that are there are in the group that those of the pools would join: others may not
    reach the cluster's DNS."""
    name = case.environment.cluster_name
    filters = [
        {"Name": f"tag:kubernetes.io/cluster/{name}", "Values": ["owned"]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    nodes = [
        each
        for reservation in ask(_INSTANCES, Filters=filters)["Reservations"]
        for each in reservation["Instances"]
    ]
    groups = {group["GroupId"] for node in nodes for group in node.get("SecurityGroups", ())}
    if groups and existing.nodes_join not in groups:
        yield problem(
            existing.nodes_join,
            f"no running node of the cluster is in this security group, they are in {', '.join(sorted(groups))}: pods of pools "
            "may not reach its DNS",
            f"in {case.file}: cluster: {{existing: {{nodeSecurityGroup: {min(groups)}}}}}",
        )


def _role(ask: Ask, case: Case, key: str, role: str) -> Diagnosis:
    name = role.rpartition("/")[2]
    try:
        found = ask(_ROLE, RoleName=name)["Role"]["Arn"]
    except Refusal as refused:
        if refused.code not in ("NoSuchEntity", "NoSuchEntityException"):
            raise
        found = None
    if found and role in (name, found):
        return ok(name, f"cluster.existing.{key}: the role exists")
    return problem(
        name,
        f"cluster.existing.{key}: " + (f"the role's ARN is {found}" if found else "IAM has no such role"),
        f"in {case.file}: cluster: {{existing: {{{key}: {found or '…'}}}}}: aws iam list-roles --query 'Roles[].Arn'",
    )


def _differences(case: Case, existing: ExistingCluster, cluster: dict[str, Any]) -> Iterator[Diagnosis]:
    environment, said = case.environment, case.environment.cluster
    network = cluster.get("resourcesVpcConfig") or {}
    mode = "auto-mode" if (cluster.get("computeConfig") or {}).get("enabled") else "karpenter"
    vpc = environment.network.vpc.id if environment.network.vpc else ""
    version = str(cluster["version"])
    known = version in minors()
    fix = f"in {case.file}: "
    for what, has, stated, line in (
        ("Kubernetes", version, said.version, f'cluster: {{version: "{version}"}}'),
        ("compute", mode, said.compute, f"cluster: {{compute: {mode}}}"),
        ("VPC", network.get("vpcId"), vpc, f"network: {{vpc: {{id: {network.get('vpcId')}}}}}"),
        (
            "security group",
            network.get("clusterSecurityGroupId"),
            existing.security_group,
            f"cluster: {{existing: {{securityGroup: {network.get('clusterSecurityGroupId')}}}}}",
        ),
    ):
        if has and has != stated:
            yield problem(
                environment.cluster_name,
                f"{what} of the cluster is {has}, {case.file} says {stated}",
                fix + line
                if known or what != "Kubernetes"
                else f"this release of Modelyard knows Kubernetes {', '.join(minors())}: upgrade the cluster",
            )
    if cluster["status"] != "ACTIVE":
        yield problem(
            environment.cluster_name,
            f"the cluster is {cluster['status']}",
            f"aws eks wait cluster-active --name {environment.cluster_name} --region {environment.region}",
        )


def _admission(ask: Ask, case: Case, cluster: dict[str, Any]) -> Iterator[Diagnosis]:
    """Whether access entries can be made, and Flux' installer reaches the API server."""
    environment, name = case.environment, case.environment.cluster_name
    update = f"aws eks update-cluster-config --name {name} --region {environment.region}"
    if (cluster.get("accessConfig") or {}).get("authenticationMode") == "CONFIG_MAP":
        yield problem(
            name,
            "it admits principals by the ConfigMap aws-auth alone, and EKS refuses every access entry",
            f"{update} --access-config authenticationMode=API_AND_CONFIG_MAP # aws-auth stays; EKS has no way back",
        )
        return
    network = cluster.get("resourcesVpcConfig") or {}
    if environment.delivery == "flux" and network.get("endpointPrivateAccess") is False:
        yield problem(
            name,
            "its API server has no private endpoint, by which Flux' installer, a function in the VPC, reaches it",
            f"{update} --resources-vpc-config endpointPrivateAccess=true",
        )
    yield from one_by_one(admitted(case.environment), lambda principal: _entry(ask, case, principal))


def _entry(ask: Ask, case: Case, principal: str) -> Diagnosis:
    try:
        entry = ask(_ENTRY, clusterName=case.environment.cluster_name, principalArn=principal)["accessEntry"]
    except Refusal as refused:
        if refused.code != ABSENT:
            raise
        return ok(principal, "the cluster does not know it yet; a deploy makes its access entry")
    if _ours(case, entry):
        return ok(principal, "its access entry is this environment's")
    return problem(
        principal,
        "the cluster has an access entry for it already, and EKS refuses a second one",
        f"give it what it lacks there: `aws eks associate-access-policy`, and take it out of {case.file}",
    )


def _judge_addons(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    existing = case.environment.cluster.existing
    if existing is None:
        return
    try:
        installed = addon_names(ask, case.environment.cluster_name)
    except Refusal as refused:
        if refused.code == ABSENT:
            return  # check `existing cluster` reports that
        raise
    stated = [name for name in existing.has if name in addons() and name not in installed]
    for name in stated:
        yield unknown(
            name, f"no add-on of EKS there; {case.file} says that the cluster has {existing.has[name]}"
        )
    yield from one_by_one(installed, lambda name: _addon(ask, case, existing, name))


def _addon(ask: Ask, case: Case, existing: ExistingCluster, name: str) -> Diagnosis:
    environment = case.environment
    addon = described_addon(ask, environment.cluster_name, name)
    version = str(addon["addonVersion"])
    if name == _NETWORK_PLUGIN and not _enforces_policies(addon):
        return problem(
            name,
            "it does not enforce NetworkPolicies: models would be open to every pod of the cluster",
            f"aws eks update-addon --cluster-name {environment.cluster_name} --addon-name {name} --resolve-conflicts PRESERVE "
            f'--configuration-values \'{{"enableNetworkPolicy": "true"}}\' --region {environment.region}',
        )
    if _ours(case, addon):
        return ok(name, f"{version}, this environment's")
    if name in existing.has:
        if existing.has[name] == version:
            return ok(name, f"{version}, as {case.file} says")
        return problem(
            name,
            f"the cluster has {version}, {case.file} says {existing.has[name]}",
            f"in {case.file}: cluster: {{existing: {{has: {{{name}: {version}}}}}}}",
        )
    if name in cluster_addons(environment):
        return problem(
            name,
            f"the cluster has {version} already, and a deploy would fail to install it again",
            f"in {case.file}: cluster: {{existing: {{has: {{{name}: {version}}}}}}}",
        )
    return ok(name, f"{version}, left alone")


def _enforces_policies(addon: dict[str, Any]) -> bool:
    """By its settings, which EKS takes as JSON or as YAML and gives back as they were given."""
    return _ENFORCED.search(addon.get("configurationValues") or "") is not None


def _ours(case: Case, described: dict[str, Any]) -> bool:
    tags = described.get("tags") or {}
    return bool(tags.get(ENVIRONMENT_TAG) == case.environment.name)


EXISTING_CLUSTER = AccountCheck("existing cluster", (DESCRIBE_CLUSTER, _ENTRY, _INSTANCES, _ROLE), _judge)
EXISTING_ADDONS = AccountCheck("its add-ons", (LIST_ADDONS, DESCRIBE_ADDON), _judge_addons)
