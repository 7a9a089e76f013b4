"""The model cache: encrypted, in every zone, and open only to the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.synth.conftest import Synthesis, environment_file


def test_is_elastic_and_encrypted_with_a_key_that_rotates(each: Synthesis) -> None:
    cache = each.only("ModelCache", "AWS::EFS::FileSystem")

    assert (cache["ThroughputMode"], cache["Encrypted"]) == ("elastic", True)
    assert "KmsKeyId" in cache
    assert each.only("ModelCache", "AWS::KMS::Key")["EnableKeyRotation"] is True


def test_has_a_mount_target_in_each_zone(each: Synthesis) -> None:
    targets = each.properties("ModelCache", "AWS::EFS::MountTarget")

    assert len(targets) == 3
    assert len({str(target["SubnetId"]) for target in targets}) == 3


def test_the_access_point_forces_the_identity_of_the_model_servers(each: Synthesis) -> None:
    point = each.only("ModelCache", "AWS::EFS::AccessPoint")

    assert point["PosixUser"] == {"Uid": "2000", "Gid": "2000"}
    assert point["RootDirectory"] == {
        "Path": "/models",
        "CreationInfo": {"OwnerUid": "2000", "OwnerGid": "2000", "Permissions": "0755"},
    }


def test_nfs_is_open_to_the_security_group_of_the_cluster_and_to_nothing_else(each: Synthesis) -> None:
    (group,) = each.properties("ModelCache", "AWS::EC2::SecurityGroup")
    assert each.resources("ModelCache", "AWS::EC2::SecurityGroupIngress") == []

    (rule,) = group["SecurityGroupIngress"]
    assert (rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == (2049, 2049, "tcp")
    parameter = each.templates["ModelCache"]["Parameters"][rule["SourceSecurityGroupId"]["Ref"]]
    assert parameter["Default"] == f"/modelyard/{each.name}/cluster/security-group-id"


def _policy(made: Synthesis) -> dict[str, dict[str, Any]]:
    statements = made.only("ModelCache", "AWS::EFS::FileSystem")["FileSystemPolicy"]["Statement"]
    return {statement["Sid"]: statement for statement in statements}


def test_admits_the_role_of_the_driver_on_nodes_and_nobody_else(each: Synthesis) -> None:
    policy = _policy(each)
    (allow,) = [statement for statement in policy.values() if statement["Effect"] == "Allow"]

    role = each.templates["ModelCache"]["Parameters"][allow["Principal"]["AWS"]["Ref"]]
    assert role["Default"] == f"/modelyard/{each.name}/cluster/efs-driver-role"
    assert allow["Action"] == ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]


def test_refuses_clear_text_the_root_folder_and_root_to_everybody(each: Synthesis) -> None:
    denied = {sid: each for sid, each in _policy(each).items() if each["Effect"] == "Deny"}

    assert set(denied) == {"OnlyWithTls", "OnlyThroughAnAccessPoint", "NobodyAsRoot"}
    assert all(statement["Principal"] == {"AWS": "*"} for statement in denied.values())
    assert denied["OnlyWithTls"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert set(denied["OnlyThroughAnAccessPoint"]["Condition"]) == {"StringNotLike"}
    assert denied["NobodyAsRoot"]["Action"] == "elasticfilesystem:ClientRootAccess"


def test_the_driver_has_its_role_before_its_pods_start(each: Synthesis) -> None:
    resources = each.templates["Cluster"]["Resources"]
    ((identity, association),) = [
        (name, resource["Properties"])
        for name, resource in resources.items()
        if resource["Type"] == "AWS::EKS::PodIdentityAssociation"
    ]
    (driver,) = [
        resource
        for resource in resources.values()
        if resource["Type"] == "AWS::EKS::Addon"
        and resource["Properties"]["AddonName"] == "aws-efs-csi-driver"
    ]

    assert (association["Namespace"], association["ServiceAccount"]) == ("kube-system", "efs-csi-node-sa")
    assert identity in driver["DependsOn"]
    (published,) = [
        parameter["Value"]
        for parameter in each.properties("Cluster", "AWS::SSM::Parameter")
        if parameter.get("Name", "").endswith("/efs-driver-role")
    ]
    assert published == association["RoleArn"]
    role = resources[published["Fn::GetAtt"][0]]["Properties"]
    assert role.keys().isdisjoint({"Policies", "ManagedPolicyArns"})


def test_what_is_kept_is_backed_up_unless_the_environment_says_otherwise(
    dev: Synthesis, prod: Synthesis, synthesise: Callable[[str, dict[str, Any]], Synthesis]
) -> None:
    def status(made: Synthesis) -> str:
        cache = made.only("ModelCache", "AWS::EFS::FileSystem")
        return str(cache.get("BackupPolicy", {"Status": "DISABLED"})["Status"])

    assert (status(prod), status(dev)) == ("ENABLED", "DISABLED")
    without = environment_file("prod")
    without["cache"]["backups"] = False
    assert status(synthesise("prod", without)) == "DISABLED"


def test_a_file_system_of_your_own_takes_the_place_of_the_stack(
    synthesise: Callable[[str, dict[str, Any]], Synthesis],
) -> None:
    data = environment_file("dev")
    data["cache"] = {"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"}

    own = synthesise("own-cache", data)

    assert "ModelCache" not in own.templates
    assert not own.resources("Cluster", "AWS::EKS::PodIdentityAssociation")
    values = str(own.only("Delivery", "Custom::AWSCDK-EKS-HelmChart")["Values"])
    assert "fs-0123456789abcdef0" in values
    assert "fsap-0123456789abcdef0" in values
