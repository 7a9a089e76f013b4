"""EC2 types: elastic IPs, NAT gateways, flow logs, security group rules; the VPC's attributes."""

from __future__ import annotations

from typing import Any, ClassVar

from modelyard.localcloud.plugin.resource_type import (
    Aws,
    CompletedType,
    Made,
    Properties,
    RefusedRequest,
    ResourceAddress,
    ResourceType,
    given,
    tags_of,
)


def _tag_specifications(kind: str, properties: Properties) -> dict[str, Any]:
    if not properties.get("Tags"):
        return {}
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": list(properties["Tags"])}]}


def _retag(aws: Aws, resource_id: str, old: Properties, new: Properties) -> None:
    before, after = tags_of(old), tags_of(new)
    removed = [{"Key": key} for key in before.keys() - after.keys()]
    changed = [{"Key": key, "Value": value} for key, value in after.items() if before.get(key) != value]
    if removed:
        aws.client("ec2").delete_tags(Resources=[resource_id], Tags=removed)
    if changed:
        aws.client("ec2").create_tags(Resources=[resource_id], Tags=changed)


class ElasticAddress(ResourceType):
    name = "AWS::EC2::EIP"
    replaced_by = ("Domain", "NetworkBorderGroup", "PublicIpv4Pool", "Address")

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        answer = aws.client("ec2").allocate_address(
            Domain="vpc", **_tag_specifications("elastic-ip", properties)
        )
        return self._made(answer)

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        address = self._address(aws, physical_id)
        if address is None:
            raise RefusedRequest(f"The address {physical_id} does not exist.", "NotFound")
        _retag(aws, address["AllocationId"], old, new)
        return self._made(address)

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        address = self._address(aws, physical_id)
        if address is not None:
            aws.client("ec2").release_address(AllocationId=address["AllocationId"])

    @staticmethod
    def _address(aws: Aws, public_ip: str) -> dict[str, Any] | None:
        found = aws.client("ec2").describe_addresses()["Addresses"]
        return next((address for address in found if address["PublicIp"] == public_ip), None)

    @staticmethod
    def _made(address: dict[str, Any]) -> Made:
        # `Ref` of an EIP is the address, not the allocation id.
        attributes = {name: address[name] for name in ("PublicIp", "AllocationId")}
        return Made(address["PublicIp"], attributes)


class NatGateway(ResourceType):
    name = "AWS::EC2::NatGateway"
    replaced_by = ("SubnetId", "AllocationId", "ConnectivityType", "PrivateIpAddress")

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        ec2 = aws.client("ec2")
        ec2.describe_subnets(SubnetIds=[properties["SubnetId"]])  # MiniStack would accept any id
        allocation = properties.get("AllocationId")
        if allocation and not ec2.describe_addresses(AllocationIds=[allocation])["Addresses"]:
            raise RefusedRequest(
                f"The allocation ID '{allocation}' does not exist", "InvalidAllocationID.NotFound"
            )
        answer = ec2.create_nat_gateway(
            **given(properties, "SubnetId", "AllocationId", "ConnectivityType"),
            **_tag_specifications("natgateway", properties),
        )
        return self._made(answer["NatGateway"]["NatGatewayId"])

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        _retag(aws, physical_id, old, new)
        return self._made(physical_id)

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        aws.client("ec2").delete_nat_gateway(NatGatewayId=physical_id)

    @staticmethod
    def _made(gateway_id: str) -> Made:
        return Made(gateway_id, {"NatGatewayId": gateway_id})


class FlowLog(ResourceType):
    name = "AWS::EC2::FlowLog"
    replaced_by = (
        "ResourceId",
        "ResourceType",
        "TrafficType",
        "LogDestination",
        "LogDestinationType",
        "LogGroupName",
        "LogFormat",
        "DeliverLogsPermissionArn",
        "MaxAggregationInterval",
    )

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        ec2 = aws.client("ec2")
        if properties["ResourceType"] == "VPC":
            ec2.describe_vpcs(VpcIds=[properties["ResourceId"]])
        settings = given(properties, *self.replaced_by[2:-1])
        if "MaxAggregationInterval" in properties:
            settings["MaxAggregationInterval"] = int(properties["MaxAggregationInterval"])
        answer = ec2.create_flow_logs(
            ResourceIds=[properties["ResourceId"]],
            ResourceType=properties["ResourceType"],
            **settings,
            **_tag_specifications("vpc-flow-log", properties),
        )
        flow_log = answer["FlowLogIds"][0]
        return Made(flow_log, {"Id": flow_log})

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        _retag(aws, physical_id, old, new)
        return Made(physical_id, {"Id": physical_id})

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        aws.client("ec2").delete_flow_logs(FlowLogIds=[physical_id])


class _SecurityGroupRule(ResourceType):
    """One rule, identified by all properties except the description."""

    replaced_by = (
        "GroupId",
        "IpProtocol",
        "FromPort",
        "ToPort",
        "CidrIp",
        "CidrIpv6",
        "SourceSecurityGroupId",
        "SourcePrefixListId",
        "DestinationSecurityGroupId",
        "DestinationPrefixListId",
    )
    direction: ClassVar[str]
    peer: ClassVar[str]

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        peer_group = properties.get(f"{self.peer}SecurityGroupId")
        if peer_group:
            aws.client("ec2").describe_security_groups(GroupIds=[peer_group])
        authorize = getattr(aws.client("ec2"), f"authorize_security_group_{self.direction}")
        answer = authorize(GroupId=properties["GroupId"], IpPermissions=[self._permission(properties)])
        rule = answer["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        return Made(rule, {"Id": rule})

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        change = getattr(aws.client("ec2"), f"update_security_group_rule_descriptions_{self.direction}")
        change(GroupId=new["GroupId"], IpPermissions=[self._permission(new)])
        return Made(physical_id, {"Id": physical_id})

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        revoke = getattr(aws.client("ec2"), f"revoke_security_group_{self.direction}")
        revoke(GroupId=properties["GroupId"], SecurityGroupRuleIds=[physical_id])

    def _permission(self, properties: Properties) -> dict[str, Any]:
        permission: dict[str, Any] = {"IpProtocol": str(properties["IpProtocol"])}
        for port in ("FromPort", "ToPort"):
            if port in properties:
                permission[port] = int(properties[port])
        about = given(properties, "Description")
        if "CidrIp" in properties:
            permission["IpRanges"] = [{"CidrIp": properties["CidrIp"], **about}]
        if "CidrIpv6" in properties:
            permission["Ipv6Ranges"] = [{"CidrIpv6": properties["CidrIpv6"], **about}]
        if f"{self.peer}PrefixListId" in properties:
            permission["PrefixListIds"] = [{"PrefixListId": properties[f"{self.peer}PrefixListId"], **about}]
        if f"{self.peer}SecurityGroupId" in properties:
            permission["UserIdGroupPairs"] = [{"GroupId": properties[f"{self.peer}SecurityGroupId"], **about}]
        return permission


class SecurityGroupIngress(_SecurityGroupRule):
    name = "AWS::EC2::SecurityGroupIngress"
    direction = "ingress"
    peer = "Source"


class SecurityGroupEgress(_SecurityGroupRule):
    name = "AWS::EC2::SecurityGroupEgress"
    direction = "egress"
    peer = "Destination"


class Vpc(CompletedType):
    """CDK uses `Fn::GetAtt Vpc.CidrBlock` in the rules of every interface endpoint."""

    name = "AWS::EC2::VPC"

    def complete(self, aws: Aws, physical_id: str, properties: Properties) -> Properties:
        vpc = aws.client("ec2").describe_vpcs(VpcIds=[physical_id])["Vpcs"][0]
        associations = [item["AssociationId"] for item in vpc.get("CidrBlockAssociationSet", [])]
        return {"CidrBlock": vpc["CidrBlock"], "CidrBlockAssociations": associations, "Ipv6CidrBlocks": []}


TYPES: tuple[ResourceType, ...] = (
    ElasticAddress(),
    NatGateway(),
    FlowLog(),
    SecurityGroupIngress(),
    SecurityGroupEgress(),
    Vpc(),
)
