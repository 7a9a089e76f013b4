"""The cluster: private, audited, encrypted, with access only for named principals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.synth.conftest import Synthesis, environment_file


def test_the_api_server_is_private_unless_networks_are_named(
    each: Synthesis, synthesise: Callable[[str, dict[str, Any]], Synthesis]
) -> None:
    vpc = each.only("Cluster", "AWS::EKS::Cluster")["ResourcesVpcConfig"]

    assert (vpc["EndpointPrivateAccess"], vpc["EndpointPublicAccess"]) == (True, False)


def test_named_networks_and_no_others_reach_the_public_endpoint(
    synthesise: Callable[[str, dict[str, Any]], Synthesis],
) -> None:
    data = environment_file("local")
    data["cluster"]["publicAccessCidrs"] = ["203.0.113.0/24"]

    vpc = synthesise("public", data).only("Cluster", "AWS::EKS::Cluster")["ResourcesVpcConfig"]

    assert (vpc["EndpointPrivateAccess"], vpc["EndpointPublicAccess"]) == (True, True)
    assert vpc["PublicAccessCidrs"] == ["203.0.113.0/24"]


def test_all_control_plane_logs_are_written_to_a_group_with_an_end(prod: Synthesis) -> None:
    logging = prod.only("Cluster", "AWS::EKS::Cluster")["Logging"]["ClusterLogging"]["EnabledTypes"]

    assert {entry["Type"] for entry in logging} == {
        *("api", "audit", "authenticator", "controllerManager", "scheduler"),
    }
    group = prod.only("Cluster", "AWS::Logs::LogGroup")
    assert group["LogGroupName"] == "/aws/eks/modelyard-prod/cluster"
    assert group["RetentionInDays"] == 365


def test_kubernetes_secrets_are_encrypted_with_a_key_that_rotates(each: Synthesis) -> None:
    (encryption,) = each.only("Cluster", "AWS::EKS::Cluster")["EncryptionConfig"]

    assert encryption["Resources"] == ["secrets"]
    assert each.only("Cluster", "AWS::KMS::Key")["EnableKeyRotation"] is True


def test_karpenter_is_the_only_autoscaler(each: Synthesis) -> None:
    cluster = each.only("Cluster", "AWS::EKS::Cluster")

    assert cluster["ComputeConfig"] == {"Enabled": False}
    assert cluster["StorageConfig"]["BlockStorage"]["Enabled"] is False


def test_stays_in_standard_support(each: Synthesis) -> None:
    assert each.only("Cluster", "AWS::EKS::Cluster")["UpgradePolicy"] == {"SupportType": "STANDARD"}


def test_only_a_retained_cluster_is_protected_from_deletion(dev: Synthesis, prod: Synthesis) -> None:
    assert prod.only("Cluster", "AWS::EKS::Cluster")["DeletionProtection"] is True
    assert dev.only("Cluster", "AWS::EKS::Cluster")["DeletionProtection"] is False


def test_access_is_granted_by_entries_alone(prod: Synthesis) -> None:
    access = prod.only("Cluster", "AWS::EKS::Cluster")["AccessConfig"]
    assert access == {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False}

    granted = {
        entry["PrincipalArn"].rpartition("/")[2]: json.dumps(entry["AccessPolicies"][0]["PolicyArn"])
        for entry in prod.properties("Cluster", "AWS::EKS::AccessEntry")
    }
    assert granted.keys() == {"platform-engineer", "break-glass", "model-on-call"}
    assert "AmazonEKSClusterAdminPolicy" in granted["platform-engineer"]
    # Not AmazonEKSAdminViewPolicy, which reads secrets.
    assert "AmazonEKSViewPolicy" in granted["model-on-call"]


def test_system_nodes_are_graviton_and_span_the_zones(prod: Synthesis) -> None:
    group = prod.only("Cluster", "AWS::EKS::Nodegroup")

    assert group["AmiType"] == "AL2023_ARM_64_STANDARD"
    assert group["Version"] == "1.36"  # without it an upgrade leaves the nodes a minor behind
    assert group["ScalingConfig"] == {"MinSize": 3, "DesiredSize": 3, "MaxSize": 4}
    assert len(group["Subnets"]) == 3
    assert group["ForceUpdateEnabled"] is False


def test_pods_cannot_take_the_credentials_of_a_system_node(each: Synthesis) -> None:
    launch = each.only("Cluster", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]

    assert launch["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 1,
    }
    (disk,) = launch["BlockDeviceMappings"]
    assert (disk["Ebs"]["Encrypted"], disk["Ebs"]["VolumeType"]) == (True, "gp3")


def _addons(synthesis: Synthesis) -> dict[str, dict[str, Any]]:
    return {r["Properties"]["AddonName"]: r for r in synthesis.resources("Cluster", "AWS::EKS::Addon")}


def _waits_for_nodes(synthesis: Synthesis, addon: dict[str, Any]) -> bool:
    resources = synthesis.templates["Cluster"]["Resources"]
    return any(resources[name]["Type"] == "AWS::EKS::Nodegroup" for name in addon.get("DependsOn", []))


def test_networking_comes_before_the_nodes_and_the_rest_after(each: Synthesis) -> None:
    addons = _addons(each)
    before = {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}
    after = {
        *("coredns", "aws-ebs-csi-driver", "aws-efs-csi-driver"),
        *("eks-node-monitoring-agent", "metrics-server"),
    }
    assert addons.keys() == before | after

    resources = each.templates["Cluster"]["Resources"]
    (group,) = each.resources("Cluster", "AWS::EKS::Nodegroup")
    assert {resources[name]["Properties"].get("AddonName") for name in group["DependsOn"]} >= before
    assert {name for name, addon in addons.items() if _waits_for_nodes(each, addon)} == after


def test_network_policies_are_enforced(each: Synthesis) -> None:
    values = json.loads(_addons(each)["vpc-cni"]["Properties"]["ConfigurationValues"])

    assert values["enableNetworkPolicy"] == "true"


def test_addons_replace_what_is_in_their_way_and_leave_nothing(each: Synthesis) -> None:
    for addon in _addons(each).values():
        assert addon["Properties"]["ResolveConflicts"] == "OVERWRITE"
        assert addon["Properties"]["PreserveOnDelete"] is False


def test_components_that_call_aws_have_identities_of_their_own(each: Synthesis) -> None:
    identities = {
        name: addon["Properties"]["PodIdentityAssociations"][0]["ServiceAccount"]
        for name, addon in _addons(each).items()
        if "PodIdentityAssociations" in addon["Properties"]
    }
    assert identities == {
        "aws-ebs-csi-driver": "ebs-csi-controller-sa",
        "aws-efs-csi-driver": "efs-csi-controller-sa",
        "vpc-cni": "aws-node",
    }
    for stack in ("Cluster", "Karpenter"):
        nodes = [
            role
            for role in each.properties(stack, "AWS::IAM::Role")
            if "ec2.amazonaws.com" in json.dumps(role["AssumeRolePolicyDocument"])
        ]
        assert nodes
        assert "AmazonEKS_CNI_Policy" not in json.dumps(nodes)
