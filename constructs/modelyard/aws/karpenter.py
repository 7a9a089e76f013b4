"""The AWS half of Karpenter: identities, and the queue on which EC2 announces what it is about to take
away."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from modelyard.aws.karpenter_permissions import KarpenterPermissions
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.aws.system_nodes import NODE_POLICIES

_INTERRUPTIONS: Final = {
    "ScheduledChange": ("aws.health", "AWS Health Event"),
    "SpotInterruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "Rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "InstanceStateChange": ("aws.ec2", "EC2 Instance State-change Notification"),
    "CapacityReservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}


class KarpenterController(Construct):
    """Roles, instance profile and interruption queue of Karpenter in one cluster.

    Names follow from the cluster's, because the manifests that mention them are rendered before anything is
    deployed: role and instance profile are `CLUSTER-node`, the queue is `CLUSTER`.

    Args:
        cluster_name: The EKS cluster; a literal, since it becomes part of IAM condition keys.
        namespace: Namespace of the controller; in `kube-system` the API server gives its requests priority.
        service_account: Service account of the controller.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        namespace: str = "kube-system",
        service_account: str = "karpenter",
    ) -> None:
        super().__init__(scope, construct_id)
        self.node_role = iam.Role(
            self,
            "NodeRole",
            role_name=f"{cluster_name}-node",
            description="Nodes that Karpenter launches",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in NODE_POLICIES],
        )
        """What launched nodes are in AWS."""
        # Ours, and named in the EC2NodeClass: a profile that Karpenter makes from a role outlives the cluster
        # and blocks the deletion of that role.
        self.instance_profile = iam.InstanceProfile(
            self, "NodeProfile", instance_profile_name=f"{cluster_name}-node", role=self.node_role
        )
        """What an EC2NodeClass names."""
        eks.CfnAccessEntry(
            self,
            "NodeAccess",
            cluster_name=cluster_name,
            principal_arn=self.node_role.role_arn,
            type="EC2_LINUX",
        )

        self.queue = sqs.Queue(
            self,
            "Interruptions",
            queue_name=cluster_name,
            # A warning older than this is about an instance that is gone.
            retention_period=Duration.minutes(5),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        """Where EC2 announces what it takes away."""
        # Each rule is admitted by its ARN. Karpenter's own template admits the whole of EventBridge, with
        # which any account could announce interruptions that are not.
        for name, (source, detail_type) in _INTERRUPTIONS.items():
            events.Rule(
                self,
                name,
                event_pattern=events.EventPattern(source=[source], detail_type=[detail_type]),
                targets=[targets.SqsQueue(self.queue)],
            )

        self.controller_role = PodIdentityRole(self, "ControllerRole", description="Karpenter's controller")
        """What the controller is in AWS."""
        permissions = KarpenterPermissions(stack=Stack.of(self), cluster_name=cluster_name)
        documents = permissions.documents(
            node_role_arn=self.node_role.role_arn, queue_arn=self.queue.queue_arn
        )
        policies = Construct(self, "Policies")
        for name, document in documents.items():
            iam.ManagedPolicy(
                policies,
                name,
                description=f"Karpenter of {cluster_name}: {name}",
                document=document,
                roles=[self.controller_role],
            )
        self.controller_role.associate(
            cluster_name=cluster_name, namespace=namespace, service_account=service_account
        )
