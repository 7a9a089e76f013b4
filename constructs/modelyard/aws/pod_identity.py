"""AWS permissions for a pod, without an OIDC provider or service account annotation."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct


class PodIdentityRole(iam.Role):
    """A role for EKS Pod Identity.

    It cannot be assumed until an association names it: `associate`, or the `podIdentityAssociations` of an
    add-on together with `trust`.

    Args:
        description: Description of the role.
        managed_policies: Its permissions; `add_to_policy` adds more.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        description: str,
        managed_policies: Sequence[iam.IManagedPolicy] = (),
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description=description,
            # EKS tags the session with cluster, namespace and service account; without sts:TagSession it is
            # denied.
            assumed_by=iam.ServicePrincipal("pods.eks.amazonaws.com").with_session_tags(),
            managed_policies=list(managed_policies),
        )

    def trust(self, *, cluster_name: str, namespace: str, service_accounts: Sequence[str]) -> None:
        """Let only these pods of this cluster assume the role: without that, any association in the account
        could name it (EKS user guide, IAM role for Pod Identity). The tags are those that EKS sets itself."""
        role = self.node.default_child
        assert isinstance(role, iam.CfnRole)
        cluster = Stack.of(self).format_arn(service="eks", resource="cluster", resource_name=cluster_name)
        role.add_property_override(
            "AssumeRolePolicyDocument.Statement.0.Condition",
            {
                "StringEquals": {
                    "aws:RequestTag/eks-cluster-arn": cluster,
                    "aws:RequestTag/kubernetes-namespace": namespace,
                    "aws:RequestTag/kubernetes-service-account": list(service_accounts),
                }
            },
        )

    def associate(
        self, *, cluster_name: str, namespace: str, service_account: str
    ) -> eks.CfnPodIdentityAssociation:
        """Give this role to the pods of one service account; only pods that start afterwards get it."""
        self.trust(cluster_name=cluster_name, namespace=namespace, service_accounts=[service_account])
        return eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=self.role_arn,
        )
