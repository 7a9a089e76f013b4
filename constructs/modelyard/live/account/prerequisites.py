"""What has to be in an account, or must not be, before the first deploy of a stack: the role of spot
instances, elastic addresses, and names that somebody else has taken."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.live.account.quotas import APPLIED_QUOTA, DEFAULT_QUOTA, applied_quota
from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, problem
from modelyard.live.eks import DESCRIBE_CLUSTER, described_cluster
from modelyard.live.stacks import DESCRIBE_STACKS, environment_stacks
from modelyard.names import MODEL_CACHE, stack_name

_ROLE = Operation("iam", "GetRole")
_ADDRESSES = Operation("ec2", "DescribeAddresses")
_LOG_GROUPS = Operation("logs", "DescribeLogGroups")
_QUEUE = Operation("sqs", "GetQueueUrl")
_SECRET = Operation("secretsmanager", "DescribeSecret")
_BUCKET = Operation("s3", "GetBucketVersioning")

_SPOT_ROLE = "AWSServiceRoleForEC2Spot"
_ADDRESSES_QUOTA = "L-0263D0A3"
_UNKNOWN = (
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchBucket",
    "NoSuchEntity",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
)


def _judge_spot_role(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    pools = [name for name, pool in case.environment.pools.items() if "spot" in pool.capacity]
    if not pools:
        return
    if _exists(ask, _ROLE, RoleName=_SPOT_ROLE):
        yield ok(_SPOT_ROLE, "the account has it")
    else:
        yield problem(
            _SPOT_ROLE,
            f"the account has never had spot instances, and Karpenter may not create the role: {', '.join(pools)} would get none",
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
        )


def _judge_addresses(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    environment = case.environment
    needed = environment.network.nat_gateways
    if (
        environment.network.vpc
        or not needed
        or stack_name(environment.name, "network") in _deployed(ask, case)
    ):
        return
    used = len(ask(_ADDRESSES)["Addresses"])
    name, most = applied_quota(ask, _ADDRESSES_QUOTA)
    facts = f"{name}: {used} of {most} are used, the NAT gateways need {needed}"
    if used + needed <= most:
        yield ok(_ADDRESSES_QUOTA, facts)
    else:
        yield problem(
            _ADDRESSES_QUOTA,
            facts,
            f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {_ADDRESSES_QUOTA} "
            f"--desired-value {used + needed} --region {environment.region}",
        )


def _judge_names(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    environment, cluster = case.environment, case.environment.cluster_name
    deployed = _deployed(ask, case)

    def missing(concern: str) -> bool:
        return stack_name(environment.name, concern) not in deployed

    taken = []
    if missing("cluster") and not environment.cluster.existing:
        if described_cluster(ask, cluster):
            taken.append(("cluster", cluster))
        group = f"/aws/eks/{cluster}/cluster"
        groups = ask(_LOG_GROUPS, logGroupNamePrefix=group)["logGroups"]
        taken += [("log group", each["logGroupName"]) for each in groups if each["logGroupName"] == group]
    if missing("karpenter") and environment.cluster.runs_own_karpenter:
        if _exists(ask, _ROLE, RoleName=f"{cluster}-node"):
            taken.append(("role", f"{cluster}-node"))
        if _exists(ask, _QUEUE, QueueName=cluster):
            taken.append(("queue", cluster))
    if missing("secrets"):
        secrets = environment.secrets.values()
        taken += [("secret", name) for name in secrets if _exists(ask, _SECRET, SecretId=name)]
        reader = (environment.secrets_reader or "").rpartition("/")[2]
        if reader and _exists(ask, _ROLE, RoleName=reader):
            taken.append(("role", reader))
    bucket = environment.weights_bucket
    if missing(MODEL_CACHE) and bucket and _exists(ask, _BUCKET, Bucket=bucket):
        taken.append(("bucket", bucket))
    for kind, name in taken:
        yield problem(
            name,
            f"the account has a {kind} of this name, which a stack that does not exist yet would create",
            _fix(case, kind),
        )
    if not taken:
        yield ok(environment.name, "no name that a stack needs is taken")


def _fix(case: Case, kind: str) -> str:
    if kind in ("log group", "bucket"):
        return f"to keep it: cdk deploy --all -c env={case.env} --import-existing-resources; otherwise delete it first"
    if kind == "cluster":
        return (
            f"in {case.file}: another cluster.name; or use this one: cluster: {{existing: …}}, "
            "docs/how-to/use-an-existing-cluster.md"
        )
    if (
        kind == "secret"
    ):  # CloudFormation knows it by an ARN, which no template can state, and so imports none
        return f"save its value and delete it first, or name another in {case.file}: secrets: {{NAME: …}}"
    return f"delete the {kind}, or name another cluster in {case.file}: cluster: {{name: …}}"


def _deployed(ask: Ask, case: Case) -> set[str]:
    return {stack.name for stack in environment_stacks(ask, case.environment.name)}


def _exists(ask: Ask, operation: Operation, **parameters: str) -> bool:
    try:
        ask(operation, **parameters)
    except Refusal as refused:
        if refused.code not in _UNKNOWN:
            raise
        return False
    return True


SERVICE_ROLES = AccountCheck("service roles", (_ROLE,), _judge_spot_role)
ADDRESSES = AccountCheck(
    "addresses", (_ADDRESSES, APPLIED_QUOTA, DEFAULT_QUOTA, DESCRIBE_STACKS), _judge_addresses
)
NAMES = AccountCheck(
    "names", (DESCRIBE_CLUSTER, _LOG_GROUPS, _ROLE, _QUEUE, _SECRET, _BUCKET, DESCRIBE_STACKS), _judge_names
)
