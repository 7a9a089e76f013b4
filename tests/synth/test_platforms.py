"""Environments with options that the shipped ones do not use: tests/fixtures/platforms."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.synth.conftest import ROOT, Synthesis, environment_file

PLATFORMS = ROOT / "tests" / "fixtures" / "platforms" / "environments"

Platform = Callable[[str], Synthesis]


@pytest.fixture(scope="module")
def platform(synthesise: Callable[[str, dict[str, Any]], Synthesis]) -> Platform:
    @cache
    def build(name: str) -> Synthesis:
        return synthesise(name, environment_file(name, PLATFORMS))

    return build


def actions(synthesis: Synthesis, stack: str, sid_or_role: str) -> set[str]:
    """Actions of the inline policies whose logical id contains `sid_or_role`."""
    found: set[str] = set()
    for name, resource in synthesis.templates[stack]["Resources"].items():
        if resource["Type"] == "AWS::IAM::Policy" and sid_or_role in name:
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                stated = statement["Action"]
                found |= {stated} if isinstance(stated, str) else set(stated)
    return found


def test_an_existing_vpc_is_used_and_not_changed(platform: Platform) -> None:
    existing = platform("existing")
    kinds = {resource["Type"] for resource in existing.templates["Network"]["Resources"].values()}

    assert kinds.isdisjoint({"AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::Route", "AWS::EC2::NatGateway"})
    assert existing.only("Network", "AWS::EC2::FlowLog")["ResourceId"] == "vpc-0a1b2c3d4e5f60718"
    gateway, *interfaces = sorted(
        existing.properties("Network", "AWS::EC2::VPCEndpoint"), key=lambda e: str(e["VpcEndpointType"])
    )
    assert gateway["ServiceName"] == "com.amazonaws.us-east-2.s3"
    assert gateway["RouteTableIds"] == ["rtb-0a1b2c3d4e5f60718", "rtb-0a1b2c3d4e5f60719"]
    assert {tuple(e["SubnetIds"]) for e in interfaces} == {
        ("subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719")
    }
    published = {p["Name"]: p["Value"] for p in existing.properties("Network", "AWS::SSM::Parameter")}
    assert published["/modelyard/existing/network/vpc-id"] == "vpc-0a1b2c3d4e5f60718"


def test_an_existing_vpc_with_endpoints_and_flow_logs_gets_nothing(
    synthesise: Callable[[str, dict[str, Any]], Synthesis],
) -> None:
    data = environment_file("existing", PLATFORMS)
    data["network"] |= {"flowLogs": False, "endpoints": "none"}
    data["network"]["vpc"]["routeTables"] = []

    resources = synthesise("existing", data).templates["Network"]["Resources"].values()

    assert {resource["Type"] for resource in resources} == {"AWS::SSM::Parameter"}


def test_control_plane_options_reach_the_cluster(platform: Platform) -> None:
    cluster = platform("existing").only("Cluster", "AWS::EKS::Cluster")

    assert cluster["Version"] == "1.35"
    assert cluster["UpgradePolicy"] == {"SupportType": "EXTENDED"}
    assert cluster["ControlPlaneScalingConfig"] == {"Tier": "tier-xl"}
    assert cluster["ZonalShiftConfig"] == {"Enabled": True}
    assert cluster["DeletionProtection"] is False


def test_teams_edit_their_namespace_and_read_the_models(platform: Platform) -> None:
    entries = {
        entry["PrincipalArn"]: entry
        for entry in platform("existing").properties("Cluster", "AWS::EKS::AccessEntry")
        if isinstance(entry["PrincipalArn"], str)
    }
    scopes = {
        json.dumps(policy["PolicyArn"])[-30:]: policy["AccessScope"]
        for policy in entries["arn:aws:iam::123456789012:role/search"]["AccessPolicies"]
    }

    edit, view = (scopes[key] for key in sorted(scopes, key=lambda k: "View" in k))
    assert edit == {"Namespaces": ["search-apps"], "Type": "namespace"}
    assert view == {"Namespaces": ["models"], "Type": "namespace"}


def test_principals_in_several_lists_have_one_entry_with_the_sum(
    synthesise: Callable[..., Synthesis],
) -> None:
    """A second entry for a principal is refused, and rolls a new cluster back."""
    data = environment_file("existing", PLATFORMS)
    role = "arn:aws:iam::123456789012:role/"
    data["cluster"] |= {"admins": [f"{role}boss", f"{role}boss"], "viewers": [f"{role}on-call"]}
    data["teams"]["search"]["principals"] = [f"{role}boss", f"{role}on-call", f"{role}both"]
    data["teams"]["assistants"]["principals"] = [f"{role}both"]

    entries = [
        (entry["PrincipalArn"].removeprefix(role), entry["AccessPolicies"])
        for entry in synthesise("existing", data).properties("Cluster", "AWS::EKS::AccessEntry")
        if isinstance(entry["PrincipalArn"], str)
    ]

    granted = {
        who: [
            (
                json.dumps(each["PolicyArn"]).rpartition("/")[2].strip('"]}'),
                each["AccessScope"].get("Namespaces"),
            )
            for each in policies
        ]
        for who, policies in entries
    }
    assert sorted(who for who, _ in entries) == ["boss", "both", "on-call"]
    assert granted == {
        "boss": [("AmazonEKSClusterAdminPolicy", None)],
        "on-call": [("AmazonEKSEditPolicy", ["search-apps"]), ("AmazonEKSViewPolicy", None)],
        "both": [("AmazonEKSEditPolicy", ["search-apps", "assistants"]), ("AmazonEKSViewPolicy", ["models"])],
    }


def test_a_principal_that_moves_to_another_list_keeps_its_entry(synthesise: Callable[..., Synthesis]) -> None:
    """CloudFormation creates before it deletes: a new logical id would meet the old entry."""
    data = environment_file("existing", PLATFORMS)
    principal = "arn:aws:iam::123456789012:role/boss"

    def entry(**lists: Any) -> set[str]:
        changed = {**data, "cluster": {**data["cluster"], **lists}}
        return {
            name
            for name, resource in synthesise("existing", changed).templates["Cluster"]["Resources"].items()
            if resource["Type"] == "AWS::EKS::AccessEntry"
            and resource["Properties"]["PrincipalArn"] == principal
        }

    assert len(entry(admins=[principal])) == 1
    assert entry(admins=[principal]) == entry(viewers=[principal])


@pytest.mark.parametrize(
    ("monitor", "made"),
    [
        ("tag", [("CUSTOM", None)]),
        ("services", [("DIMENSIONAL", "SERVICE")]),
        ("arn:aws:ce::123456789012:anomalymonitor/0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f", []),
    ],
)
def test_anomalies_are_detected_by_the_monitor_that_the_account_can_have(
    monitor: str, made: list[tuple[str, str | None]], synthesise: Callable[..., Synthesis]
) -> None:
    data = environment_file("existing", PLATFORMS)
    data["cost"]["anomalyMonitor"] = monitor

    existing = synthesise("existing", data)

    assert [
        (each["MonitorType"], each.get("MonitorDimension"))
        for each in existing.properties("Cost", "AWS::CE::AnomalyMonitor")
    ] == made
    (watched,) = existing.only("Cost", "AWS::CE::AnomalySubscription")["MonitorArnList"]
    assert watched == monitor or not monitor.startswith("arn:")


def test_nothing_waits_for_cost_alerts(platform: Platform) -> None:
    """A stack that AWS refuses stops the deploy, and Flux would never come."""
    stacks = {
        name: artifact.get("dependencies", [])
        for name, artifact in platform("existing").manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }

    assert [name for name, needed in stacks.items() if "Cost" in needed] == []
    assert "Delivery" in stacks["Cost"]


def test_lustre_waits_for_the_rules_of_its_group(platform: Platform) -> None:
    """FSx asks the group when it creates the file system, and refuses one without its ports."""
    resources = platform("lustre").templates["ModelCache"]["Resources"]
    rules = {name for name, each in resources.items() if each["Type"].startswith("AWS::EC2::SecurityGroup")}
    (file_system,) = (each for each in resources.values() if each["Type"] == "AWS::FSx::FileSystem")

    assert len(rules) > 3
    assert rules <= set(file_system["DependsOn"])


def test_money_is_watched_by_tag_and_reservation(platform: Platform) -> None:
    existing = platform("existing")
    budget = existing.only("Cost", "AWS::Budgets::Budget")
    alarms = existing.properties("Cost", "AWS::CloudWatch::Alarm")

    assert budget["Budget"]["BudgetLimit"] == {"Amount": 20000, "Unit": "USD"}
    assert budget["Budget"]["CostFilters"] == {"TagKeyValue": ["user:modelyard:environment$existing"]}
    assert [
        (n["Notification"]["NotificationType"], n["Notification"]["Threshold"])
        for n in budget["NotificationsWithSubscribers"]
    ] == [("ACTUAL", 50), ("ACTUAL", 100), ("FORECASTED", 100)]
    monitor = json.loads(existing.only("Cost", "AWS::CE::AnomalyMonitor")["MonitorSpecification"])
    assert monitor == {"Tags": {"Key": "modelyard:environment", "Values": ["existing"]}}
    assert {alarm["Dimensions"][0]["Value"] for alarm in alarms} == {
        "cr-0123456789abcdef0",
        "cr-0123456789abcdef1",
    }
    assert all(alarm["AlarmActions"] for alarm in alarms)
    [allowed] = [
        statement
        for statement in existing.only("Cost", "AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    assert set(allowed["Principal"]["Service"]) == {
        "budgets.amazonaws.com",
        "costalerts.amazonaws.com",
        "cloudwatch.amazonaws.com",
    }


def test_metrics_are_written_to_the_managed_workspace_and_to_nothing_else(platform: Platform) -> None:
    existing = platform("existing")

    assert existing.only("Metrics", "AWS::APS::Workspace")["KmsKeyArn"]
    assert actions(existing, "Metrics", "WriterRole") == {"aps:RemoteWrite"}
    association = existing.only("Metrics", "AWS::EKS::PodIdentityAssociation")
    assert (association["Namespace"], association["ServiceAccount"]) == ("monitoring", "prometheus")
    assert existing.only("Metrics", "AWS::Grafana::Workspace")["AuthenticationProviders"] == ["AWS_SSO"]


def test_auto_mode_brings_its_own_nodes_and_components(platform: Platform) -> None:
    auto = platform("auto")
    cluster = auto.only("Cluster", "AWS::EKS::Cluster")

    assert cluster["ComputeConfig"]["Enabled"] is True
    assert cluster["ComputeConfig"]["NodePools"] == ["system", "general-purpose"]
    assert cluster["KubernetesNetworkConfig"]["ElasticLoadBalancing"] == {"Enabled": True}
    assert cluster["StorageConfig"]["BlockStorage"] == {"Enabled": True}
    assert {addon["AddonName"] for addon in auto.properties("Cluster", "AWS::EKS::Addon")} == {
        "aws-efs-csi-driver",
        "metrics-server",
    }
    assert "Karpenter" not in auto.templates
    assert not auto.resources("Cluster", "AWS::EKS::Nodegroup")
    roles = {role.get("RoleName") for role in auto.properties("Cluster", "AWS::IAM::Role")}
    assert "modelyard-auto-node" in roles  # what the rendered NodeClasses name


def test_auto_mode_may_launch_nodes_with_the_tags_of_the_node_classes(platform: Platform) -> None:
    """EKS' managed policies refuse every tag but EKS' own."""
    [role] = [
        each
        for each in platform("auto").properties("Cluster", "AWS::IAM::Role")
        if each["Description"] == "Control plane in Auto Mode"
    ]
    [policy] = role["Policies"]  # of the role itself: the cluster launches nodes as soon as it is there
    statements = policy["PolicyDocument"]["Statement"]

    launch, interfaces = statements
    assert launch["Action"] == ["ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"]
    assert len(launch["Resource"]) == 6
    assert launch["Condition"]["StringEquals"] == {"aws:RequestTag/eks:eks-cluster-name": "modelyard-auto"}
    assert interfaces["Action"] == "ec2:CreateNetworkInterface"


def test_streaming_servers_read_the_named_buckets_and_no_other(platform: Platform) -> None:
    auto = platform("auto")

    assert (
        auto.only("ModelCache", "AWS::S3::Bucket")["BucketName"]
        == "modelyard-auto-weights-123456789012-us-east-2"
    )
    assert actions(auto, "ModelCache", "ReaderRole") == {
        "s3:GetBucketLocation",
        "s3:ListBucket",
        "s3:GetObject",
        "s3:GetObjectVersion",
    }
    association = auto.only("ModelCache", "AWS::EKS::PodIdentityAssociation")
    assert (association["Namespace"], association["ServiceAccount"]) == ("models", "weights-reader")


def test_pods_get_a_range_of_their_own(platform: Platform) -> None:
    lustre = platform("lustre")
    tagged = [
        subnet
        for subnet in lustre.properties("Network", "AWS::EC2::Subnet")
        if {"Key": "kubernetes.io/role/cni", "Value": "1"} in subnet["Tags"]
        and {"Key": "modelyard:pods", "Value": "modelyard-lustre"} in subnet["Tags"]
    ]

    assert [subnet["CidrBlock"] for subnet in tagged] == ["100.64.0.0/18", "100.64.64.0/18"]
    assert lustre.only("Network", "AWS::EC2::VPCCidrBlock")["CidrBlock"] == "100.64.0.0/16"
    [network] = [
        addon for addon in lustre.properties("Cluster", "AWS::EKS::Addon") if addon["AddonName"] == "vpc-cni"
    ]
    assert json.loads(network["ConfigurationValues"])["env"]["ENABLE_PREFIX_DELEGATION"] == "true"


def test_lustre_is_encrypted_and_open_to_the_cluster_alone(platform: Platform) -> None:
    lustre = platform("lustre")
    system = lustre.only("ModelCache", "AWS::FSx::FileSystem")

    assert system["StorageCapacity"] == 4800
    assert system["KmsKeyId"]
    assert system["LustreConfiguration"]["PerUnitStorageThroughput"] == 500
    assert len(system["SubnetIds"]) == 1
    [group] = lustre.properties("ModelCache", "AWS::EC2::SecurityGroup")
    apart = lustre.properties("ModelCache", "AWS::EC2::SecurityGroupIngress")
    rules = [*group["SecurityGroupIngress"], *apart]
    assert all("CidrIp" not in rule for rule in rules)
    clients = {
        (rule["FromPort"], rule["ToPort"])
        for rule in rules
        if "Ref" in rule["SourceSecurityGroupId"]  # the parameter with the cluster's group
    }
    assert clients == {(988, 988), (1018, 1023)}
    names = {addon["AddonName"] for addon in lustre.properties("Cluster", "AWS::EKS::Addon")}
    assert "aws-fsx-csi-driver" in names


@pytest.mark.parametrize("name", sorted(path.stem for path in PLATFORMS.glob("*.yaml")))
def test_the_addons_that_doctor_asks_for_are_those_that_a_deploy_installs(
    platform: Platform, name: str
) -> None:
    from modelyard.planning.identity import cluster_addons
    from modelyard.spec import Environment

    installed = [addon["AddonName"] for addon in platform(name).properties("Cluster", "AWS::EKS::Addon")]

    settings = Environment.model_validate(environment_file(name, PLATFORMS))
    assert sorted(installed) == sorted(cluster_addons(settings))


def test_s3_files_has_a_mount_target_in_each_zone_and_forces_the_servers_user(platform: Platform) -> None:
    files = platform("files")

    assert len(files.properties("ModelCache", "AWS::S3Files::MountTarget")) == 2
    access_point = files.only("ModelCache", "AWS::S3Files::AccessPoint")
    assert access_point["PosixUser"] == {"Uid": "2000", "Gid": "2000"}
    assert files.only("ModelCache", "AWS::S3::Bucket")["VersioningConfiguration"] == {"Status": "Enabled"}
    driver = [
        a
        for a in files.properties("ModelCache", "AWS::EKS::PodIdentityAssociation")
        if a["ServiceAccount"] == "efs-csi-node-sa"
    ]
    assert len(driver) == 1


def test_a_managed_argo_cd_takes_the_place_of_flux_and_the_bucket(platform: Platform) -> None:
    argo = platform("managed-argo")
    capability = argo.only("Delivery", "AWS::EKS::Capability")

    assert capability["Type"] == "ARGOCD"
    assert capability["Configuration"]["ArgoCd"]["AwsIdc"]["IdcRegion"] == "us-east-1"
    assert not argo.resources("Delivery", "AWS::S3::Bucket")
    assert not argo.resources("Delivery", "Custom::AWSCDK-EKS-HelmChart")


class TestSharedCluster:
    """A cluster that somebody else manages gets what it lacks, and nothing of it is changed."""

    def test_no_cluster_no_nodes_and_no_log_group_are_made(self, platform: Platform) -> None:
        shared = platform("shared")
        kinds = {
            resource["Type"] for each in shared.templates.values() for resource in each["Resources"].values()
        }

        assert kinds.isdisjoint(
            {"AWS::EKS::Cluster", "AWS::EKS::Nodegroup", "AWS::EC2::VPC", "AWS::EC2::FlowLog"}
        )
        assert set(shared.templates) == {"Network", "Cluster", "ModelCache", "Secrets", "Delivery"}

    def test_missing_addons_are_installed_and_never_overwrite(self, platform: Platform) -> None:
        made = platform("shared").properties("Cluster", "AWS::EKS::Addon")

        assert {each["AddonName"] for each in made} == {"aws-efs-csi-driver", "eks-node-monitoring-agent"}
        assert {each["ClusterName"] for each in made} == {"shared"}
        assert {each["ResolveConflicts"] for each in made} == {"NONE"}

    def test_other_stacks_get_the_security_group_of_the_file(self, platform: Platform) -> None:
        published = {
            p["Name"]: p["Value"] for p in platform("shared").properties("Cluster", "AWS::SSM::Parameter")
        }

        assert published.pop("/modelyard/shared/cluster/efs-driver-role")
        assert published == {"/modelyard/shared/cluster/security-group-id": "sg-0a1b2c3d4e5f60718"}

    def test_admins_are_admitted(self, platform: Platform) -> None:
        [entry] = platform("shared").properties("Cluster", "AWS::EKS::AccessEntry")

        assert entry["ClusterName"] == "shared"
        assert entry["PrincipalArn"] == "arn:aws:iam::123456789012:role/platform-engineer"

    def test_its_external_secrets_may_assume_the_reader(self, platform: Platform) -> None:
        [reader] = platform("shared").properties("Secrets", "AWS::IAM::Role")
        [statement] = reader["AssumeRolePolicyDocument"]["Statement"]

        assert reader["RoleName"] == "modelyard-shared-secrets"
        assert statement["Principal"] == {"AWS": "arn:aws:iam::123456789012:role/external-secrets"}
        assert set(statement["Action"]) == {"sts:AssumeRole", "sts:TagSession"}
        assert not platform("shared").resources("Secrets", "AWS::EKS::PodIdentityAssociation")

    @pytest.mark.parametrize("there", [False, True])
    def test_only_a_driver_of_ours_is_the_only_one_that_mounts(
        self, synthesise: Callable[[str, dict[str, Any]], Synthesis], there: bool
    ) -> None:
        data = environment_file("shared", PLATFORMS)
        if there:
            data["cluster"]["existing"]["has"]["aws-efs-csi-driver"] = "v3.4.1-eksbuild.1"

        made = synthesise(f"efs-{there}", data)

        [mount, *_] = made.only("ModelCache", "AWS::EFS::FileSystem")["FileSystemPolicy"]["Statement"]
        assert (mount["Principal"] == {"AWS": "*"}) == there
        assert len(made.resources("Cluster", "AWS::EKS::PodIdentityAssociation")) == (0 if there else 1)

    def test_the_cache_is_open_to_the_nodes_own_group(self, platform: Platform) -> None:
        group = platform("shared").only("ModelCache", "AWS::EC2::SecurityGroup")

        [rule] = group["SecurityGroupIngress"]
        assert rule["SourceSecurityGroupId"] == "sg-0fedcba9876543210"

    def test_without_a_karpenter_it_gets_ours(
        self, synthesise: Callable[[str, dict[str, Any]], Synthesis]
    ) -> None:
        data = environment_file("shared", PLATFORMS)
        del data["cluster"]["existing"]["has"]["karpenter"]
        data["cluster"]["existing"]["nodeRole"] = None

        own = synthesise("own-karpenter", data)

        assert own.only("Karpenter", "AWS::SQS::Queue")["QueueName"] == "shared"


def test_a_managed_argo_cd_has_its_access_entry_before_eks_would_make_one_without_permissions(
    platform: Platform,
) -> None:
    resources = platform("managed-argo").templates["Delivery"]["Resources"]
    kinds = {resource["Type"]: name for name, resource in resources.items()}
    capability, entry = resources[kinds["AWS::EKS::Capability"]], resources[kinds["AWS::EKS::AccessEntry"]]

    assert kinds["AWS::EKS::AccessEntry"] in capability.get("DependsOn", [])
    assert entry["Properties"]["PrincipalArn"] == capability["Properties"]["RoleArn"]
    (policy,) = entry["Properties"]["AccessPolicies"]
    assert str(policy["PolicyArn"]).count("cluster-access-policy/AmazonEKSClusterAdminPolicy") == 1
    assert policy["AccessScope"] == {"Type": "cluster"}


def test_flux_meets_a_policy_before_its_first_folder_in_a_cluster_of_others(platform: Platform) -> None:
    """Hooks come after the release, and so after the policy."""
    found = {}
    for name in ("shared", "existing"):
        [release] = [
            each["Properties"]
            for each in platform(name).templates["Delivery"]["Resources"].values()
            if each["Type"] == "Custom::AWSCDK-EKS-HelmChart"
        ]
        text = json.dumps(release["Values"])
        found[name] = (text.count("ValidatingAdmissionPolicy"), text.count("helm.sh/hook-delete-policy"))

    assert found["shared"][0] == 2
    assert found["existing"][0] == 0
    assert found["shared"][1] == found["existing"][1]
