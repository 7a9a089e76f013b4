"""The VPC: discovery tags, cost, and private traffic."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

import pytest

from tests.synth.conftest import Synthesis, environment_file


def _subnets(synthesis: Synthesis, kind: str) -> list[dict[str, Any]]:
    return [
        subnet
        for subnet in synthesis.properties("Network", "AWS::EC2::Subnet")
        if {"Key": "aws-cdk:subnet-type", "Value": kind} in subnet["Tags"]
    ]


def test_has_a_private_and_a_public_subnet_in_each_zone_of_the_environment(each: Synthesis) -> None:
    zones = ["us-east-2a", "us-east-2b", "us-east-2c"]

    assert [subnet["AvailabilityZone"] for subnet in _subnets(each, "Private")] == zones
    assert [subnet["AvailabilityZone"] for subnet in _subnets(each, "Public")] == zones


def test_karpenter_and_internal_load_balancers_find_the_private_subnets_only(dev: Synthesis) -> None:
    discovery = {"Key": "karpenter.sh/discovery", "Value": "modelyard-dev"}
    internal = {"Key": "kubernetes.io/role/internal-elb", "Value": "1"}

    assert all(discovery in s["Tags"] and internal in s["Tags"] for s in _subnets(dev, "Private"))
    assert not any(discovery in s["Tags"] or internal in s["Tags"] for s in _subnets(dev, "Public"))


def test_no_subnet_hands_out_public_addresses(each: Synthesis) -> None:
    assert not any(s["MapPublicIpOnLaunch"] for s in each.properties("Network", "AWS::EC2::Subnet"))


@pytest.mark.parametrize("cidr", ["10.64.0.0/16", "10.0.0.0/20", "172.16.4.0/22"])
def test_three_quarters_of_the_addresses_are_private(
    cidr: str, synthesise: Callable[[str, dict[str, Any]], Synthesis]
) -> None:
    data = environment_file("local")
    data["network"]["cidr"] = cidr

    private = _subnets(synthesise("cidr", data), "Private")

    addresses = sum(ipaddress.ip_network(subnet["CidrBlock"]).num_addresses for subnet in private)
    assert addresses * 4 == ipaddress.ip_network(cidr).num_addresses * 3


def test_adding_the_third_zone_later_moves_no_subnet(
    dev: Synthesis, synthesise: Callable[[str, dict[str, Any]], Synthesis]
) -> None:
    data = environment_file("dev")
    data["availabilityZones"] = data["availabilityZones"][:2]
    data["pools"]["trn2"]["zones"] = []

    two = synthesise("two-zones", data)

    before = {s["CidrBlock"] for s in two.properties("Network", "AWS::EC2::Subnet")}
    after = {s["CidrBlock"] for s in dev.properties("Network", "AWS::EC2::Subnet")}
    assert len(before) == 4
    assert before < after


@pytest.mark.parametrize(("name", "gateways"), [("dev", 1), ("prod", 3)])
def test_nat_gateways_are_counted_by_the_environment(
    name: str, gateways: int, environment: Callable[[str], Synthesis]
) -> None:
    assert len(environment(name).resources("Network", "AWS::EC2::NatGateway")) == gateways


def test_flow_logs_are_kept_as_long_as_the_environment_says(dev: Synthesis) -> None:
    assert dev.only("Network", "AWS::Logs::LogGroup")["RetentionInDays"] == 30
    assert dev.only("Network", "AWS::EC2::FlowLog")["TrafficType"] == "ALL"


def test_aws_apis_have_private_endpoints_behind_one_group(dev: Synthesis) -> None:
    endpoints = dev.properties("Network", "AWS::EC2::VPCEndpoint")
    interfaces = [e for e in endpoints if e["VpcEndpointType"] == "Interface"]

    services = {e["ServiceName"].removeprefix("com.amazonaws.us-east-2.") for e in interfaces}
    assert services >= {
        *("ecr.api", "ecr.dkr", "ec2", "sts", "ssm", "eks", "eks-auth", "sqs", "logs"),
        *("secretsmanager", "elasticfilesystem"),
    }
    (group,) = dev.properties("Network", "AWS::EC2::SecurityGroup")
    assert [(rule["FromPort"], rule["ToPort"]) for rule in group["SecurityGroupIngress"]] == [(443, 443)]
    assert all(len(e["SecurityGroupIds"]) == 1 and e["PrivateDnsEnabled"] for e in interfaces)


def test_interface_endpoints_can_be_left_out_and_the_free_one_stays(
    synthesise: Callable[[str, dict[str, Any]], Synthesis],
) -> None:
    data = environment_file("local")
    data["network"]["endpoints"] = "none"

    (endpoint,) = synthesise("no-endpoints", data).properties("Network", "AWS::EC2::VPCEndpoint")

    assert endpoint["VpcEndpointType"] == "Gateway"


def test_the_essential_endpoints_are_those_without_which_no_node_and_no_pod_starts(
    synthesise: Callable[[str, dict[str, Any]], Synthesis],
) -> None:
    data = environment_file("local")
    data["network"]["endpoints"] = "essential"

    made = synthesise("essential-endpoints", data).properties("Network", "AWS::EC2::VPCEndpoint")

    services = {
        str(e["ServiceName"]).removeprefix("com.amazonaws.us-east-2.")
        for e in made
        if e["VpcEndpointType"] == "Interface"
    }
    assert services == {"ec2", "ecr.api", "ecr.dkr", "eks-auth"}
