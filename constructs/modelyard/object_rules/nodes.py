"""Every pod fits a pool, and pools do not disrupt what runs on them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from modelyard.findings import Finding
from modelyard.hardware import platform_facts
from modelyard.names import DO_NOT_DISRUPT, NODE_POOL_LABEL, POOL_TAINT
from modelyard.object_rules.broken import broken
from modelyard.object_rules.index import reference, scaled
from modelyard.object_rules.pods import (
    AVAILABILITY,
    SERVING,
    Manifest,
    at,
    is_server,
    named,
    pod_templates,
    runs_engine,
)

_CLASSES = ("EC2NodeClass", "NodeClass")  # of Karpenter, and of EKS Auto Mode
_LONGEST_LIFE = 21 * 24  # maximum lifetime of a node in EKS Auto Mode in hours (EKS user guide, automode)
_ACCELERATORS = ("nvidia.com/gpu", "aws.amazon.com/neuron")


def node_findings(items: list[Manifest]) -> Iterator[Finding]:
    """Broken rules of pods against NodePools, and of NodePools and node classes."""
    pools = {named(item)[1]: item for item in items if item["kind"] == "NodePool"}
    classes = {(item["kind"], named(item)[1]) for item in items if item["kind"] in _CLASSES}
    overlays = [item for item in items if item["kind"] == "NodeOverlay"]
    added = {name for item in overlays for name in at(item, "spec.capacity") or {}}
    used, settled = set(), set()
    for workload in filter(runs_engine, items):
        for template in pod_templates(workload):
            wanted = (template["spec"].get("nodeSelector") or {}).get(NODE_POOL_LABEL)
            if wanted:
                used.add(wanted)
                if stated := (at(template, "metadata.annotations") or {}).get(DO_NOT_DISRUPT):
                    settled.add(wanted)
                if stated == "true" and workload["kind"] in SERVING and not _ends(pools.get(wanted)):
                    yield broken(
                        workload,
                        "keeps its nodes as they are for ever: no new AMI ever reaches them",
                        f"give {DO_NOT_DISRUPT} a duration, such as the time of a start",
                    )
            yield from _place_findings(workload, template["spec"], pools, added)
    for name, pool in pools.items():
        yield from _pool_findings(pool, classes, accelerated=name in used)
    for item in items:
        if item["kind"] == "EC2NodeClass":
            yield from _class_findings(item, settled=named(item)[1] in settled)
    growing = {
        scaled(item)
        for item in items
        if item["kind"] == "ScaledObject" and item["spec"].get("maxReplicaCount", 2) > 1
    }
    for server in filter(is_server, items):
        if server["spec"].get("replicas", 1) > 1 or reference(server) in growing:
            stated = (at(server, "metadata.annotations") or {}).get(AVAILABILITY)
            spread = pod_templates(server)[0]["spec"].get("topologySpreadConstraints")
            if not spread and stated != "single":
                yield broken(server, "may have all replicas on one node", "keep topologySpreadConstraints")


def _ends(pool: Manifest | None) -> bool:
    """Whether Karpenter may end the drain of a pool's nodes."""
    return pool is not None and bool(at(pool, "spec.template.spec.terminationGracePeriod"))


def _requests(spec: Manifest) -> set[str]:
    """Names of everything that the pod's containers request; a limit alone is a request."""
    every = [*(spec.get("initContainers") or []), *spec["containers"]]
    return {
        name
        for container in every
        for part in ("requests", "limits")
        for name in at(container, f"resources.{part}") or {}
    }


def _place_findings(
    workload: Manifest, spec: Manifest, pools: dict[str, Manifest], added: set[str]
) -> Iterator[Finding]:
    """`added`: resources that NodeOverlays add to instance types."""
    wanted = (spec.get("nodeSelector") or {}).get(NODE_POOL_LABEL)
    asked = at(spec["containers"][0], "resources.limits") or {}
    if wanted is None:
        if any(name in asked for name in _ACCELERATORS):
            yield broken(workload, "selects no pool", f"keep nodeSelector {NODE_POOL_LABEL}")
        return
    if wanted not in pools:
        yield broken(workload, f"selects pool {wanted}, which nobody renders", "keep its NodePool")
        return
    for resource in sorted(_requests(spec) - platform_facts().karpenter_resources - added):
        yield broken(
            workload,
            f"requests {resource}, which Karpenter counts on no instance type: no node is launched for it",
            "take the request out, or add the resource by a NodeOverlay",
        )
    tolerations = spec.get("tolerations") or []
    taints = at(pools[wanted], "spec.template.spec.taints") or []
    for taint in taints:
        if not any(_tolerates(each, taint) for each in tolerations):
            shown = f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
            yield broken(workload, f"does not tolerate {shown} of pool {wanted}", "keep its tolerations")
    if any(each.get("key") == POOL_TAINT for each in tolerations) and not any(
        taint["key"] == POOL_TAINT for taint in taints
    ):
        yield broken(
            pools[wanted],
            f"lacks the taint {POOL_TAINT}: GPU pods of others tolerate the taint of its accelerator on EKS",
            "keep both taints",
        )


def _tolerates(toleration: Manifest, taint: Manifest) -> bool:
    """As the scheduler compares them: no key means every key, no effect every effect."""
    any_value = toleration.get("operator") == "Exists"
    return (
        toleration.get("key") in ((None, "", taint["key"]) if any_value else (taint["key"],))
        and toleration.get("effect") in (None, "", taint["effect"])
        and (any_value or toleration.get("value", "") == taint.get("value", ""))
    )


def _pool_findings(pool: Manifest, classes: set[tuple[str, str]], *, accelerated: bool) -> Iterator[Finding]:
    spec = pool["spec"]
    named_class = at(spec, "template.spec.nodeClassRef") or {}
    if (named_class.get("kind"), named_class.get("name")) not in classes:
        yield broken(pool, "names a node class that nobody renders", "keep it")
    if not spec.get("limits"):
        yield broken(pool, "may grow without end", "keep its limits")
    if auto_mode := named_class.get("kind") == "NodeClass":
        lives = [
            _hours(at(spec, f"template.spec.{key}")) for key in ("expireAfter", "terminationGracePeriod")
        ]
        if sum(lives) > _LONGEST_LIFE:
            yield broken(
                pool,
                "has nodes that live longer than EKS Auto Mode lets them",
                f"keep expireAfter and terminationGracePeriod within {_LONGEST_LIFE}h together",
            )
    if not accelerated:
        return
    if not at(spec, "template.spec.taints"):
        yield broken(pool, "takes any pod", "keep the taint of its accelerator")
    if at(spec, "disruption.consolidationPolicy") != "WhenEmpty":
        yield broken(pool, "moves models that run", "keep consolidationPolicy WhenEmpty")
    if not auto_mode and at(spec, "template.spec.expireAfter") != "Never":
        yield broken(pool, "ends nodes that serve a model", "keep expireAfter Never")
    if not at(spec, "disruption.budgets"):
        yield broken(pool, "may replace a tenth of its nodes at once", "keep the disruption budgets")


def _hours(duration: object) -> float:
    """Hours of a duration such as `480h`; infinite for any other value."""
    text = str(duration)
    return float(text[:-1]) if text.endswith("h") and text[:-1].isdigit() else inf


def _class_findings(item: Manifest, *, settled: bool) -> Iterator[Finding]:
    """`settled`: its nodes run models that must not be moved, so no new AMI may replace the nodes."""
    spec = item["spec"]
    aliases = [str(term.get("alias", "")) for term in spec.get("amiSelectorTerms") or []]
    if settled and any(alias.endswith("@latest") for alias in aliases):
        yield broken(item, "takes any new AMI", "pin a release of the AMI")
    if at(spec, "metadataOptions.httpTokens") != "required":
        yield broken(item, "answers IMDSv1", "keep httpTokens: required")
    if at(spec, "metadataOptions.httpPutResponseHopLimit") != 1:
        yield broken(item, "gives pods the node's credentials", "keep httpPutResponseHopLimit: 1")
    disks = [at(disk, "ebs.encrypted") for disk in spec.get("blockDeviceMappings") or []]
    if not disks or not all(disks):
        yield broken(item, "has a disk that is not encrypted", "keep encrypted: true")
