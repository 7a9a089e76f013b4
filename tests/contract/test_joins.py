"""Selectors and references match: monitors to Services, Services to pods, budgets, policies, claims,
secrets."""

from __future__ import annotations

import re
from typing import Any

from modelyard.engines import releases
from modelyard.object_rules.rules import check_objects
from tests.contract.conftest import ROOT, Tree


def matches(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def templates(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Pods of a workload, those that answer requests first."""
    spec = workload["spec"]
    if workload["kind"] == "LeaderWorkerSet":
        return [spec["leaderWorkerTemplate"][f"{part}Template"] for part in ("leader", "worker")]
    return [(spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec)["template"]]


def template(workload: dict[str, Any]) -> dict[str, Any]:
    return templates(workload)[0]


def workloads(tree: Tree) -> list[dict[str, Any]]:
    return [item for kind in ("Deployment", "LeaderWorkerSet", "Job", "CronJob") for item in tree.of(kind)]


def servers(tree: Tree) -> list[dict[str, Any]]:
    """What answers requests for a model."""
    found = [*tree.of("Deployment"), *tree.of("LeaderWorkerSet")]
    return [item for item in found if item["metadata"]["labels"][NAME] == "model-server"]


NAME, INSTANCE = "app.kubernetes.io/name", "app.kubernetes.io/instance"


def labels_of(pod: dict[str, Any]) -> dict[str, str]:
    """Labels of a workload's pods; the controller of a LeaderWorkerSet adds its name."""
    found: dict[str, str] = template(pod)["metadata"]["labels"]
    if pod["kind"] == "LeaderWorkerSet":
        return found | {"leaderworkerset.sigs.k8s.io/name": pod["metadata"]["name"]}
    return found


def instance(item: dict[str, Any]) -> str:
    return str(item["metadata"]["labels"][INSTANCE])


def selected(tree: Tree, item: dict[str, Any], selector: dict[str, str]) -> list[str]:
    """Names of the workloads in the namespace of `item` whose pods `selector` matches."""
    return [
        pod["metadata"]["name"]
        for pod in workloads(tree)
        if pod["metadata"]["namespace"] == item["metadata"]["namespace"] and matches(selector, labels_of(pod))
    ]


def test_no_rule_is_broken(each: Tree) -> None:
    assert check_objects(each.objects) == []


def test_a_claim_has_the_size_of_every_release_before(each: Tree) -> None:
    """Kubernetes resizes no claim of a static volume: another size here would stop every delivery."""
    claims = [
        item
        for item in each.objects
        if (item["kind"], item["metadata"]["name"]) == ("PersistentVolumeClaim", "model-cache")
    ]

    assert {item["spec"]["resources"]["requests"]["storage"] for item in claims} <= {"2048Gi"}


def test_every_monitor_selects_its_service_and_no_other(each: Tree) -> None:
    for monitor in each.of("ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"]
        places = monitor["spec"]["namespaceSelector"]["matchNames"]
        services = [
            s
            for s in each.of("Service")
            if matches(wanted, s["metadata"]["labels"]) and s["metadata"]["namespace"] in places
        ]
        assert [instance(s) for s in services] == [instance(monitor)]
        ports = {port["name"] for port in services[0]["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


def test_every_service_budget_and_deployment_selects_its_own_pods(each: Tree) -> None:
    assert each.of("Service")
    for service in each.of("Service"):
        [found] = [w for w in workloads(each) if matches(service["spec"]["selector"], labels_of(w))]
        assert instance(found) == instance(service)
        spec = template(found)["spec"]
        containers = [*spec.get("initContainers", []), *spec["containers"]]
        ports = {port["name"] for container in containers for port in container.get("ports", [])}
        assert {p["targetPort"] for p in service["spec"]["ports"]} <= ports
    for kind in ("PodDisruptionBudget", "Deployment"):
        for item in each.of(kind):
            assert selected(each, item, item["spec"]["selector"]["matchLabels"]) == [item["metadata"]["name"]]


def test_clients_find_every_model_under_its_name(each: Tree) -> None:
    """`http://MODEL.NAMESPACE/v1`, whether the model's own pods answer or a router."""
    services = {service["metadata"]["name"] for service in each.of("Service")}

    assert {server["metadata"]["labels"]["modelyard.dev/model"] for server in servers(each)} <= services


def test_every_model_has_every_object_that_it_needs(each: Tree) -> None:
    names = {instance(item) for item in servers(each)}

    for kind in ("Service", "ServiceAccount", "PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy"):
        assert names <= {item["metadata"]["labels"].get(INSTANCE) for item in each.of(kind)}, kind


def test_every_policy_of_a_model_selects_its_server(each: Tree) -> None:
    for policy in each.of("NetworkPolicy"):
        if "app.kubernetes.io/instance" in policy["metadata"]["labels"]:
            wanted = policy["spec"]["podSelector"]["matchLabels"]
            [found] = selected(each, policy, wanted)
            [workload] = [w for w in workloads(each) if w["metadata"]["name"] == found]
            assert instance(workload) == instance(policy)


def test_no_policy_lets_everybody_in(each: Tree) -> None:
    for policy in each.of("NetworkPolicy"):
        assert all(rule.get("from") for rule in policy["spec"].get("ingress", []))


def test_every_claim_secret_account_and_pool_that_a_pod_names_is_rendered(each: Tree) -> None:
    claims = {item["metadata"]["name"] for item in each.of("PersistentVolumeClaim")}
    secrets = {item["spec"]["target"]["name"] for item in each.of("ExternalSecret")}
    accounts = {item["metadata"]["name"] for item in each.of("ServiceAccount")}
    pools = {item["metadata"]["name"] for item in each.of("NodePool")}
    priorities = {item["metadata"]["name"] for item in each.of("PriorityClass")}
    maps = {item["metadata"]["name"] for item in each.of("ConfigMap")}
    for workload, spec in [(w, pod["spec"]) for w in workloads(each) for pod in templates(w)]:
        assert spec["serviceAccountName"] in accounts
        assert {v["configMap"]["name"] for v in spec["volumes"] if "configMap" in v} <= maps
        assert {
            v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"] if "persistentVolumeClaim" in v
        } <= claims
        named = [
            e["valueFrom"]["secretKeyRef"]["name"]
            for c in spec["containers"]
            for e in c.get("env", [])
            if "secretKeyRef" in e.get("valueFrom", {})
        ]
        assert set(named) <= secrets
        if workload in servers(each):
            assert spec["nodeSelector"]["karpenter.sh/nodepool"] in pools
            assert spec["priorityClassName"] in priorities


def test_a_server_tolerates_the_taint_of_its_pool_and_asks_for_its_types(each: Tree) -> None:
    for spec in (pod["spec"] for server in servers(each) for pod in templates(server)):
        pool = template(each.only("NodePool", spec["nodeSelector"]["karpenter.sh/nodepool"]))["spec"]
        assert {t["key"] for t in pool["taints"]} <= {t["key"] for t in spec["tolerations"]}
        offered = {r["key"]: set(r["values"]) for r in pool["requirements"]}[
            "node.kubernetes.io/instance-type"
        ]
        [term] = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert set(term["matchExpressions"][0]["values"]) <= offered


def test_an_autoscaled_deployment_states_no_replicas(each: Tree) -> None:
    scaled = {item["spec"]["scaleTargetRef"]["name"] for item in each.of("ScaledObject")}

    assert scaled
    for server in servers(each):
        assert ("replicas" in server["spec"]) == (server["metadata"]["name"] not in scaled)


def test_every_flag_of_every_model_exists_in_its_release(each: Tree) -> None:
    tables = {
        _last(image): one for one in releases() if one.flags for image in (one.image, one.cpu_image) if image
    }
    checked = set()
    for server in servers(each):
        container = template(server)["spec"]["containers"][0]
        if (release := tables.get(_last(container["image"]))) is None:
            continue  # the table is not known, and free flags are refused there
        checked.add(release.engine)
        for arg in container["args"]:
            name = arg.removeprefix("--").partition("=")[0]
            assert (
                not arg.startswith("--") or name in release.flags or name.removeprefix("no-") in release.flags
            ), f"{release.engine} {arg}"
    assert "vllm" in checked
    assert each.name != "serving" or checked == {"vllm", "sglang", "llama-server"}


def _last(image: str) -> str:
    """Without its registry, which the environment may replace."""
    return image.rpartition("/")[2]


def test_no_image_moves(each: Tree) -> None:
    images = {c["image"] for w in workloads(each) for c in template(w)["spec"]["containers"]}

    assert all(re.search(r":[\w.-]+$", image) and not image.endswith(":latest") for image in images)


def test_nothing_of_this_machine_is_in_the_tree(each: Tree) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in each.folder.rglob("*.yaml"))

    assert str(ROOT) not in text
