"""AWS permissions for a pod, without an OIDC provider or service account annotation."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct


class PodIdentityRole(iam.Role):
    """A role for EKS Pod Identity.

    It cannot be assumed until an association names it: `associate`, or the `podIdentityAssociations` of an
    add-on.

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

    def associate(
        self, *, cluster_name: str, namespace: str, service_account: str
    ) -> eks.CfnPodIdentityAssociation:
        """Give this role to the pods of one service account; only pods that start afterwards get it."""
        return eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=self.role_arn,
        )
