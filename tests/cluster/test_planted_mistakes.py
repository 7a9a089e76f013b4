"""Mistakes of the kind that schemas let pass: the API server refuses each, and nothing without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, changed
from tests.cluster.control_plane import ControlPlane
from tests.cluster.player import playing
from tests.cluster.programs import until
from tests.cluster.trees import planned, rendered
from tests.cluster.workloads import pod_of, refusal, settled
from tests.contract.mutations import (
    CRON_POD,
    GONE,
    GROUP,
    GROUP_WORKER,
    MODEL,
    POD,
    SERVER,
    Mutation,
)

ROUTER = "split-router"
ELECTION = Mutation(
    *("pickers that are all live", "Deployment", ROUTER),
    (*POD, "containers", "endpoint-picker", "args", "--zap-encoder"),
    "--ha-enable-leader-election=true",
    "serving",
)
ROLLING = ("spec", "strategy", "rollingUpdate")

OBJECTS = (
    (
        Mutation("unknown field", "Deployment", MODEL, (*POD, "gracePeriod"), 30),
        "field not declared in schema",
    ),
    (
        Mutation("rollout that stands still", "Deployment", MODEL, (*ROLLING, "maxSurge"), 0),
        "may not be 0 when",
    ),
    (
        Mutation(
            "half of a GPU", "Deployment", MODEL, (*SERVER, "resources", "limits", "nvidia.com/gpu"), "500m"
        ),
        "must be an integer",
    ),
    (
        Mutation(
            "more GPUs asked than given",
            "Deployment",
            MODEL,
            (*SERVER, "resources", "requests"),
            {"nvidia.com/gpu": "2"},
        ),
        "must be equal to nvidia.com/gpu limit",
    ),
    (Mutation("mount of nothing", "Deployment", MODEL, (*POD, "volumes", "shm")), "Not found"),
    (
        Mutation(
            "selector of other pods",
            "Deployment",
            MODEL,
            ("spec", "selector", "matchLabels", "app.kubernetes.io/instance"),
            "other",
        ),
        "`selector` does not match template `labels`",
    ),
    (
        Mutation(
            "resized static volume",
            "PersistentVolumeClaim",
            "model-cache",
            ("spec", "resources", "requests", "storage"),
            "4000Gi",
        ),
        "only dynamically provisioned pvc can be resized",
    ),
    (
        Mutation(
            "another job of the same name",
            "Job",
            "qwen3-32b-fp8-fetch-*",
            (*POD, "priorityClassName"),
            "batch",
        ),
        "field is immutable",
    ),
    (
        Mutation("endless restarts", "CronJob", "nightly", (*CRON_POD, "restartPolicy"), "Always", "serving"),
        'valid values: "OnFailure", "Never"',
    ),
    (
        Mutation("budget of two kinds", "PodDisruptionBudget", MODEL, ("spec", "minAvailable"), 1),
        "minAvailable and maxUnavailable cannot be both set",
    ),
    (
        Mutation(
            "two ports of one name",
            "Service",
            MODEL,
            ("spec", "ports"),
            [{"name": "http", "port": 80}, {"name": "http", "port": 81}],
        ),
        "Duplicate value",
    ),
)
"""What the server refuses to store, and in which words."""

PODS = (
    (
        Mutation("no seccomp profile", "Deployment", MODEL, (*POD, "securityContext", "seccompProfile")),
        "seccompProfile",
    ),
    (
        Mutation("unconfined container", "Deployment", MODEL, (*SERVER, "securityContext")),
        "allowPrivilegeEscalation",
    ),
    (Mutation("root", "Deployment", MODEL, (*POD, "securityContext", "runAsNonRoot")), "runAsNonRoot"),
    (Mutation("host's processes", "Deployment", MODEL, (*POD, "hostIPC"), True), "host namespaces"),
    (
        Mutation(
            "folder of the node",
            "Deployment",
            MODEL,
            (*POD, "volumes", "home"),
            {"name": "home", "hostPath": {"path": "/"}},
        ),
        "restricted volume types",
    ),
    (
        Mutation(
            "unconfined init container",
            "Deployment",
            MODEL,
            (*POD, "initContainers", "await-weights", "securityContext"),
        ),
        'container "await-weights" must set securityContext',
    ),
    (
        Mutation("account that nobody made", "Deployment", MODEL, (*POD, "serviceAccountName"), "nobody"),
        'serviceaccount "nobody" not found',
    ),
    (
        Mutation("priority that nobody made", "Deployment", MODEL, (*POD, "priorityClassName"), "high"),
        "no PriorityClass with name high",
    ),
    (
        Mutation(
            "worker of a group", "LeaderWorkerSet", GROUP, (*GROUP_WORKER, "securityContext"), GONE, "serving"
        ),
        "violates PodSecurity",
    ),
    (
        Mutation("batch", "CronJob", "nightly", (*CRON_POD, "securityContext"), GONE, "serving"),
        "violates PodSecurity",
    ),
)
"""What the server stores, and whose pods it refuses: a workload that never gets one."""


def only(items: list[Object], mutation: Mutation) -> Object:
    [found] = mutation.applied([item for item in items if _is(item, mutation)][:1])
    return found


def _is(item: Object, mutation: Mutation) -> bool:
    stem = mutation.object.removesuffix("*")
    name = item["metadata"]["name"]
    return bool(
        item["kind"] == mutation.kind
        and (name == stem or (mutation.object != stem and name.startswith(stem)))
    )


def _of(
    cases: Iterable[tuple[Mutation, str]], environment: str, items: list[Object]
) -> Iterator[tuple[Mutation, str]]:
    """Those of an environment whose kind this API server knows."""
    kinds = {item["kind"] for item in items}
    return ((each, words) for each, words in cases if each.environment == environment and each.kind in kinds)


def ready(cluster: Cluster, name: str) -> list[Object]:
    """Everything but workloads, stored."""
    items = [item for item in rendered(planned(name)) if cluster.known(item)]
    cluster.put([item for item in items if item["kind"] not in {"Deployment", "CronJob", "DaemonSet"}])
    return items


@pytest.mark.parametrize("environment", ["prod", "serving"])
def test_an_object_with_a_mistake_is_refused(cluster: Cluster, environment: str) -> None:
    items = ready(cluster, environment)
    cases = [*_of(OBJECTS, environment, items)]
    whole = [item for mutation, _ in cases for item in items if _is(item, mutation)]

    assert [cluster.dry_run(item) for item in whole] == [None for _ in whole]

    said = {mutation.name: cluster.dry_run(only(items, mutation)) or "accepted" for mutation, _ in cases}
    assert {
        name: text for (name, text), (_, words) in zip(said.items(), cases, strict=True) if words not in text
    } == {}


@pytest.mark.parametrize("environment", ["prod", "serving"])
def test_a_pod_with_a_mistake_is_refused(cluster: Cluster, environment: str) -> None:
    items = ready(cluster, environment)
    cases = [*_of(PODS, environment, items)]
    whole = [_pod(item) for mutation, _ in cases for item in items if _is(item, mutation)]

    assert [refusal(cluster.api, pod) for pod in whole] == [None for _ in whole]

    said = {
        mutation.name: refusal(cluster.api, _pod(only(items, mutation))) or "accepted"
        for mutation, _ in cases
    }
    assert {
        name: text for (name, text), (_, words) in zip(said.items(), cases, strict=True) if words not in text
    } == {}


def _pod(item: Object) -> Object:
    spec = item["spec"]
    if item["kind"] == "LeaderWorkerSet":
        return pod_of(item, spec["leaderWorkerTemplate"]["workerTemplate"], "planted")
    return pod_of(
        item, (spec["jobTemplate"]["spec"] if item["kind"] == "CronJob" else spec)["template"], "planted"
    )


def test_a_workload_without_its_pods_does_not_go_unnoticed(cluster: Cluster) -> None:
    items = ready(cluster, "prod")
    broken = only(items, PODS[0][0])

    cluster.put([broken])

    assert any("violates PodSecurity" in said for said in settled(cluster.api))


@pytest.mark.parametrize("leaves_nothing", [False, True])
def test_a_batch_runs_once_unless_its_job_goes_by_itself(
    plane: ControlPlane, cluster: Cluster, leaves_nothing: bool
) -> None:
    """Planted: a time to live, after which every delivery of the same tree would start it again."""
    items = [item for item in rendered(planned("serving")) if cluster.known(item)]
    cluster.put(item for item in items if item["kind"] in {"ServiceAccount", "PriorityClass"})
    [job] = [
        item for item in items if item["kind"] == "Job" and item["metadata"]["name"].startswith("backfill-b")
    ]
    if leaves_nothing:
        job = changed(job, ("spec", "ttlSecondsAfterFinished"), 0)
    with plane.client() as kubelets, playing(kubelets):
        cluster.put([job])
        first = until(lambda: _ran(cluster, job), "the batch", seconds=60)
        if leaves_nothing:
            until(lambda: _stored(cluster, job) is None, "its end", seconds=60)

        cluster.put([job])

        assert (
            until(lambda: _stored(cluster, job), "the batch", seconds=60)["metadata"]["uid"] != first
        ) == (leaves_nothing)


def _stored(cluster: Cluster, item: Object) -> Object | None:
    metadata = item["metadata"]
    return cluster.api.get(item["apiVersion"], item["kind"], metadata["name"], metadata["namespace"])


def _ran(cluster: Cluster, job: Object) -> str | None:
    """The UID of the run, once a pod of it has ended well: the job itself may be gone by then."""
    for event in cluster.api.list("v1", "Event"):
        about = event["involvedObject"]
        if event["reason"] == "Completed" and about["name"] == job["metadata"]["name"]:
            return str(about["uid"])
    return None


@pytest.mark.parametrize("elects", [False, True])
def test_a_router_is_updated_unless_its_second_replica_waits_for_the_first(
    plane: ControlPlane, cluster: Cluster, elects: bool
) -> None:
    """Planted: leader election, with which one of two pickers is never live."""
    items = [item for item in rendered(planned("serving")) if cluster.known(item)]
    cluster.put(item for item in items if item["kind"] in {"ServiceAccount", "PriorityClass"})
    [router] = [item for item in items if item["kind"] == "Deployment" and item["metadata"]["name"] == ROUTER]
    if elects:
        [router] = ELECTION.applied([router])
    router = changed(router, ("spec", "progressDeadlineSeconds"), 5)
    update = changed(router, ("spec", "template", "metadata", "annotations"), {"modelyard.dev/update": "1"})
    with plane.client() as kubelets, playing(kubelets):
        cluster.put([router])
        until(lambda: _progress(cluster, router), "the router", seconds=60)
        cluster.put([update])
        ended = until(lambda: _progress(cluster, update), "the update", seconds=60)

    assert ended == ("ProgressDeadlineExceeded" if elects else "NewReplicaSetAvailable")


def _progress(cluster: Cluster, item: Object) -> str | None:
    """How the rollout of this generation ended, or None while it goes on."""
    stored = _stored(cluster, item)
    assert stored is not None
    status = stored.get("status", {})
    if status.get("observedGeneration") != stored["metadata"]["generation"]:
        return None
    reasons = [str(each["reason"]) for each in status["conditions"] if each["type"] == "Progressing"]
    return next(
        (each for each in reasons if each in {"ProgressDeadlineExceeded", "NewReplicaSetAvailable"}), None
    )


def test_a_team_gets_no_more_accelerators_than_its_share(cluster: Cluster) -> None:
    """The plan refuses more; a patch of somebody else's does not pass the server either."""
    items = ready(cluster, "existing")
    [share] = [
        item
        for item in items
        if item["kind"] == "ResourceQuota" and item["metadata"]["name"] == "search-accelerators"
    ]
    of_team = share["spec"]["scopeSelector"]["matchExpressions"][0]["values"]
    [server] = [
        item
        for item in items
        if item["kind"] == "Deployment"
        and item["spec"]["template"]["spec"].get("priorityClassName") in of_team
    ]
    cluster.put([server])
    assert settled(cluster.api) == []

    cluster.put([{**server, "spec": {**server["spec"], "replicas": 99}}])

    assert any("exceeded quota: search-accelerators" in said for said in settled(cluster.api))
