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


def test_refuses_clear_text_and_never_honours_root(each: Synthesis) -> None:
    allow, deny = each.only("ModelCache", "AWS::EFS::FileSystem")["FileSystemPolicy"]["Statement"]

    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert "elasticfilesystem:ClientRootAccess" not in allow["Action"]


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
    values = str(own.only("Delivery", "Custom::AWSCDK-EKS-HelmChart")["Values"])
    assert "fs-0123456789abcdef0" in values
    assert "fsap-0123456789abcdef0" in values
