"""Free IP addresses for nodes and pods in the cluster's subnets, whoever created these."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.hardware.tables import yaml_table
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, problem

_SUBNETS = Operation("ec2", "DescribeSubnets")


def _judge_subnets(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    environment = case.environment
    cluster = environment.cluster_name
    least = yaml_table("account.yaml")["subnets"]["leastFreeAddresses"]
    existing = environment.network.vpc
    if existing:
        wanted = [existing.private_subnets[zone] for zone in environment.availability_zones]
        subnets = ask(_SUBNETS, Filters=[{"Name": "subnet-id", "Values": wanted}])["Subnets"]
        for name in sorted(set(wanted) - {subnet["SubnetId"] for subnet in subnets}):
            yield problem(
                name,
                "the account has no such subnet in the region",
                f"aws ec2 describe-subnets --filters Name=vpc-id,Values={existing.id} --region {environment.region}",
            )
        for subnet in subnets:
            if subnet["VpcId"] != existing.id:
                yield problem(
                    subnet["SubnetId"],
                    f"the subnet is in {subnet['VpcId']}, {case.file} says {existing.id}",
                    f"in {case.file}: network: {{vpc: {{id: {subnet['VpcId']}}}}}",
                )
    else:
        tagged = [{"Name": "tag:karpenter.sh/discovery", "Values": [cluster]}]
        subnets = ask(_SUBNETS, Filters=tagged)["Subnets"]
    if not subnets and not existing:
        yield ok(
            cluster, f"no subnet has the tag karpenter.sh/discovery: {cluster} yet; `cdk deploy` makes them"
        )
        return
    for subnet in sorted(subnets, key=lambda each: str(each["AvailabilityZone"])):
        name = f"{subnet['SubnetId']} in {subnet['AvailabilityZone']}"
        free = subnet["AvailableIpAddressCount"]
        facts = f"{subnet['CidrBlock']} has {free} free addresses"
        if free >= least:
            yield ok(name, facts)
        else:
            yield problem(
                name,
                f"{facts}, fewer than {least}: each pod takes one, each node some",
                f"aws ec2 associate-vpc-cidr-block --vpc-id {subnet['VpcId']} --cidr-block 100.64.0.0/16 "
                f"--region {environment.region} # then a subnet in it with the tag karpenter.sh/discovery={cluster}",
            )
    if existing:
        return
    bare = set(environment.availability_zones) - {subnet["AvailabilityZone"] for subnet in subnets}
    for zone in sorted(bare):
        yield problem(
            zone,
            f"no subnet with the tag karpenter.sh/discovery: {cluster}, so Karpenter launches nothing there",
            f"cdk deploy Network -c env={case.env}",
        )


SUBNETS = AccountCheck("subnets", (_SUBNETS,), _judge_subnets)
