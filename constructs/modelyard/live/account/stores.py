"""Prerequisites of the stacks: CDK's bootstrap, and an existing model cache if the environment names one."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.hardware.tables import yaml_table
from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, problem
from modelyard.live.parameters import GET_PARAMETER, parameter

_FILE_SYSTEMS = Operation("efs", "DescribeFileSystems")
_ACCESS_POINTS = Operation("efs", "DescribeAccessPoints")
_MOUNT_TARGETS = Operation("efs", "DescribeMountTargets")
_OWNER = 2000
"""Uid and gid of the model servers; they cannot write to a file system that enforces other ids."""


def _judge_bootstrap(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    facts = yaml_table("account.yaml")["bootstrap"]
    environment = case.environment
    place = f"{environment.account}/{environment.region}"
    command = f"cdk bootstrap aws://{place}"
    version, least = parameter(ask, f"/cdk-bootstrap/{facts['qualifier']}/version"), facts["leastVersion"]
    if version is None:
        yield problem(place, "CDK is not bootstrapped there", command)
    elif version.isdecimal() and int(version) >= least:
        yield ok(place, f"CDK bootstrap version {version}, {least} is needed")
    else:
        yield problem(place, f"CDK bootstrap version {version}, {least} is needed", command)


def _judge_cache(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    cache = case.environment.cache
    if cache.file_system_id is None or cache.access_point_id is None:
        return
    name, region = cache.file_system_id, case.environment.region
    mend = (
        f"in {case.file}: cache: {{fileSystemId: fs-…, accessPointId: fsap-…}}; "
        f"`aws efs describe-access-points --region {region}` lists them"
    )
    try:
        (file_system,) = ask(_FILE_SYSTEMS, FileSystemId=name)["FileSystems"]
    except Refusal as refused:
        if refused.code != "FileSystemNotFound":
            raise
        yield problem(name, "the account has no such file system in the region", mend)
        return
    if file_system["LifeCycleState"] == "available":
        yield ok(name, "the file system is available")
    else:
        yield problem(name, f"the file system is {file_system['LifeCycleState']}", mend)
    yield _access_point(ask, cache.access_point_id, name, mend)
    targets = ask(_MOUNT_TARGETS, FileSystemId=name)["MountTargets"]
    zones = {target.get("AvailabilityZoneName") for target in targets}
    for zone in case.environment.availability_zones:
        if zone not in zones:
            yield problem(
                zone,
                f"{name} has no mount target there: pods in the zone cannot mount the cache",
                f"aws efs create-mount-target --file-system-id {name} --subnet-id SUBNET_IN_{zone} --region {region}",
            )


def _access_point(ask: Ask, name: str, file_system: str, mend: str) -> Diagnosis:
    try:
        (point,) = ask(_ACCESS_POINTS, AccessPointId=name)["AccessPoints"]
    except Refusal as refused:
        if refused.code != "AccessPointNotFound":
            raise
        return problem(name, "the account has no such access point in the region", mend)
    if point["FileSystemId"] != file_system:
        return problem(name, f"the access point belongs to {point['FileSystemId']}, not {file_system}", mend)
    user = point.get("PosixUser") or {}
    if (user.get("Uid"), user.get("Gid")) != (_OWNER, _OWNER):
        return problem(
            name,
            f"the access point writes as uid {user.get('Uid')} and gid {user.get('Gid')}, not {_OWNER}",
            mend,
        )
    return ok(name, f"the access point writes as {_OWNER}:{_OWNER}")


BOOTSTRAP = AccountCheck("bootstrap", (GET_PARAMETER,), _judge_bootstrap)
CACHE = AccountCheck("cache", (_FILE_SYSTEMS, _ACCESS_POINTS, _MOUNT_TARGETS), _judge_cache)
