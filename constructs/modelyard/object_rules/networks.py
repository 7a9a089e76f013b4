"""Ingress and egress of servers: a NetworkPolicy for each, default-deny, and no exposure to the outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from modelyard.findings import Finding
from modelyard.names import MODEL_LABEL, TEAM_LABEL
from modelyard.object_rules.broken import broken
from modelyard.object_rules.index import Labelled, labels_of
from modelyard.object_rules.pods import INSTANCE, WORKLOADS, Manifest, at, named, ports, runs_engine

_LEVELS = ("enforce", "audit", "warn")
_MODEL_LABEL = "__meta_kubernetes_service_label_app_kubernetes_io_instance"


def network_findings(items: list[Manifest]) -> Iterator[Finding]:
    """Broken rules of NetworkPolicies, Services, namespaces and monitors."""
    policies = [item for item in items if item["kind"] == "NetworkPolicy"]
    servers = [item for item in items if runs_engine(item)]
    workloads = Labelled([item for item in items if item["kind"] in WORKLOADS])
    for policy in policies:
        yield from _policy_findings(policy)
        yield from _port_findings(policy, workloads.chosen_beside(policy, _chosen(policy)))
    running = Labelled(servers)
    confined = {
        id(server) for policy in policies for server in running.chosen_beside(policy, _chosen(policy))
    }
    for server in servers:
        if id(server) not in confined:
            yield broken(
                server, "has no NetworkPolicy", "keep it: it would reach, and be reached by, everything"
            )
    for item in items:
        if item["kind"] == "Service" and at(item, "spec.type") not in (None, "ClusterIP"):
            yield broken(item, f"is a {item['spec']['type']}", "keep type ClusterIP, and use a gateway")
        if item["kind"] == "ServiceMonitor" and MODEL_LABEL in labels_of(item):
            yield from _monitor_findings(item)
    yield from _enforcement_findings(items)
    teams = {
        item["metadata"]["name"]
        for item in items
        if item["kind"] == "Namespace" and TEAM_LABEL in labels_of(item)
    }
    yield from _namespace_findings(items, {named(server)[0] for server in servers} | teams)


def _chosen(policy: Manifest) -> dict[str, str]:
    labels: dict[str, str] = at(policy, "spec.podSelector.matchLabels") or {}
    return labels


def _policy_findings(policy: Manifest) -> Iterator[Finding]:
    spec = policy["spec"]
    if set(spec.get("policyTypes") or []) < {"Ingress", "Egress"} and INSTANCE in (
        at(policy, "metadata.labels") or {}
    ):
        yield broken(policy, "leaves one direction open", "keep policyTypes Ingress and Egress")
    rules = [*(spec.get("ingress") or []), *(spec.get("egress") or [])]
    for name in sorted(
        {
            port["port"]
            for rule in rules
            for port in rule.get("ports") or []
            if isinstance(port.get("port"), str)
        }
    ):
        yield broken(
            policy,
            f"names port {name}, which the VPC CNI's controller does not find on native sidecars",
            "keep the port's number",
        )
    for rule in spec.get("ingress") or []:
        if not rule.get("from"):
            yield broken(policy, "lets everybody in", "keep `from` in every rule")
    for rule in spec.get("egress") or []:
        if not rule.get("to") and not rule.get("ports"):
            yield broken(policy, "lets everything out", "keep `to` or `ports` in every rule")


def _port_findings(policy: Manifest, chosen: Iterable[Manifest]) -> Iterator[Finding]:
    """Ports that a policy opens and no pod that it selects has."""
    there = {port for workload in chosen for port in ports(workload)}
    opened = {
        port.get("port") for rule in policy["spec"].get("ingress") or [] for port in rule.get("ports") or []
    }
    for port in sorted(each for each in opened - there if isinstance(each, int)) if there else ():
        yield broken(policy, f"opens port {port}, which no pod that it selects has", "keep the pods' port")


def _enforcement_findings(items: list[Manifest]) -> Iterator[Finding]:
    """EKS Auto Mode enforces policies only if the controller is enabled and the NodeClass asks for it."""
    switches = [at(item, "data") or {} for item in items if named(item) == ("kube-system", "amazon-vpc-cni")]
    on = any(switch.get("enable-network-policy-controller") == "true" for switch in switches)
    for item in items:
        if item["kind"] == "NodeClass" and not (on and at(item, "spec.networkPolicy")):
            yield broken(
                item,
                "has nodes that ignore NetworkPolicies",
                "keep networkPolicy: DefaultAllow, and enable-network-policy-controller: 'true' in ConfigMap "
                "kube-system/amazon-vpc-cni",
            )


def _monitor_findings(monitor: Manifest) -> Iterator[Finding]:
    for endpoint in monitor["spec"]["endpoints"]:
        written = {
            source
            for rule in endpoint.get("relabelings") or []
            if rule.get("targetLabel") == "model"
            for source in rule.get("sourceLabels") or []
        }
        if _MODEL_LABEL not in written:
            yield broken(
                monitor, "gives its series no label `model`", "keep the relabeling that rules filter by"
            )


def _namespace_findings(items: list[Manifest], homes: set[str | None]) -> Iterator[Finding]:
    for namespace in items:
        if namespace["kind"] != "Namespace" or namespace["metadata"]["name"] not in homes:
            continue
        labels = at(namespace, "metadata.labels") or {}
        missing = [
            level for level in _LEVELS if labels.get(f"pod-security.kubernetes.io/{level}") != "restricted"
        ]
        if missing:
            yield broken(
                namespace, f"does not {', '.join(missing)} `restricted`", "keep the pod-security labels"
            )
        closed = [
            item
            for item in items
            if item["kind"] == "NetworkPolicy"
            and named(item)[0] == namespace["metadata"]["name"]
            and at(item, "spec.podSelector") == {}
            and set(at(item, "spec.policyTypes") or []) == {"Ingress", "Egress"}
            and not at(item, "spec.ingress")
            and not at(item, "spec.egress")
        ]
        if not closed:
            yield broken(namespace, "is open unless a policy closes it", "keep the policy default-deny")
