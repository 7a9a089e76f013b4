"""AWS resources for Karpenter: IAM roles, and the queue for EC2 interruption notices."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from modelyard.aws.image_cache import may_fill
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

    Names are derived from the cluster's name, because manifests with these names are rendered before the
    deploy: role and instance profile are `CLUSTER-node`, the queue is `CLUSTER`.

    Args:
        cluster_name: The EKS cluster; a literal, because it becomes part of IAM condition keys.
        namespace: Namespace of the controller; in `kube-system` the API server gives its requests priority.
        service_account: Service account of the controller.
        image_cache: Prefix of the repositories in ECR that nodes may fill, see `ImageCache`; default: none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        namespace: str = "kube-system",
        service_account: str = "karpenter",
        image_cache: str | None = None,
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
        """IAM role of launched nodes."""
        if image_cache:
            may_fill(self.node_role, image_cache)
        # Named in the EC2NodeClass: an instance profile that Karpenter creates from a role outlives the
        # cluster and blocks the deletion of the role.
        self.instance_profile = iam.InstanceProfile(
            self, "NodeProfile", instance_profile_name=f"{cluster_name}-node", role=self.node_role
        )
        """Named in the EC2NodeClass."""
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
            # An older notice is about an instance that is gone.
            retention_period=Duration.minutes(5),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        """EC2 interruption notices."""
        # Each rule is admitted by its ARN. Karpenter's own template admits all of EventBridge, so any account
        # could send false interruption notices.
        for name, (source, detail_type) in _INTERRUPTIONS.items():
            events.Rule(
                self,
                name,
                event_pattern=events.EventPattern(source=[source], detail_type=[detail_type]),
                targets=[targets.SqsQueue(self.queue)],
            )

        self.controller_role = PodIdentityRole(self, "ControllerRole", description="Karpenter's controller")
        """IAM role of the controller."""
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
