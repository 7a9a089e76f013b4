"""The Kubernetes version, the cluster where there is one, its add-ons, and the addresses that are left for pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from modelyard.account.session import Action, Refused
from modelyard.account.verdict import Ask, Case, Check, Result, days_between, ok, one_by_one, problem
from modelyard.hardware.tables import yaml_table
from modelyard.planning.identity import cluster_addons
from modelyard.spec.cluster import Cluster

_VERSIONS = Action("eks", "DescribeClusterVersions")
_CLUSTER = Action("eks", "DescribeCluster")
_ADDONS = Action("eks", "ListAddons")
_ADDON = Action("eks", "DescribeAddon")
_ADDON_VERSIONS = Action("eks", "DescribeAddonVersions")
_STANDARD = "STANDARD_SUPPORT"
_KNOWN: tuple[str, ...] = get_args(Cluster.model_fields["version"].annotation)
_NEWER_RELEASE = f"this release of Modelyard knows {', '.join(_KNOWN)}: take a newer one"


def _judge_version(ask: Ask, case: Case) -> Iterator[Result]:
    wanted = case.environment.cluster.version
    rows = ask(_VERSIONS)["clusterVersions"]
    known = {row["clusterVersion"]: row for row in rows}
    # EKS may be ahead: an environment file may say what this release of Modelyard knows.
    standard = sorted(
        (v for v in _KNOWN if v in known and _support(known[v]) == _STANDARD), key=_minor, reverse=True
    )
    fix = _version_line(case, standard[0]) if standard else _NEWER_RELEASE
    row = known.get(wanted)
    if row is None or _support(row) != _STANDARD:
        support = "unknown to EKS" if row is None else f"in {_support(row).lower().replace('_', ' ')}"
        yield problem(wanted, f"Kubernetes {wanted} is {support}, not in standard support", fix)
        return
    end = row.get("endOfStandardSupportDate")
    if end is None:
        yield ok(wanted, f"Kubernetes {wanted} is in standard support")
        return
    left = days_between(case.now, end)
    facts = f"Kubernetes {wanted} is in standard support until {end:%Y-%m-%d}, {left} days"
    if left < yaml_table("account.yaml")["kubernetes"]["daysOfSupportLeft"] and fix != _version_line(
        case, wanted
    ):
        yield problem(wanted, facts, fix)
    else:
        yield ok(wanted, facts)


def _support(row: dict[str, Any]) -> str:
    """EKS has two fields for it: `versionStatus` replaces `status`, which regions may still send alone."""
    return str(row.get("versionStatus") or row.get("status", "unknown")).upper().replace("-", "_")


def _version_line(case: Case, version: str) -> str:
    return f"in {case.file}: cluster: {{version: {version!r}}}"


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def _cluster(ask: Ask, case: Case) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = ask(_CLUSTER, name=case.environment.cluster_name)["cluster"]
    except Refused as refused:
        if refused.code == "ResourceNotFoundException":
            return None
        raise
    return found


def _judge_cluster(ask: Ask, case: Case) -> Iterator[Result]:
    environment = case.environment
    name, wanted = environment.cluster_name, environment.cluster.version
    cluster = _cluster(ask, case)
    if cluster is None:
        yield ok(name, "not there yet; `cdk deploy` makes it")
        return
    has = cluster["version"]
    if cluster["status"] != "ACTIVE":
        yield problem(
            name,
            f"the cluster is {cluster['status']}",
            f"aws eks wait cluster-active --name {name} --region {environment.region}",
        )
    elif _minor(has) > _minor(wanted):
        yield problem(
            name,
            f"the cluster runs Kubernetes {has}, {case.file} says {wanted}, and a deploy takes no version back",
            _version_line(case, has) if has in _KNOWN else _NEWER_RELEASE,
        )
    elif _minor(wanted) - _minor(has) > 1:
        step = f"1.{_minor(has) + 1}"
        yield problem(
            name,
            f"the cluster runs Kubernetes {has}, {case.file} says {wanted}, and EKS goes one minor version at a time",
            f"{_version_line(case, step)}, deploy, then go on"
            if step in _KNOWN
            else f"aws eks update-cluster-version --name {name} --kubernetes-version {step} --region {environment.region}",
        )
    elif has != wanted:
        yield ok(name, f"runs Kubernetes {has}; the next deploy upgrades it to {wanted}")
    else:
        yield ok(name, f"active, Kubernetes {has}")


def _judge_addons(ask: Ask, case: Case) -> Iterator[Result]:
    name = case.environment.cluster_name
    try:
        installed = ask(_ADDONS, clusterName=name)["addons"]
    except Refused as refused:
        if refused.code == "ResourceNotFoundException":
            return  # without a cluster there are none, which check `cluster` says
        raise
    yield from one_by_one(installed, lambda addon: _addon(ask, case, addon))


def _addon(ask: Ask, case: Case, name: str) -> Result:
    environment = case.environment
    wanted = environment.cluster.version
    addon = ask(_ADDON, clusterName=environment.cluster_name, addonName=name)["addon"]
    offered = ask(_ADDON_VERSIONS, kubernetesVersion=wanted, addonName=name)["addons"]
    versions = [version for each in offered for version in each["addonVersions"]]
    compatible = [version["addonVersion"] for version in versions]
    default = next(
        (
            version["addonVersion"]
            for version in versions
            if any(c.get("defaultVersion") for c in version.get("compatibilities", ()))
        ),
        compatible[0] if compatible else None,
    )
    facts = f"{addon['addonVersion']}, {addon['status']}"
    update = (
        f"aws eks update-addon --cluster-name {environment.cluster_name} --addon-name {name} "
        f"--addon-version {default} --region {environment.region}"
    )
    if default is None:
        return problem(
            name,
            f"{facts}; EKS has no version of it for Kubernetes {wanted}",
            f"keep {case.file} at its version",
        )
    if addon["addonVersion"] not in compatible:
        return problem(name, f"{facts}, is not made for Kubernetes {wanted}", update)
    if addon["status"] not in ("ACTIVE", "UPDATING", "CREATING"):
        issues = "; ".join(
            f"{issue['code']}: {issue['message']}" for issue in addon.get("health", {}).get("issues", ())
        )
        return problem(name, f"{facts} {issues}".rstrip(), update)
    return ok(name, facts)


def _judge_versions(ask: Ask, case: Case) -> Iterator[Result]:
    """Whether EKS has the versions that a deploy installs: it withdraws old builds."""
    cluster = case.environment.cluster
    offered = {
        addon["addonName"]: [version["addonVersion"] for version in addon["addonVersions"]]
        for addon in ask(_ADDON_VERSIONS, kubernetesVersion=cluster.version)["addons"]
    }
    wanted = cluster_addons(case.environment)
    missing = [name for name in wanted if cluster.addon_version(name) not in offered.get(name, ())]
    for name in missing:
        newest = offered.get(name, [])[:1]
        yield problem(
            name,
            f"EKS does not offer {cluster.addon_version(name)} for Kubernetes {cluster.version}, which a deploy installs",
            f"in {case.file}: cluster: {{addonVersions: {{{name}: {newest[0]}}}}}"
            if newest
            else f"aws eks describe-addon-versions --addon-name {name} --kubernetes-version {cluster.version} "
            f"--region {case.environment.region}",
        )
    if not missing:
        yield ok(
            cluster.version, f"EKS offers all {len(wanted)} add-ons at the versions that a deploy installs"
        )


KUBERNETES = Check("kubernetes", (_VERSIONS,), _judge_version)
CLUSTER = Check("cluster", (_CLUSTER,), _judge_cluster)
ADDONS = Check("addons", (_ADDONS, _ADDON, _ADDON_VERSIONS), _judge_addons)
VERSIONS = Check("versions", (_ADDON_VERSIONS,), _judge_versions)
