"""Types of Amazon S3 Files: the API exists, the CloudFormation types do not."""

from __future__ import annotations

import time
from typing import Any

from modelyard.localcloud.plugin.eks_cluster import require_role
from modelyard.localcloud.plugin.resource_type import (
    Aws,
    Made,
    Properties,
    ResourceAddress,
    ResourceType,
    camel,
    given,
)

_READY_S = 60.0  # a tenth of a second on an idle machine


class FileSystem(ResourceType):
    name = "AWS::S3Files::FileSystem"
    replaced_by = ("Bucket", "Prefix", "KmsKeyId", "RoleArn")

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        aws.client("s3").head_bucket(Bucket=properties["Bucket"].rpartition(":")[2])
        require_role(aws, properties["RoleArn"], "S3 Files cannot assume the role.")
        made = aws.client("s3files").create_file_system(
            **camel(given(properties, "Bucket", "RoleArn", "Prefix", "KmsKeyId"))
        )
        identity = made["fileSystemId"]
        deadline = time.monotonic() + _READY_S
        while (
            aws.client("s3files").get_file_system(fileSystemId=identity).get("status") == "creating"
            and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        return self._made(made)

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        return self._made(aws.client("s3files").get_file_system(fileSystemId=physical_id))

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        aws.client("s3files").delete_file_system(fileSystemId=physical_id)

    @staticmethod
    def _made(answer: dict[str, Any]) -> Made:
        identity = answer["fileSystemId"]
        return Made(identity, {"FileSystemId": identity, "FileSystemArn": answer["fileSystemArn"]})


class MountTarget(ResourceType):
    name = "AWS::S3Files::MountTarget"
    replaced_by = ("FileSystemId", "SubnetId", "Ipv4Address")

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        aws.client("ec2").describe_subnets(SubnetIds=[properties["SubnetId"]])
        made = aws.client("s3files").create_mount_target(
            **camel(given(properties, "FileSystemId", "SubnetId", "SecurityGroups"))
        )
        identity = made["mountTargetId"]
        return Made(identity, {"MountTargetId": identity})

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        aws.client("s3files").update_mount_target(
            mountTargetId=physical_id, securityGroups=new["SecurityGroups"]
        )
        return Made(physical_id, {"MountTargetId": physical_id})

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        aws.client("s3files").delete_mount_target(mountTargetId=physical_id)


class AccessPoint(ResourceType):
    name = "AWS::S3Files::AccessPoint"
    replaced_by = ("FileSystemId", "PosixUser", "RootDirectory")

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        user = properties["PosixUser"]
        root = properties["RootDirectory"]
        owner = root["CreationPermissions"]
        made = aws.client("s3files").create_access_point(
            fileSystemId=properties["FileSystemId"],
            posixUser={"uid": int(user["Uid"]), "gid": int(user["Gid"])},
            rootDirectory={
                "path": root["Path"],
                "creationPermissions": {
                    "ownerUid": int(owner["OwnerUid"]),
                    "ownerGid": int(owner["OwnerGid"]),
                    "permissions": owner["Permissions"],
                },
            },
        )
        return self._made(made)

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        return self._made(aws.client("s3files").get_access_point(accessPointId=physical_id))

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        aws.client("s3files").delete_access_point(accessPointId=physical_id)

    @staticmethod
    def _made(answer: dict[str, Any]) -> Made:
        identity = answer["accessPointId"]
        return Made(identity, {"AccessPointId": identity, "AccessPointArn": answer["accessPointArn"]})


TYPES: tuple[ResourceType, ...] = (FileSystem(), MountTarget(), AccessPoint())
