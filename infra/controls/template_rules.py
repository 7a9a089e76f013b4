"""Rules for CloudFormation templates that the other checkers lack.

cdk-nag knows `aws_eks`, not `aws_eks_v2`; checkov has no rule for a public API server; neither requires all
five control-plane logs or detects a node group on Amazon Linux 2. A rule is a function of a template and
yields the logical id of a resource and a message. Values that only CloudFormation knows count as wrong where
a literal would be right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from infra.controls import iam_rules
from infra.controls.violation import Template
from modelyard.releases import upstreams
from modelyard.secret_values import sightings

Broken = tuple[str, str]
Rule = Callable[[Template], Iterator[Broken]]

_WORLD: Final = ("0.0.0.0/0", "::/0")
_CONTROL_PLANE_LOGS: Final = {"api", "audit", "authenticator", "controllerManager", "scheduler"}


def resources(template: Template, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Logical id and properties of every resource of type `kind`."""
    for name, resource in template.get("Resources", {}).items():
        if resource["Type"] == kind:
            yield name, resource.get("Properties", {})


def eks_endpoint_open(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::EKS::Cluster"):
        network = properties.get("ResourcesVpcConfig", {})
        if network.get("EndpointPublicAccess", True) is False:  # EKS defaults to a public endpoint
            continue
        cidrs = network.get("PublicAccessCidrs") or list(_WORLD)
        if not isinstance(cidrs, list) or any(cidr in _WORLD for cidr in cidrs):
            yield (
                name,
                "the API server can be reached from the whole internet; name networks or make it private",
            )


def eks_control_plane_logs(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::EKS::Cluster"):
        stated = properties.get("Logging", {}).get("ClusterLogging", {}).get("EnabledTypes", [])
        if missing := _CONTROL_PLANE_LOGS - {each.get("Type") for each in stated}:
            yield name, f"logs of the control plane are off: {', '.join(sorted(missing))}"


def eks_secrets_encryption(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::EKS::Cluster"):
        encrypted = [
            kind
            for each in properties.get("EncryptionConfig", [])
            if each.get("Provider", {}).get("KeyArn")
            for kind in each.get("Resources", [])
        ]
        if "secrets" not in encrypted:
            yield name, "Kubernetes secrets have no key of their own"


def eks_node_image(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::EKS::Nodegroup"):
        image = properties.get("AmiType")
        if not isinstance(image, str) or image.startswith("AL2_"):
            yield name, f"nodes run Amazon Linux 2, which has no images for current Kubernetes: {image}"


def launch_template_imds(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::EC2::LaunchTemplate"):
        options = properties.get("LaunchTemplateData", {}).get("MetadataOptions", {})
        if options.get("HttpEndpoint") == "disabled":
            continue
        if options.get("HttpTokens") != "required":
            yield name, "instance metadata answers without a token (IMDSv1)"
        elif options.get("HttpPutResponseHopLimit") != 1:
            yield name, "instance metadata can be reached from pods; one hop ends at the node"


def vpc_flow_log(template: Template) -> Iterator[Broken]:
    logged = [
        watched.get("Ref") if isinstance(watched := properties.get("ResourceId"), dict) else watched
        for _, properties in resources(template, "AWS::EC2::FlowLog")
        if properties.get("TrafficType", "ALL") == "ALL"
    ]
    for name, _ in resources(template, "AWS::EC2::VPC"):
        if name not in logged:
            yield (
                name,
                "nobody could say afterwards who talked to whom: the VPC has no flow log of all traffic",
            )


def security_group_open(template: Template) -> Iterator[Broken]:
    inline = [
        (name, rule)
        for name, properties in resources(template, "AWS::EC2::SecurityGroup")
        for rule in properties.get("SecurityGroupIngress", [])
    ]
    for name, rule in [*inline, *resources(template, "AWS::EC2::SecurityGroupIngress")]:
        if rule.get("CidrIp") in _WORLD or rule.get("CidrIpv6") in _WORLD:
            ports = f"{rule.get('FromPort', 'all')}-{rule.get('ToPort', 'all')}"
            yield name, f"everybody may connect, ports {ports}"


def efs_encryption(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::EFS::FileSystem"):
        if properties.get("Encrypted") is not True:
            yield name, "the file system is not encrypted"


def plain_secret(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::SecretsManager::Secret"):
        if "SecretString" in properties:
            yield (
                name,
                "a secret's value stands in the template; put it in with aws secretsmanager put-secret-value",
            )
    for section in ("Resources", "Parameters", "Outputs"):
        for name, body in template.get(section, {}).items():
            for sighting in sightings(json.dumps(body)):
                yield name, f"a value that looks like a secret: {sighting.what}, {sighting.shown}"


def retained_from_failed_create(template: Template) -> Iterator[Broken]:
    for name, resource in template.get("Resources", {}).items():
        if resource.get("DeletionPolicy") == "Retain":
            yield (
                name,
                "what a failed first create makes is kept, and a second attempt meets its name; use RetainExceptOnCreate",
            )


def log_group_race(template: Template) -> Iterator[Broken]:
    everything = template.get("Resources", {})
    groups = {
        function: name
        for name, properties in resources(template, "AWS::Logs::LogGroup")
        for function in mentioned(properties.get("LogGroupName"))
    }
    for resource in everything.values():
        called = [
            each
            for each in mentioned(resource.get("Properties", {}).get("ServiceToken"))
            if each in everything
        ]
        for function in called:  # a provider's function names the next one in its environment
            environment = everything[function].get("Properties", {}).get("Environment")
            called += [each for each in mentioned(environment) if each in everything and each not in called]
            group = groups.get(function)
            if group and group not in iam_rules.as_list(resource.get("DependsOn")):
                yield (
                    group,
                    "the function's first call creates the group before CloudFormation does, which then fails",
                )


def lustre_before_its_rules(template: Template) -> Iterator[Broken]:
    rules = {
        name: mentioned(properties.get("GroupId"))
        for kind in ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
        for name, properties in resources(template, kind)
    }
    for name, resource in template.get("Resources", {}).items():
        if resource["Type"] == "AWS::FSx::FileSystem":
            used = mentioned(resource["Properties"].get("SecurityGroupIds"))
            needed = {rule for rule, group in rules.items() if set(group) & set(used)}
            if late := needed - set(iam_rules.as_list(resource.get("DependsOn"))):
                yield (
                    name,
                    f"FSx asks the security group at creation; rules may come later: {', '.join(sorted(late))}",
                )


def cache_without_credentials(template: Template) -> Iterator[Broken]:
    known = {each.name: each for each in upstreams().values()}
    for name, properties in resources(template, "AWS::ECR::PullThroughCacheRule"):
        upstream = known.get(str(properties.get("UpstreamRegistry")))
        if upstream is None:
            yield name, f"ECR cannot cache {properties.get('UpstreamRegistryUrl')}"
        elif upstream.credentials and not properties.get("CredentialArn"):
            yield name, f"ECR refuses a rule for {upstream.registry} without the ARN of a secret"


def anomaly_monitor_of_tags(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::CE::AnomalyMonitor"):
        if properties.get("MonitorType") == "CUSTOM":
            yield (
                name,
                "a member's account is refused monitors of tags; a payer's may have it: cost.anomalyMonitor: tag",
            )


def nodegroup_unpatched(template: Template) -> Iterator[Broken]:
    for name, properties in resources(template, "AWS::EKS::Nodegroup"):
        if not properties.get("ReleaseVersion"):
            yield name, "the group keeps the AMI of the day on which it was made, and no deploy patches it"


def mentioned(value: Any) -> list[str]:
    """Logical ids in a property."""
    if isinstance(value, list):
        return [name for item in value for name in mentioned(item)]
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("Ref"), str):
        return [value["Ref"]]
    if "Fn::GetAtt" in value:
        return [str(value["Fn::GetAtt"][0])]
    return [name for item in value.values() for name in mentioned(item)]


RULES: Final[Mapping[str, Rule]] = {
    "eks-endpoint-open": eks_endpoint_open,
    "eks-control-plane-logs": eks_control_plane_logs,
    "eks-secrets-encryption": eks_secrets_encryption,
    "eks-node-image": eks_node_image,
    "launch-template-imds": launch_template_imds,
    "vpc-flow-log": vpc_flow_log,
    "security-group-open": security_group_open,
    "efs-encryption": efs_encryption,
    "plain-secret": plain_secret,
    "retained-from-failed-create": retained_from_failed_create,
    "log-group-race": log_group_race,
    "lustre-before-its-rules": lustre_before_its_rules,
    "cache-without-credentials": cache_without_credentials,
    "iam-wildcard-action": iam_rules.wildcard_action,
    "iam-wildcard-resource": iam_rules.wildcard_resource,
    "iam-broad-managed-policy": iam_rules.broad_managed_policy,
    "resource-policy-open": iam_rules.open_resource_policy,
    "pod-identity-any-pod": iam_rules.any_pod_may_assume,
    "iam-role-without-boundary": iam_rules.unbounded_role,
    "workflow-trust-broad": iam_rules.broad_workflow_trust,
    "access-entry-twice": iam_rules.one_entry_a_principal,
    "eventbridge-conditioned": iam_rules.conditioned_eventbridge,
    "anomaly-monitor-of-tags": anomaly_monitor_of_tags,
    "nodegroup-unpatched": nodegroup_unpatched,
    "efs-whole-file-system": iam_rules.whole_file_system,
    "efs-anonymous-mounts": iam_rules.anonymous_mounts,
    "gateway-endpoint-open": iam_rules.open_gateway_endpoint,
}


def broken_rules(template: Template) -> Iterator[tuple[str, str, str]]:
    """Rule, logical id and message of every violation in `template`."""
    for rule, check in RULES.items():
        for name, message in check(template):
            yield rule, name, message
