"""`modelyard.object_rules.rules` against planted mistakes: each is found, and none crashes the check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from modelyard.findings import Severity
from modelyard.object_rules.rules import check_objects
from modelyard.objects.composition import RenderError
from modelyard.objects.patches import apply_patches, merge
from modelyard.objects.rendering import render
from modelyard.planning import Plan, plan
from modelyard.project import load_project
from modelyard.spec.operation import Patch
from tests.contract.conftest import Tree, folders_of

Manifest = dict[str, Any]
MODEL = "qwen3-32b-fp8"
SCALED = "llama-3-1-8b"
POD = ("spec", "template", "spec")
SERVER = (*POD, "containers", 0)
GONE = object()


def planted(tree: Tree, kind: str, path: tuple[Any, ...], value: object, name: str = MODEL) -> list[Manifest]:
    """All objects of `tree`, with `value` at `path` of one of them; GONE takes away what is there."""
    objects = deepcopy(list(tree.objects))
    place: Any = next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)
    for step in path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return objects


INSTANCE = "app.kubernetes.io/instance"


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("Service", ("spec", "selector", INSTANCE), "other", "selects 0 workloads"),
        ("Service", ("spec", "selector"), {}, "selects 0 workloads"),
        ("Service", ("spec", "selector"), {"modelyard.dev/env": "prod"}, "workloads"),
        ("Service", ("spec", "ports", 0, "targetPort"), 9000, "targets port 9000"),
        ("Service", ("metadata", "labels", INSTANCE), "other", "selects 0 Services"),
        ("ServiceMonitor", ("spec", "selector", "matchLabels", INSTANCE), "other", "selects 0 Services"),
        (
            "ServiceMonitor",
            ("spec", "selector", "matchLabels"),
            {"modelyard.dev/env": "prod"},
            "selects 7 Services",
        ),
        ("ServiceMonitor", ("spec", "endpoints", 0, "port"), "metrics", "scrapes port metrics"),
        ("PodDisruptionBudget", ("spec", "selector", "matchLabels", INSTANCE), "other", "selects no pods"),
        ("PodDisruptionBudget", ("metadata", "namespace"), "elsewhere", "selects no pods"),
        ("NetworkPolicy", ("spec", "podSelector", "matchLabels", INSTANCE), "other", "selects no pods"),
        ("Deployment", ("spec", "template", "metadata", "labels", INSTANCE), "other", "selects no pods"),
        ("Deployment", ("spec", "selector", "matchLabels", INSTANCE), "other", "selects no pods"),
        ("Deployment", (*POD, "serviceAccountName"), "default", "service account default"),
        ("Deployment", (*POD, "hostNetwork"), True, "namespace of the host"),
        ("Deployment", (*POD, "hostIPC"), True, "namespace of the host"),
        ("Deployment", (*POD, "hostPID"), True, "namespace of the host"),
        ("Deployment", (*POD, "securityContext", "runAsNonRoot"), False, "root or without seccomp"),
        ("Deployment", (*POD, "securityContext", "seccompProfile"), GONE, "root or without seccomp"),
        ("Deployment", (*POD, "volumes", 0), {"name": "x", "hostPath": {"path": "/"}}, "path of the host"),
        ("Deployment", (*POD, "enableServiceLinks"), GONE, "variables of every Service"),
        ("Deployment", (*SERVER, "securityContext"), GONE, "container server is not restricted"),
        (
            "Deployment",
            (*SERVER, "securityContext", "privileged"),
            True,
            "container server is not restricted",
        ),
        (
            "Deployment",
            (*SERVER, "securityContext", "readOnlyRootFilesystem"),
            False,
            "server is not restricted",
        ),
        (
            "Deployment",
            (*SERVER, "securityContext", "capabilities", "add"),
            ["SYS_ADMIN"],
            "is not restricted",
        ),
        ("Deployment", (*SERVER, "securityContext", "runAsUser"), 0, "is not restricted"),
        ("Deployment", (*POD, "initContainers", 0, "securityContext"), {}, "container await-weights"),
        ("Deployment", (*SERVER, "startupProbe"), GONE, "has no startupProbe"),
        ("Deployment", (*SERVER, "readinessProbe"), GONE, "has no readinessProbe"),
        ("Deployment", (*SERVER, "livenessProbe"), GONE, "has no livenessProbe"),
        (
            "Deployment",
            (*SERVER, "livenessProbe", "failureThreshold"),
            1,
            "killed before it stops getting traffic",
        ),
        ("Deployment", ("spec", "progressDeadlineSeconds"), 60, "fails its rollout"),
        (
            "Deployment",
            (*POD, "terminationGracePeriodSeconds"),
            75,
            "cuts requests off: grace 75 s, 15 s + 60 s",
        ),
        ("Deployment", (*SERVER, "lifecycle"), GONE, "cuts requests off"),
        ("Deployment", (*SERVER, "args"), ["/models/x"], "cuts requests off"),
        (
            "Deployment",
            ("spec", "strategy", "rollingUpdate"),
            {"maxSurge": 0, "maxUnavailable": 0},
            "never roll out",
        ),
        (
            "Deployment",
            (*SERVER, "env", 0),
            {"name": "HF_TOKEN", "value": "hf_" + "a" * 34},
            "looks like a secret",
        ),
        (
            "Deployment",
            (*SERVER, "env", 0),
            {"name": "DB_PASSWORD", "value": "hunter2"},
            "holds a secret written out",
        ),
        ("Deployment", ("metadata", "annotations", "note"), "AKIA" + "A" * 16, "looks like a secret"),
        ("ServiceAccount", ("metadata", "name"), "renamed", f"service account {MODEL}"),
        ("Service", ("metadata", "name"), "a" * 64, "name has 64 characters"),
    ],
)
def test_a_planted_mistake_is_found(
    prod: Tree, kind: str, path: tuple[Any, ...], value: object, message: str
) -> None:
    findings = check_objects(planted(prod, kind, path, value))

    assert any(message in finding.message for finding in findings), findings
    assert {finding.code for finding in findings} == {"K8S001"}
    assert all(finding.level is Severity.ERROR and finding.fix for finding in findings)


ENV = (*SERVER, "env")
TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "value"}}}
STRANGER = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "nobodys", "key": "value"}}}
BEHAVIOUR = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")
NODE = ("spec", "template", "spec")
PSS = "pod-security.kubernetes.io"


@pytest.mark.parametrize(
    ("thing", "path", "value", "message"),
    [
        ("Deployment", ENV, [], "may ask the Hub"),
        ("Deployment", (*ENV, 0), TOKEN, "has a Hugging Face token"),
        ("Deployment", (*ENV, 0), STRANGER, "reads secret nobodys"),
        ("Deployment", (*POD, "automountServiceAccountToken"), GONE, "may talk to the API server"),
        (
            "Deployment",
            (*SERVER, "volumeMounts", 3, "readOnly"),
            False,
            "can write to its weights in /models",
        ),
        ("Deployment", (*SERVER, "image"), "vllm/vllm-openai", "image vllm/vllm-openai moves"),
        ("Deployment", (*SERVER, "image"), "registry:5000/vllm:latest", "vllm:latest moves"),
        ("Deployment", (*SERVER, "resources", "limits", "memory"), GONE, "server has no memory limit"),
        ("Deployment", (*SERVER, "resources", "limits", "nvidia.com/gpu"), GONE, "differ in nvidia.com/gpu"),
        (
            "Deployment",
            (*SERVER, "resources", "limits", "memory"),
            "2GB",
            "resources.limits.memory of container server: '2GB' is no quantity",
        ),
        (
            "Deployment",
            (*SERVER, "resources", "requests", "nvidia.com/gpu"),
            "one",
            "resources.requests.nvidia.com/gpu of container server: 'one' is no quantity",
        ),
        (
            "Deployment",
            (*POD, "initContainers", 0, "resources", "requests", "cpu"),
            "",
            "resources.requests.cpu of container await-weights: '' is no quantity",
        ),
        (
            "Deployment",
            (*POD, "volumes", 1, "emptyDir", "sizeLimit"),
            "2 Gi",
            "emptyDir.sizeLimit of volume shm: '2 Gi' is no quantity",
        ),
        (
            "Deployment",
            (*POD, "volumes", 1, "emptyDir"),
            {"medium": "Memory"},
            "volume shm may fill the node",
        ),
        ("Deployment", (*POD, "volumes", 1, "emptyDir"), {}, "volume shm may fill the node"),
        ("Deployment", (*POD, "volumes", 1), GONE, "mounts volume shm, which the pod lacks"),
        ("Deployment", (*POD, "volumes", 3, "persistentVolumeClaim", "claimName"), "x", "mounts x, which"),
        ("Deployment", (*POD, "volumes", 3), {"name": "model-cache", "configMap": {"name": "y"}}, "mounts y"),
        ("Deployment", (*SERVER, "args", 0), "$(NOWHERE)/models", "refers to NOWHERE, which is no variable"),
        ("Deployment", (*POD, "priorityClassName"), "high", "has priority high"),
        (
            "Deployment",
            (*POD, "tolerations"),
            GONE,
            "does not tolerate nvidia.com/gpu=true:NoSchedule of pool g6e",
        ),
        (
            "Deployment",
            (*POD, "tolerations", 0, "effect"),
            "NoExecute",
            "does not tolerate nvidia.com/gpu=true",
        ),
        (
            "Deployment",
            (*POD, "tolerations", 0),
            {"key": "nvidia.com/gpu", "value": "false", "effect": "NoSchedule"},
            "does not tolerate nvidia.com/gpu=true",
        ),
        ("Deployment", (*POD, "nodeSelector"), GONE, "selects no pool"),
        ("Deployment", (*POD, "nodeSelector", "karpenter.sh/nodepool"), "g5", "selects pool g5"),
        ("Deployment", (*POD, "topologySpreadConstraints"), GONE, "all replicas on one node"),
        ("Job", (*POD, "restartPolicy"), "Always", "restartPolicy Always"),
        ("PodDisruptionBudget", ("metadata", "namespace"), "elsewhere", "has no PodDisruptionBudget"),
        ("NetworkPolicy", ("metadata", "namespace"), "elsewhere", "has no NetworkPolicy"),
        ("NetworkPolicy", ("spec", "ingress", 0, "from"), GONE, "lets everybody in"),
        ("NetworkPolicy", ("spec", "egress"), [{}], "lets everything out"),
        ("NetworkPolicy", ("spec", "policyTypes"), ["Ingress"], "leaves one direction open"),
        (
            "NetworkPolicy default-deny",
            ("spec", "ingress"),
            [{"from": [{"podSelector": {}}]}],
            "is open unless",
        ),
        ("Namespace models", ("metadata", "labels", f"{PSS}/enforce"), "baseline", "does not enforce"),
        ("Namespace models", ("metadata", "labels", f"{PSS}/warn"), GONE, "does not warn"),
        ("Service", ("spec", "type"), "NodePort", "is a NodePort"),
        ("ServiceMonitor", ("spec", "endpoints", 0, "relabelings"), GONE, "no label `model`"),
        (f"ScaledObject {SCALED}", ("spec", "fallback"), GONE, "has no fallback"),
        (
            f"ScaledObject {SCALED}",
            ("spec", "triggers", 0, "metadata", "ignoreNullValues"),
            "true",
            "a metric that is gone for no load",
        ),
        (
            f"ScaledObject {SCALED}",
            (*BEHAVIOUR, "scaleDown", "stabilizationWindowSeconds"),
            30,
            "removes a replica after 30 s",
        ),
        (
            "NodePool g6e",
            ("spec", "disruption", "consolidationPolicy"),
            "WhenEmptyOrUnderutilized",
            "moves models",
        ),
        ("NodePool g6e", (*NODE, "expireAfter"), GONE, "ends nodes that serve"),
        ("NodePool g6e", (*NODE, "taints"), [], "takes any pod"),
        ("NodePool g6e", ("spec", "limits"), GONE, "may grow without end"),
        ("NodePool general", ("spec", "limits"), GONE, "may grow without end"),
        ("NodePool g6e", ("spec", "disruption", "budgets"), GONE, "a tenth of its nodes"),
        ("NodePool g6e", (*NODE, "nodeClassRef", "name"), "other", "a node class that nobody renders"),
        ("EC2NodeClass g6e", ("spec", "metadataOptions", "httpTokens"), "optional", "answers IMDSv1"),
        ("EC2NodeClass g6e", ("spec", "metadataOptions"), GONE, "gives pods the node's credentials"),
        ("EC2NodeClass g6e", ("spec", "blockDeviceMappings", 0, "ebs", "encrypted"), False, "not encrypted"),
        ("EC2NodeClass g6e", ("spec", "blockDeviceMappings"), GONE, "not encrypted"),
        ("EC2NodeClass g6e", ("spec", "amiSelectorTerms", 0, "alias"), "al2023@latest", "takes any new AMI"),
    ],
)
def test_a_safety_line_is_missed(
    prod: Tree, thing: str, path: tuple[Any, ...], value: object, message: str
) -> None:
    kind, _, name = thing.partition(" ")
    name = name or (prod.of("Job")[0]["metadata"]["name"] if kind == "Job" else MODEL)

    findings = check_objects(planted(prod, kind, path, value, name))

    assert any(message in finding.message for finding in findings), findings
    assert all(finding.code == "K8S001" and finding.fix for finding in findings)


def test_replicas_may_share_a_node_where_the_model_file_says_so(tree: Callable[[str], Tree]) -> None:
    single = tree("serving").only("Deployment", "office-hours")
    assert "topologySpreadConstraints" not in single["spec"]["template"]["spec"]
    assert single["metadata"]["annotations"]["modelyard.dev/availability"] == "single"

    objects = deepcopy(list(tree("serving").objects))
    place = next(o for o in objects if o["kind"] == "Deployment" and o["metadata"]["name"] == "office-hours")
    del place["metadata"]["annotations"]["modelyard.dev/availability"]

    assert "Deployment office-hours: may have all replicas on one node" in str(check_objects(objects))


def test_an_image_by_digest_does_not_move(prod: Tree) -> None:
    image = "vllm/vllm-openai@sha256:" + "0" * 64

    assert check_objects(planted(prod, "Deployment", (*SERVER, "image"), image)) == []


def test_a_development_environment_may_follow_the_newest_ami(tree: Callable[[str], Tree]) -> None:
    dev = tree("dev")

    assert (
        check_objects(
            planted(dev, "EC2NodeClass", ("spec", "amiSelectorTerms"), [{"alias": "al2023@latest"}], "g6e")
        )
        == []
    )


def test_a_worker_refers_to_no_variable_that_it_lacks(tree: Callable[[str], Tree]) -> None:
    """vLLM converts every occurrence of a flag, so a reference that stays a word stops it at its start."""
    group = tree("serving").only("LeaderWorkerSet", "wide-experts")
    [worker] = group["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]

    assert "--data-parallel-start-rank" not in str(worker["args"])
    assert "--data-parallel-start-rank=$((LWS_WORKER_INDEX * RANKS_PER_NODE))" in worker["command"][2]


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [
        ("ScaledObject", ("spec", "scaleTargetRef", "name"), "other", "scales nothing"),
        ("Deployment", ("spec", "replicas"), 2, "has replicas and an autoscaler"),
    ],
)
def test_an_autoscaler_owns_the_number_of_its_deployment(
    prod: Tree, kind: str, path: tuple[Any, ...], value: object, message: str
) -> None:
    assert message in str(check_objects(planted(prod, kind, path, value, SCALED)))


def test_a_secret_is_never_written_to_a_file(prod: Tree) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"value": "x"}}

    [finding] = check_objects([*prod.objects, secret])
    assert "a Secret with its value" in finding.message


def test_nothing_is_rendered_twice(prod: Tree) -> None:
    findings = check_objects([*prod.objects, prod.only("NodePool", "g6e")])

    assert [finding.message for finding in findings] == ["NodePool g6e: is rendered twice"]


def _paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field; a merge patch replaces lists as a whole."""
    if here:
        yield here
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*here, key))


@pytest.mark.parametrize(
    "kind",
    [
        "Deployment",
        "Job",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "ScaledObject",
        "Service",
        "ServiceMonitor",
    ],
)
def test_whatever_a_patch_takes_away_the_rules_answer(prod: Tree, kind: str) -> None:
    """Findings or none, but no traceback: a merge patch can remove any field."""
    item = next(
        o for o in prod.of(kind) if o["metadata"]["labels"].get(INSTANCE) in (SCALED, None) or kind == "Job"
    )
    others = [o for o in prod.objects if o is not item]

    for path in _paths(item):
        patch: Any = None
        for step in reversed(path):
            patch = {step: patch}
        check_objects([*others, merge(item, patch)])


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({}, {"a": {"b": None}}, {"a": {}}),
        ({"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": 1}, "x", "x"),
    ],
)
def test_patches_merge_as_rfc_7386_says(target: Any, patch: Any, expected: Any) -> None:
    assert merge(target, patch) == expected


def test_a_patch_for_a_kind_that_is_not_rendered_is_refused() -> None:
    with pytest.raises(LookupError, match=r"CronJob.*this model renders Service"):
        apply_patches([{"kind": "Service"}], [Patch(kind="CronJob", merge={})])


@pytest.fixture
def patched(tmp_path: Any) -> Callable[[Manifest], Plan]:
    """Plan of dev with a patch of one model's Deployment."""

    def build(patch: Manifest) -> Plan:
        workspace = load_project("dev", *folders_of("dev"))
        assert workspace.environment
        model = workspace.catalogue.models[MODEL].model_copy(
            update={"patches": (Patch(kind="Deployment", merge=patch),)}
        )
        catalogue = type(workspace.catalogue)(
            {**workspace.catalogue.models, MODEL: model}, workspace.catalogue.sources
        )
        return plan(catalogue, workspace.environment)

    return build


def test_a_patch_that_breaks_a_rule_stops_the_rendering(
    patched: Callable[[Manifest], Plan], tmp_path: Any
) -> None:
    broken = patched({"spec": {"template": {"spec": {"hostNetwork": True}}}})

    with pytest.raises(RenderError) as error:
        render(broken, tmp_path / "out")

    [finding] = error.value.findings
    assert (finding.subject, finding.field) == (MODEL, ("patches",))
    assert not (tmp_path / "out").exists()


def test_a_patch_that_breaks_nothing_is_applied(patched: Callable[[Manifest], Plan], tmp_path: Any) -> None:
    harmless = patched({"metadata": {"annotations": {"example.org/note": "kept"}}})

    render(harmless, tmp_path)

    text = (tmp_path / "models" / MODEL / f"deployment-{MODEL}.yaml").read_text(encoding="utf-8")
    assert "example.org/note: kept" in text


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("PrometheusRule", ("spec", "groups")),
        ("PodMonitor", ("spec", "podMetricsEndpoints")),
        ("PodMonitor", ("spec", "selector", "matchLabels")),
    ],
)
def test_what_prometheus_needs_is_required(prod: Tree, kind: str, path: tuple[str, ...]) -> None:
    objects = deepcopy(list(prod.objects))
    place: Any = next(item for item in objects if item["kind"] == kind)
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]

    assert f"has no {'.'.join(path)}" in str(check_objects(objects))


def test_only_a_privileged_namespace_lets_a_pod_read_devices(prod: Tree) -> None:
    objects = deepcopy(list(prod.objects))
    [namespace] = [
        i for i in objects if i["kind"] == "Namespace" and i["metadata"]["name"] == "neuron-monitor"
    ]
    assert check_objects(objects) == []

    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"

    assert "DaemonSet neuron-monitor: may run as root" in str(check_objects(objects))
