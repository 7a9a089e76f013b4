"""What has to be in the account before the stacks: CDK's bootstrap, and a model cache of your own where one is named."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.account.session import Action, Refused
from modelyard.account.verdict import Ask, Case, Check, Result, ok, problem
from modelyard.hardware.tables import yaml_table

_PARAMETER = Action("ssm", "GetParameter")
_FILE_SYSTEMS = Action("efs", "DescribeFileSystems")
_ACCESS_POINTS = Action("efs", "DescribeAccessPoints")
_MOUNT_TARGETS = Action("efs", "DescribeMountTargets")
_OWNER = 2000
"""Uid and gid of the model servers; a file system that enforces others cannot be written by them."""


def _judge_bootstrap(ask: Ask, case: Case) -> Iterator[Result]:
    facts = yaml_table("account.yaml")["bootstrap"]
    environment = case.environment
    place = f"{environment.account}/{environment.region}"
    command = f"cdk bootstrap aws://{place}"
    try:
        answer = ask(_PARAMETER, Name=f"/cdk-bootstrap/{facts['qualifier']}/version")
    except Refused as refused:
        if refused.code != "ParameterNotFound":
            raise
        yield problem(place, "CDK is not bootstrapped there", command)
        return
    version, least = answer["Parameter"]["Value"], facts["leastVersion"]
    if version.isdecimal() and int(version) >= least:
        yield ok(place, f"CDK bootstrap version {version}, {least} is needed")
    else:
        yield problem(place, f"CDK bootstrap version {version}, {least} is needed", command)


def _judge_cache(ask: Ask, case: Case) -> Iterator[Result]:
    cache = case.environment.cache
    if cache.file_system_id is None or cache.access_point_id is None:
        return
    name, region = cache.file_system_id, case.environment.region
    mend = f"in {case.file}: cache: {{fileSystemId: fs-…, accessPointId: fsap-…}}; `aws efs describe-access-points --region {region}` lists them"
    try:
        (file_system,) = ask(_FILE_SYSTEMS, FileSystemId=name)["FileSystems"]
    except Refused as refused:
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


def _access_point(ask: Ask, name: str, file_system: str, mend: str) -> Result:
    try:
        (point,) = ask(_ACCESS_POINTS, AccessPointId=name)["AccessPoints"]
    except Refused as refused:
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


BOOTSTRAP = Check("bootstrap", (_PARAMETER,), _judge_bootstrap)
CACHE = Check("cache", (_FILE_SYSTEMS, _ACCESS_POINTS, _MOUNT_TARGETS), _judge_cache)
