"""EKS clusters and node groups: MiniStack has both types, but stores less than the template says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modelyard.localcloud.plugin import internals
from modelyard.localcloud.plugin.resource_type import Aws, CompletedType, Properties, RefusedRequest, camel


def require_role(aws: Aws, arn: str, message: str) -> None:
    """EKS rejects a role that does not exist; MiniStack does not check. Roles of other accounts cannot be
    checked."""
    account, _, resource = arn.partition("::")[2].partition(":")
    if account == aws.account and resource.startswith("role/"):
        iam = aws.client("iam")
        try:
            iam.get_role(RoleName=resource.rsplit("/", 1)[-1])
        except iam.exceptions.NoSuchEntityException:
            raise RefusedRequest(message, "InvalidRequest") from None


def _changed(old: Properties, new: Properties, names: Sequence[str]) -> bool:
    return any(old.get(name) != new.get(name) for name in names)


def _subnets(aws: Aws, ids: Sequence[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = aws.client("ec2").describe_subnets(SubnetIds=list(ids))["Subnets"]
    return found


_CREATE_ONLY = ("RoleArn", "BootstrapSelfManagedAddons", "EncryptionConfig")
"""Properties of a cluster whose change replaces it, of those that the stacks set (resource schema,
createOnlyProperties)."""
_VERSIONS = ("Version", "ReleaseVersion")
_OTHER_UPDATES = ("LaunchTemplate", "ScalingConfig", "UpdateConfig", "Labels", "Taints", "Tags")


class EksCluster(CompletedType):
    name = "AWS::EKS::Cluster"

    def check_update(self, old: Properties, new: Properties) -> None:
        name = new.get("Name")
        if name and name == old.get("Name") and _changed(old, new, _CREATE_ONLY):
            raise RefusedRequest(
                "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
                f"Rename {name} and update the stack again.",
                "InvalidRequest",
            )

    def check(self, aws: Aws, properties: Properties) -> None:
        zones = {s["AvailabilityZone"] for s in _subnets(aws, properties["ResourcesVpcConfig"]["SubnetIds"])}
        if len(zones) < 2:
            raise RefusedRequest("Subnets specified must be in at least two different AZs", "InvalidRequest")
        role = properties["RoleArn"]
        require_role(aws, role, f"Role with arn: {role}, could not be assumed because it does not exist")

    def complete(self, aws: Aws, physical_id: str, properties: Properties) -> Properties:
        record = internals.eks_record("cluster", physical_id)
        network = record["resourcesVpcConfig"]
        network["vpcId"] = _subnets(aws, network["subnetIds"])[0]["VpcId"]
        network["clusterSecurityGroupId"] = self._security_group(aws, physical_id, network["vpcId"])
        record["deletionProtection"] = properties.get("DeletionProtection") in (True, "true")
        record["encryptionConfig"] = camel(properties.get("EncryptionConfig") or [])
        service_cidr = (properties.get("KubernetesNetworkConfig") or {}).get("ServiceIpv4Cidr")
        if service_cidr:
            record["kubernetesNetworkConfig"]["serviceIpv4Cidr"] = service_cidr
        keys = [item["provider"]["keyArn"] for item in record["encryptionConfig"]]
        return {
            "ClusterSecurityGroupId": network["clusterSecurityGroupId"],
            "EncryptionConfigKeyArn": keys[0] if keys else "",
            "KubernetesNetworkConfig.ServiceIpv4Cidr": record["kubernetesNetworkConfig"]["serviceIpv4Cidr"],
        }

    def check_deletion(self, aws: Aws, physical_id: str) -> None:
        # A rollback meets this too (EKS user guide, deletion protection).
        if aws.client("eks").describe_cluster(name=physical_id)["cluster"].get("deletionProtection"):
            raise RefusedRequest(
                f"Cluster {physical_id} cannot be deleted while deletion protection is enabled",
                "InvalidRequest",
            )

    def deleted(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        for group in self._security_groups(aws, physical_id):
            aws.client("ec2").delete_security_group(GroupId=group)

    def _security_group(self, aws: Aws, cluster: str, vpc_id: str) -> str:
        existing = self._security_groups(aws, cluster)
        if existing:
            return existing[0]
        made = aws.client("ec2").create_security_group(
            GroupName=f"eks-cluster-sg-{cluster}",
            Description="EKS created security group applied to ENI that is attached to EKS Control Plane",
            VpcId=vpc_id,
        )
        return str(made["GroupId"])

    @staticmethod
    def _security_groups(aws: Aws, cluster: str) -> list[str]:
        found = aws.client("ec2").describe_security_groups()["SecurityGroups"]
        return [group["GroupId"] for group in found if group["GroupName"] == f"eks-cluster-sg-{cluster}"]


class NodeGroup(CompletedType):
    name = "AWS::EKS::Nodegroup"

    def check_update(self, old: Properties, new: Properties) -> None:
        # aws-cdk issue 13602, containers-roadmap issue 1258.
        if _changed(old, new, _VERSIONS) and _changed(old, new, _OTHER_UPDATES):
            raise RefusedRequest(
                "Version and ReleaseVersion updates cannot be combined with other updates", "InvalidRequest"
            )

    def check(self, aws: Aws, properties: Properties) -> None:
        aws.client("eks").describe_cluster(name=properties["ClusterName"])
        _subnets(aws, properties["Subnets"])
        role = properties["NodeRole"]
        require_role(aws, role, f"The role with name {role.rsplit('/', 1)[-1]} cannot be found.")

    def complete(self, aws: Aws, physical_id: str, properties: Properties) -> Properties:
        record = internals.eks_record("node group", properties["ClusterName"], physical_id)
        record["capacityType"] = properties.get("CapacityType", "ON_DEMAND")
        return {"Id": f"{properties['ClusterName']}/{physical_id}"}


TYPES = (EksCluster(), NodeGroup())
