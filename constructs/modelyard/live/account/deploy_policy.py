"""The policy for `cdk bootstrap --cloudformation-execution-policies`: what CloudFormation may do.

It is bounded by service and, for IAM, by name: CloudFormation's handlers call undocumented sets of actions
that grow with each property, so a list of actions would fail a later deploy.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from modelyard.hardware.tables import yaml_table
from modelyard.names import stack_name
from modelyard.spec import Environment

IAM_TYPES: Final = (
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::OIDCProvider",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
)
"""Resources of IAM that the policy covers."""

_GRANTS: Final = (
    "iam:AttachRolePolicy",
    "iam:CreateRole",
    "iam:PutRolePermissionsBoundary",
    "iam:PutRolePolicy",
)
_ROLES: Final = (
    "iam:DeleteRole",
    "iam:DeleteRolePolicy",
    "iam:DetachRolePolicy",
    "iam:GetRole",
    "iam:GetRolePolicy",
    "iam:ListAttachedRolePolicies",
    "iam:ListRolePolicies",
    "iam:ListRoleTags",
    "iam:PassRole",
    "iam:TagRole",
    "iam:UntagRole",
    "iam:UpdateAssumeRolePolicy",
    "iam:UpdateRole",
    "iam:UpdateRoleDescription",
)
_POLICIES: Final = (
    "iam:CreatePolicy",
    "iam:CreatePolicyVersion",
    "iam:DeletePolicy",
    "iam:DeletePolicyVersion",
    "iam:GetPolicy",
    "iam:GetPolicyVersion",
    "iam:ListEntitiesForPolicy",
    "iam:ListPolicyVersions",
    "iam:TagPolicy",
    "iam:UntagPolicy",
)
_PROFILES: Final = (
    "iam:AddRoleToInstanceProfile",
    "iam:CreateInstanceProfile",
    "iam:DeleteInstanceProfile",
    "iam:GetInstanceProfile",
    "iam:RemoveRoleFromInstanceProfile",
    "iam:TagInstanceProfile",
    "iam:UntagInstanceProfile",
)
_PROVIDERS: Final = (
    "iam:CreateOpenIDConnectProvider",
    "iam:DeleteOpenIDConnectProvider",
    "iam:GetOpenIDConnectProvider",
    "iam:TagOpenIDConnectProvider",
    "iam:UntagOpenIDConnectProvider",
    "iam:UpdateOpenIDConnectProviderThumbprint",
)


@cache
def service_of(resource_type: str) -> str | None:
    """IAM's name of the service of a CloudFormation type; None if the stacks have no resources of it."""
    services: dict[str, str] = yaml_table("resource_services.yaml")["services"]
    return services.get("::".join(resource_type.split("::")[:2]))


def own_names(environment: Environment) -> tuple[str, ...]:
    """Patterns of the names that roles and policies of the environment's stacks have."""
    return tuple(dict.fromkeys((f"{stack_name(environment.name, '')}*", f"{environment.cluster_name}-*")))


def deploy_policy(environment: Environment) -> dict[str, Any]:
    """The policy document; with `permissionsBoundary` roles are created and granted within it alone."""
    table = yaml_table("resource_services.yaml")
    services = sorted(
        {*table["services"].values(), *(each for more in table["alongside"].values() for each in more)}
    )
    arn = f"arn:{_partition(environment.region)}:iam::{environment.account}"
    roles = [f"{arn}:role/{name}" for name in own_names(environment)]
    granted: dict[str, Any] = {
        "Sid": "OwnRoles",
        "Effect": "Allow",
        "Action": list(_GRANTS),
        "Resource": roles,
    }
    if environment.permissions_boundary:
        granted["Condition"] = {"StringEquals": {"iam:PermissionsBoundary": environment.permissions_boundary}}
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Services",
                "Effect": "Allow",
                "Action": [f"{each}:*" for each in services],
                "Resource": "*",
            },
            granted,
            {"Sid": "OwnRolesLife", "Effect": "Allow", "Action": list(_ROLES), "Resource": roles},
            {
                "Sid": "OwnPolicies",
                "Effect": "Allow",
                "Action": list(_POLICIES),
                "Resource": [f"{arn}:policy/{name}" for name in own_names(environment)],
            },
            {
                "Sid": "OwnProfiles",
                "Effect": "Allow",
                "Action": list(_PROFILES),
                "Resource": [f"{arn}:instance-profile/{name}" for name in own_names(environment)],
            },
            {
                "Sid": "WorkflowIssuer",
                "Effect": "Allow",
                "Action": list(_PROVIDERS),
                "Resource": f"{arn}:oidc-provider/token.actions.githubusercontent.com",
            },
            {
                "Sid": "ServiceRoles",
                "Effect": "Allow",
                "Action": ["iam:CreateServiceLinkedRole"],
                "Resource": f"{arn}:role/aws-service-role/*",
            },
        ],
    }


def _partition(region: str) -> str:
    return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"
