"""The managed node group for everything that is not a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.image_cache import may_fill
from modelyard.names import SYSTEM_VOLUME_GIB

NODE_POLICIES: Final = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
"""IAM permissions of a node; pods, including the VPC CNI, have their own roles and cannot use the node's."""


class SystemNodeGroup(Construct):
    """Graviton nodes that run Karpenter, the CSI controllers, Flux and monitoring.

    Karpenter cannot launch the nodes it runs on; its two replicas are spread over two nodes in two zones.

    Args:
        cluster: The EKS cluster.
        version: Kubernetes minor version of the cluster, such as 1.36.
        subnets: Private subnets in at least two zones.
        instance_types: Graviton types, in order of preference.
        count: Number of nodes; an update adds one.
        release_version: AMI release, such as 1.36.2-20260714; default: the newest of the day on which the
            group is created, and nothing patches it afterwards.
        volume_gib: Root volume of each node in GiB, for images and logs of the controllers.
        image_cache: Prefix of the repositories in ECR that nodes may fill, see `ImageCache`; default: none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        version: str,
        subnets: Sequence[ec2.ISubnet],
        instance_types: Sequence[str] = ("m7g.large", "m6g.large"),
        count: int = 2,
        release_version: str | None = None,
        volume_gib: int = SYSTEM_VOLUME_GIB,
        image_cache: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Role",
            description="Nodes of the system node group",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in NODE_POLICIES],
        )
        """IAM role of the nodes."""
        if image_cache:
            may_fill(self.role, image_cache)
        template = ec2.LaunchTemplate(
            self,
            "Template",
            # One hop ends at the node: pods cannot reach IMDS for the node's credentials.
            require_imdsv2=True,
            http_endpoint=True,
            http_put_response_hop_limit=1,
            block_devices=[
                ec2.BlockDevice(
                    device_name="/dev/xvda",
                    volume=ec2.BlockDeviceVolume.ebs(
                        volume_gib, volume_type=ec2.EbsDeviceVolumeType.GP3, encrypted=True
                    ),
                )
            ],
        )
        Tags.of(template).add("Name", "system-node")
        self.nodegroup = eks.Nodegroup(
            self,
            "Nodegroup",
            cluster=cluster,
            # The construct defaults to AL2, which does not exist for current Kubernetes versions.
            ami_type=eks.NodegroupAmiType.AL2023_ARM_64_STANDARD,
            instance_types=[ec2.InstanceType(name) for name in instance_types],
            min_size=count,
            desired_size=count,
            max_size=count + 1,  # an update starts the new node first
            max_unavailable=1,
            # A PodDisruptionBudget that blocks an update must be fixed, not overruled.
            force_update=False,
            enable_node_auto_repair=True,
            node_role=self.role,
            subnets=ec2.SubnetSelection(subnets=list(subnets)),
            launch_template_spec=eks.LaunchTemplateSpec(
                id=_known(template.launch_template_id), version=template.latest_version_number
            ),
            labels={"modelyard.dev/role": "system"},
        )
        """The managed node group."""
        # Otherwise a cluster upgrade changes nothing here, and CloudFormation leaves the nodes a minor
        # behind.
        resource = self.nodegroup.node.default_child
        assert isinstance(resource, eks.CfnNodegroup)
        resource.version = version
        resource.release_version = release_version


def _known(value: str | None) -> str:
    # Optional only in jsii's types: a launch template that we create has an id.
    assert value is not None
    return value
