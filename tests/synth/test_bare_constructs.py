"""The constructs of `modelyard.aws` in a user's own CDK app, without an environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Match, Template

from modelyard import aws


class Platform(cdk.Stack):
    """Everything in one stack, with as few props as possible."""

    def __init__(self, scope: cdk.App, *, tree: Path) -> None:
        super().__init__(scope, "Platform")
        self.network = aws.InferenceNetwork(
            self, "Network", cluster_name="team", availability_zones=["us-east-1a", "us-east-1b"]
        )
        vpc = self.network.vpc
        self.cluster = aws.InferenceCluster(self, "Cluster", name="team", version="1.36", vpc=vpc)
        clients = self.cluster.cluster.cluster_security_group
        self.karpenter = aws.KarpenterController(self, "Karpenter", cluster_name="team")
        self.cache = aws.EfsCache(self, "Cache", vpc=vpc, clients=clients)
        self.lustre = aws.LustreCache(self, "Lustre", vpc=vpc, clients=clients)
        self.bucket = aws.PrivateBucket(self, "Weights")
        self.files = aws.S3FilesCache(
            self, "Files", vpc=vpc, clients=clients, bucket=self.bucket, cluster_name="team"
        )
        self.reader = aws.WeightsReader(self, "Reader", cluster_name="team", buckets=[self.bucket])
        self.reports = aws.CheckReports(self, "Reports", cluster_name="team")
        self.secrets = aws.ModelSecrets(self, "Secrets", cluster_name="team", names=["team/hf-token"])
        self.metrics = aws.ManagedMetrics(self, "Metrics", cluster_name="team", dashboards=True)
        self.alerts = aws.AlertPublisher(
            self, "Alerts", cluster_name="team", topic_name="team-alerts", emails=["team@example.com"]
        )
        self.costs = aws.CostAlarms(
            self, "Costs", name="team", tag=("owner", "team"), emails=["team@example.com"], monthly_usd=1000
        )
        self.argo = aws.ManagedArgoCd(
            self,
            "ArgoCd",
            cluster_name="team",
            identity_center="arn:aws:sso:::instance/ssoins-0123456789abcdef",
            admins=["0123456789-group"],
        )
        self.delivery = aws.Delivery(self, "Delivery", tree=tree)
        self.flux = aws.Flux(
            self,
            "Flux",
            cluster_name="team",
            vpc=vpc,
            cluster_security_group=clients,
            bucket=self.delivery.bucket,
        )


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Platform:
    tree = tmp_path_factory.mktemp("tree")
    (tree / "kustomization.yaml").write_text("resources: []\n", encoding="utf-8")
    app = cdk.App(outdir=str(tmp_path_factory.mktemp("out")), builtin_cloud_formation_validation=False)
    return Platform(app, tree=tree)


@pytest.fixture(scope="module")
def template(platform: Platform) -> Template:
    return Template.from_stack(platform)


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("AWS::EC2::VPC", {"CidrBlock": "10.64.0.0/16"}),
        ("AWS::EKS::Cluster", {"Name": "team", "DeletionProtection": True}),
        ("AWS::EKS::Nodegroup", {"ScalingConfig": {"MinSize": 2, "DesiredSize": 2, "MaxSize": 3}}),
        ("AWS::SQS::Queue", {"QueueName": "team", "MessageRetentionPeriod": 300}),
        ("AWS::EFS::FileSystem", {"Encrypted": True, "ThroughputMode": "elastic"}),
        ("AWS::EFS::AccessPoint", {"RootDirectory": Match.object_like({"Path": "/models"})}),
        ("AWS::FSx::FileSystem", {"StorageCapacity": 1200}),
        ("AWS::S3Files::AccessPoint", {"PosixUser": {"Uid": "2000", "Gid": "2000"}}),
        ("AWS::S3::Bucket", {"VersioningConfiguration": {"Status": "Enabled"}}),
        (
            "AWS::EKS::PodIdentityAssociation",
            {"Namespace": "models", "ServiceAccount": "weights-reader"},
        ),
        (
            "AWS::EKS::PodIdentityAssociation",
            {"Namespace": "models", "ServiceAccount": "endpoint-checks"},
        ),
        ("AWS::SecretsManager::Secret", {"Name": "team/hf-token", "SecretString": Match.absent()}),
        ("AWS::APS::Workspace", {"Alias": "team"}),
        ("AWS::Grafana::Workspace", {"Name": "team"}),
        ("AWS::Budgets::Budget", {"Budget": Match.object_like({"BudgetName": "team"})}),
        (
            "AWS::EKS::Capability",
            {
                "Configuration": {
                    "ArgoCd": Match.object_like(
                        {"AwsIdc": Match.object_like({"IdcRegion": {"Ref": "AWS::Region"}})}
                    )
                }
            },
        ),
        ("Custom::CDKBucketDeployment", {"Prune": True}),
        ("Custom::AWSCDK-EKS-HelmChart", {"Release": "flux", "Namespace": "flux-system"}),
    ],
)
def test_constructs_in_an_app_of_ones_own_have_the_defaults(
    template: Template, kind: str, properties: dict[str, Any]
) -> None:
    template.has_resource_properties(kind, properties)


def test_caches_stand_in_every_private_subnet_of_the_vpc(template: Template) -> None:
    template.resource_count_is("AWS::EFS::MountTarget", 2)
    template.resource_count_is("AWS::S3Files::MountTarget", 2)
    (lustre,) = template.find_resources("AWS::FSx::FileSystem").values()
    assert len(lustre["Properties"]["SubnetIds"]) == 1


def test_attributes_lead_to_what_others_need_and_to_the_l1(platform: Platform) -> None:
    first = {
        ec2.CfnVPC: platform.network.vpc,
        eks.CfnCluster: platform.cluster.cluster,
        kms.CfnKey: platform.cache.key,
        sqs.CfnQueue: platform.karpenter.queue,
        s3.CfnBucket: platform.delivery.bucket,
        ec2.CfnSecurityGroup: platform.lustre.security_group,
    }
    assert {kind: isinstance(each.node.default_child, kind) for kind, each in first.items()} == dict.fromkeys(
        first, True
    )
    assert platform.cluster.system_nodes is not None
    assert isinstance(platform.cluster.system_nodes.nodegroup.node.default_child, eks.CfnNodegroup)
    assert {"vpc-cni", "coredns", "metrics-server"} <= set(platform.cluster.addons)
    assert list(platform.secrets.secrets) == ["team/hf-token"]
    assert platform.metrics.grafana is not None
    assert platform.reader.role.role_arn != platform.reports.role.role_arn


def test_what_modelyard_made_can_be_changed_in_the_l1() -> None:
    stack = cdk.Stack(cdk.App(), "Stack")
    vpc = ec2.Vpc(stack, "Vpc")
    cluster = aws.InferenceCluster(
        stack,
        "Cluster",
        name="team",
        version="1.36",
        vpc=vpc,
        compute="auto-mode",
        addon_versions={"metrics-server": "v0.9.0-eksbuild.1"},
    )
    cache = aws.EfsCache(stack, "Cache", vpc=vpc, clients=ec2.SecurityGroup(stack, "Clients", vpc=vpc))
    resource = cache.file_system.node.default_child
    assert isinstance(resource, cdk.CfnResource)
    resource.add_property_override("ThroughputMode", "bursting")
    cluster.addons["aws-efs-csi-driver"].resolve_conflicts = "PRESERVE"
    aws.use_exact_actions(stack)

    template = Template.from_stack(stack)

    assert cluster.system_nodes is None
    template.has_resource_properties("AWS::EFS::FileSystem", {"ThroughputMode": "bursting"})
    template.has_resource_properties(
        "AWS::EKS::Addon", {"AddonName": "aws-efs-csi-driver", "ResolveConflicts": "PRESERVE"}
    )
    template.has_resource_properties(
        "AWS::EKS::Addon", {"AddonName": "metrics-server", "AddonVersion": "v0.9.0-eksbuild.1"}
    )


def test_a_vpc_of_somebody_else_gets_endpoints_in_its_private_subnets() -> None:
    stack = cdk.Stack(cdk.App(), "Stack")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-east-1a", "us-east-1b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )
    aws.ExistingNetwork(stack, "Network", vpc=vpc, cidr="10.0.0.0/16")

    Template.from_stack(stack).has_resource_properties(
        "AWS::EC2::VPCEndpoint",
        {
            "VpcEndpointType": "Interface",
            "SubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        },
    )


def test_nodes_keys_and_logs_are_constructs_of_their_own() -> None:
    stack = cdk.Stack(cdk.App(), "Stack")
    vpc = ec2.Vpc(stack, "Vpc")
    cluster = eks.Cluster.from_cluster_attributes(stack, "Cluster", cluster_name="theirs", vpc=vpc)
    nodes = aws.SystemNodeGroup(
        stack, "Nodes", cluster=cluster, version="1.36", subnets=vpc.private_subnets, count=3
    )
    aws.AuditLog(stack, "Log", retention_days=30)
    aws.EncryptionKey(stack, "Key", description="of the team")
    role = aws.PodIdentityRole(stack, "Role", description="of a pod")
    role.associate(cluster_name="theirs", namespace="team", service_account="pod")

    template = Template.from_stack(stack)

    template.has_resource_properties(
        "AWS::EKS::Nodegroup", {"ScalingConfig": Match.object_like({"MinSize": 3}), "Version": "1.36"}
    )
    template.has_resource_properties("AWS::Logs::LogGroup", {"RetentionInDays": 30})
    template.has_resource_properties("AWS::KMS::Key", {"EnableKeyRotation": True})
    template.has_resource_properties("AWS::EKS::PodIdentityAssociation", {"ServiceAccount": "pod"})
    assert nodes.role.role_arn


def test_a_cluster_of_somebody_else_is_given_what_it_lacks() -> None:
    """Without a network, and without anything that is there."""
    stack = cdk.Stack(cdk.App(), "Shared")
    people = aws.TeamAccess(principals=["arn:aws:iam::123456789012:role/search"], edits=["search"])
    adopted = aws.AdoptedCluster(
        stack, "Cluster", name="shared", version="1.36", has=["metrics-server"], teams={"search": people}
    )
    template = Template.from_stack(stack)

    assert set(adopted.addons) == {
        *("eks-pod-identity-agent", "eks-node-monitoring-agent"),
        *("aws-ebs-csi-driver", "aws-efs-csi-driver"),
    }
    template.all_resources_properties(
        "AWS::EKS::Addon", {"ClusterName": "shared", "ResolveConflicts": "NONE"}
    )
    template.has_resource_properties("AWS::EKS::AccessEntry", {"PrincipalArn": people.principals[0]})
    template.resource_count_is("AWS::EKS::Cluster", 0)
    assert adopted.efs_driver is None
