"""IAM rules for templates: no wildcard actions, and wildcard resources only for actions without resource
types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from infra.controls.violation import Template

_AUTHORIZATION: Final = "https://docs.aws.amazon.com/service-authorization/latest/reference/"

UNSCOPED: Final = {
    **dict.fromkeys(
        (
            "ec2:DescribeCapacityReservations",
            "ec2:DescribeImages",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribePlacementGroups",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSpotPriceHistory",
            "ec2:DescribeSubnets",
        ),
        _AUTHORIZATION + "list_amazonec2.html",
    ),
    "ecr:GetAuthorizationToken": _AUTHORIZATION + "list_amazonelasticcontainerregistry.html",
    "pricing:GetProducts": _AUTHORIZATION + "list_awspricelist.html",
    "iam:ListInstanceProfiles": _AUTHORIZATION + "list_awsidentityandaccessmanagementiam.html",
    # Its only resource types are load balancers; a cluster is matched by the condition key
    # arc-zonal-shift:ResourceIdentifier.
    "arc-zonal-shift:GetManagedResource": _AUTHORIZATION
    + "list_amazonapplicationrecoverycontroller-zonalshift.html",
}
"""Actions without resource-level permissions, each with the AWS page that says so."""

_BROAD: Final = ("AdministratorAccess", "PowerUserAccess", "IAMFullAccess")

_DOCUMENTS: Final = {
    "AWS::IAM::Policy": "PolicyDocument",
    "AWS::IAM::ManagedPolicy": "PolicyDocument",
}
_RESOURCE_DOCUMENTS: Final = {
    "AWS::S3::BucketPolicy": "PolicyDocument",
    "AWS::SQS::QueuePolicy": "PolicyDocument",
    "AWS::SNS::TopicPolicy": "PolicyDocument",
    "AWS::KMS::Key": "KeyPolicy",
    "AWS::EFS::FileSystem": "FileSystemPolicy",
    "AWS::SecretsManager::ResourcePolicy": "ResourcePolicy",
    "AWS::ECR::Repository": "RepositoryPolicyText",
}


def as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Logical id and statement of everything that grants permissions to an identity."""
    for name, resource in template.get("Resources", {}).items():
        properties = resource.get("Properties", {})
        documents = [properties.get(_DOCUMENTS[resource["Type"]])] if resource["Type"] in _DOCUMENTS else []
        if resource["Type"] in ("AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group"):
            documents = [policy.get("PolicyDocument") for policy in as_list(properties.get("Policies"))]
        for document in documents:
            for statement in as_list((document or {}).get("Statement")):
                if statement.get("Effect") == "Allow":
                    yield name, statement


def wildcard_action(template: Template) -> Iterator[tuple[str, str]]:
    for name, statement in statements(template):
        if "NotAction" in statement:
            yield name, "NotAction allows everything that it does not name"
        wide = [action for action in as_list(statement.get("Action")) if "*" in action]
        if wide:
            yield name, f"actions by wildcard: {', '.join(wide)}"


def wildcard_resource(template: Template) -> Iterator[tuple[str, str]]:
    for name, statement in statements(template):
        if "NotResource" in statement:
            yield name, "NotResource allows everything that it does not name"
        if "*" not in as_list(statement.get("Resource")):
            continue
        scoped = [action for action in as_list(statement.get("Action")) if action not in UNSCOPED]
        if scoped:
            yield name, f"on every resource: {', '.join(scoped)}"


def broad_managed_policy(template: Template) -> Iterator[tuple[str, str]]:
    for name, resource in template.get("Resources", {}).items():
        if not resource["Type"].startswith("AWS::IAM::"):
            continue
        for policy in as_list(resource.get("Properties", {}).get("ManagedPolicyArns")):
            broad = [each for each in _BROAD if each in str(policy)]
            if broad:
                yield name, f"the managed policy {broad[0]}"


def any_pod_may_assume(template: Template) -> Iterator[tuple[str, str]]:
    needed = {
        f"aws:RequestTag/{tag}"
        for tag in ("eks-cluster-arn", "kubernetes-namespace", "kubernetes-service-account")
    }
    for name, resource in template.get("Resources", {}).items():
        if resource["Type"] != "AWS::IAM::Role":
            continue
        for statement in as_list(resource["Properties"]["AssumeRolePolicyDocument"].get("Statement")):
            if "pods.eks.amazonaws.com" not in as_list(statement.get("Principal", {}).get("Service")):
                continue
            equal = statement.get("Condition", {}).get("StringEquals", {})
            if missing := needed - set(equal):
                yield (
                    name,
                    f"any association in the account may name the role; no condition on {', '.join(sorted(missing))}",
                )


def whole_file_system(template: Template) -> Iterator[tuple[str, str]]:
    for name, resource in template.get("Resources", {}).items():
        if resource["Type"] != "AWS::EFS::FileSystem":
            continue
        for statement in as_list((resource["Properties"].get("FileSystemPolicy") or {}).get("Statement")):
            if statement.get("Effect") == "Allow" and "elasticfilesystem:AccessPointArn" not in str(
                statement.get("Condition")
            ):
                yield (
                    name,
                    "a client may mount the root of the file system and choose its uid; require an access point",
                )


def anonymous_mounts(template: Template) -> Iterator[tuple[str, str]]:
    for name, resource in template.get("Resources", {}).items():
        if resource["Type"] != "AWS::EFS::FileSystem":
            continue
        policy = resource["Properties"].get("FileSystemPolicy")
        if not policy:
            yield name, "has no policy, and EFS' own lets everybody mount who reaches a mount target"
        for statement in as_list((policy or {}).get("Statement")):
            principal = statement.get("Principal")
            everybody = principal == "*" or "*" in as_list((principal or {}).get("AWS"))
            if statement.get("Effect") == "Allow" and everybody:
                yield name, "a client may mount without credentials; name the role of the CSI driver"


def open_gateway_endpoint(template: Template) -> Iterator[tuple[str, str]]:
    for name, resource in template.get("Resources", {}).items():
        properties = resource.get("Properties", {})
        gateway = (
            resource["Type"] == "AWS::EC2::VPCEndpoint" and properties.get("VpcEndpointType") == "Gateway"
        )
        if gateway and not properties.get("PolicyDocument"):
            yield name, "credentials of any account may carry data out of the VPC: the endpoint has no policy"


def unbounded_role(template: Template) -> Iterator[tuple[str, str]]:
    principals = {
        name: resource.get("Properties", {})
        for name, resource in template.get("Resources", {}).items()
        if resource["Type"] in ("AWS::IAM::Role", "AWS::IAM::User")
    }
    if any(each.get("PermissionsBoundary") for each in principals.values()):
        for name, properties in principals.items():
            if not properties.get("PermissionsBoundary"):
                yield (
                    name,
                    "has no permissions boundary, and others in the stack have: an organisation may refuse it",
                )


def one_entry_a_principal(template: Template) -> Iterator[tuple[str, str]]:
    seen: dict[str, str] = {}
    for name, resource in template.get("Resources", {}).items():
        if resource["Type"] == "AWS::EKS::AccessEntry":
            principal = str(resource["Properties"].get("PrincipalArn"))
            if principal in seen:
                yield (
                    seen[principal],
                    f"{name} is a second entry of its principal: EKS answers 409, and the stack rolls back",
                )
            seen.setdefault(principal, name)


_POLICIES_OF_TOPICS = {"AWS::KMS::Key": "KeyPolicy", "AWS::SNS::TopicPolicy": "PolicyDocument"}


def conditioned_eventbridge(template: Template) -> Iterator[tuple[str, str]]:
    """EventBridge publishes without `aws:SourceAccount` and `aws:SourceArn`: SNS developer guide,
    sns-key-management; EventBridge user guide, eb-use-resource-based."""
    for name, resource in template.get("Resources", {}).items():
        policy = resource.get("Properties", {}).get(_POLICIES_OF_TOPICS.get(resource["Type"], ""), {})
        for statement in as_list(policy.get("Statement")):
            principal = statement.get("Principal")
            services = as_list(principal.get("Service")) if isinstance(principal, dict) else []
            allows = statement["Effect"] == "Allow" and "events.amazonaws.com" in services
            if allows and "Condition" in statement:
                yield name, "EventBridge meets no condition here, so that its events never reach a topic"


def broad_workflow_trust(template: Template) -> Iterator[tuple[str, str]]:
    for name, resource in template.get("Resources", {}).items():
        if resource["Type"] != "AWS::IAM::Role":
            continue
        for statement in as_list(resource["Properties"]["AssumeRolePolicyDocument"].get("Statement")):
            if statement.get("Action") != "sts:AssumeRoleWithWebIdentity":
                continue
            condition = statement.get("Condition", {})
            subjects = [
                subject
                for key, value in condition.get("StringEquals", {}).items()
                if key.endswith(":sub")
                for subject in as_list(value)
            ]
            if not subjects or any(
                "*" in str(subject) or ":environment:" not in str(subject) for subject in subjects
            ):
                yield (
                    name,
                    "tokens of other repositories or environments may assume it; name subject and environment in full",
                )


def open_resource_policy(template: Template) -> Iterator[tuple[str, str]]:
    for name, resource in template.get("Resources", {}).items():
        key = _RESOURCE_DOCUMENTS.get(resource["Type"])
        document = resource.get("Properties", {}).get(key) if key else None
        for statement in as_list((document or {}).get("Statement")):
            principal = statement.get("Principal")
            named = as_list(principal.get("AWS")) if isinstance(principal, dict) else [principal]
            if statement.get("Effect") == "Allow" and "*" in named and not statement.get("Condition"):
                yield name, f"everybody may {', '.join(as_list(statement.get('Action')))}"
