"""Endpoints that a deploy would make in a VPC of others, beside those that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, problem
from modelyard.names import ENVIRONMENT_TAG
from modelyard.spec.endpoints import interface_endpoints
from modelyard.spec.network import ExistingVpc

_ENDPOINTS = Operation("ec2", "DescribeVpcEndpoints")
_VPCS = Operation("ec2", "DescribeVpcs")
_THERE = ["available", "pending", "pendingAcceptance"]


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    network = case.environment.network
    vpc = network.vpc
    if vpc is None or (network.endpoints == "none" and not vpc.route_tables):
        return
    named = [
        {"Name": "vpc-id", "Values": [vpc.id]},
        {"Name": "vpc-endpoint-state", "Values": _THERE},
    ]
    there = [each for each in ask(_ENDPOINTS, Filters=named)["VpcEndpoints"] if not _is_ours(each, case)]
    yield from _routes(there, vpc, case)
    if network.endpoints != "none":
        yield from _interfaces(there, case)
        yield from _range(ask, vpc, case)


def _is_ours(endpoint: Mapping[str, Any], case: Case) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in endpoint.get("Tags", ())}
    return bool(tags.get(ENVIRONMENT_TAG) == case.environment.name)


def _interfaces(there: list[dict[str, Any]], case: Case) -> Iterator[Diagnosis]:
    """Two endpoints for one service cannot both answer to its name in a VPC."""
    environment = case.environment
    network, region = environment.network, environment.region
    answering = {
        each["ServiceName"]: each["VpcEndpointId"]
        for each in there
        if each["VpcEndpointType"] == "Interface" and each.get("PrivateDnsEnabled")
    }
    names = [f"com.amazonaws.{region}.{each}" for each in interface_endpoints(network.endpoints).values()]
    twice = [name for name in names if name in answering]
    for name in twice:
        others = [
            choice
            for choice in ("essential", "none")
            if not answering.keys()
            & {f"com.amazonaws.{region}.{each}" for each in interface_endpoints(choice).values()}
        ]
        yield problem(
            name,
            f"{answering[name]} answers for it in the VPC: EC2 refuses a second endpoint with private DNS",
            f"in {case.file}: network: {{endpoints: {others[0]}}}",
        )
    if not twice:
        yield ok(f"endpoints: {network.endpoints}", "nothing in the VPC answers for the same services")


def _routes(there: list[dict[str, Any]], vpc: ExistingVpc, case: Case) -> Iterator[Diagnosis]:
    """A route table takes one route to S3."""
    service = f"com.amazonaws.{case.environment.region}.s3"
    for each in there:
        if each["VpcEndpointType"] == "Gateway" and each["ServiceName"] == service:
            for table in sorted({*vpc.route_tables} & {*each.get("RouteTableIds", ())}):
                yield problem(
                    table,
                    f"{each['VpcEndpointId']} has put a route to S3 into it: EC2 refuses another",
                    f"in {case.file}: take {table} out of network.vpc.routeTables",
                )


def _range(ask: Ask, vpc: ExistingVpc, case: Case) -> Iterator[Diagnosis]:
    """The endpoints admit `network.cidr` alone; nodes in another range would wait for them in vain."""
    stated = case.environment.network.cidr
    for each in ask(_VPCS, Filters=[{"Name": "vpc-id", "Values": [vpc.id]}])["Vpcs"]:
        has = [part["CidrBlock"] for part in each.get("CidrBlockAssociationSet", ())] or [each["CidrBlock"]]
        if stated in has:
            yield ok(stated, "a range of the VPC, which its endpoints admit")
        else:
            yield problem(
                stated,
                f"network.cidr is no range of {vpc.id}: its endpoints would admit nobody, and no node would start",
                f"in {case.file}: network: {{cidr: {has[0]}}}",
            )


ENDPOINTS = AccountCheck("endpoints", (_ENDPOINTS, _VPCS), _judge)
