"""Argo CD as a managed EKS capability."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct


class ManagedArgoCd(Construct):
    """The EKS capability Argo CD. It runs outside the cluster, and applies objects through its own access
    entry.

    Creating a capability makes an access entry for its role, if there is none, with policies that cover Argo
    CD's own namespace and nothing that an Application has in it (EKS user guide, "Register target clusters").
    CloudFormation has no resource that adds a policy to an entry of EKS, and an entry that it creates after
    the capability is refused as a duplicate (409). So the entry is made here, before the capability, with
    the policy; configurations that are in use do the same (a capability may take a role that has an entry:
    "Amazon EKS capability IAM role").

    Deleting the capability leaves the applied objects in the cluster; EKS has no other mode.

    Args:
        cluster_name: The EKS cluster.
        identity_center: ARN of the IAM Identity Center instance.
        admins: Ids of the Identity Center groups that administer Argo CD.
        identity_center_region: Region of that instance; default: the stack's.
        namespace: Where the Applications are.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        identity_center: str,
        admins: Sequence[str],
        identity_center_region: str | None = None,
        namespace: str = "argocd",
    ) -> None:
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Role",
            description="Argo CD capability of EKS",
            assumed_by=iam.ServicePrincipal("capabilities.eks.amazonaws.com").with_session_tags(),
        )
        """IAM role of the capability; an administrator of the cluster."""
        capability = eks.CfnCapability
        configuration = capability.CapabilityConfigurationProperty(
            argo_cd=capability.ArgoCdProperty(
                aws_idc=capability.AwsIdcProperty(
                    idc_instance_arn=identity_center,
                    idc_region=identity_center_region or Stack.of(self).region,
                ),
                namespace=namespace,
                rbac_role_mappings=[
                    capability.ArgoCdRoleMappingProperty(
                        role="ADMIN",
                        identities=[
                            capability.SsoIdentityProperty(id=group, type="SSO_GROUP") for group in admins
                        ],
                    )
                ],
            )
        )
        self.capability: eks.CfnCapability = capability(
            self,
            "Capability",
            capability_name="argocd",
            cluster_name=cluster_name,
            type="ARGOCD",
            role_arn=self.role.role_arn,
            delete_propagation_policy="RETAIN",
            configuration=configuration,
        )
        """The capability."""
        access = eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster_name,
            principal_arn=self.role.role_arn,
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    policy_arn=f"arn:{Aws.PARTITION}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
                    access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                )
            ],
        )
        # Otherwise EKS makes the entry first, without the policy, and CloudFormation's is a duplicate.
        self.capability.node.add_dependency(access)
