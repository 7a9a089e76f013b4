"""The workload of a model's pods: a Deployment, a LeaderWorkerSet if a replica spans nodes, or a Job."""

from __future__ import annotations

from typing import Any

from modelyard.engines.registry import engine as engine_called
from modelyard.objects.labels import cost_labels, model_labels, selector_labels
from modelyard.objects.platform.model_cache import CLAIM
from modelyard.objects.platform.priority import priority_class
from modelyard.objects.pods.digest import digest
from modelyard.objects.pods.parts import claim, mount, one_off
from modelyard.objects.serving.pod import server_pod
from modelyard.objects.serving.settings import serve_settings
from modelyard.planning import ModelPlan
from modelyard.planning.identity import service_account
from modelyard.spec import Environment


def workload_kind(plan: ModelPlan) -> tuple[str, str]:
    """apiVersion and kind of the autoscaler's target."""
    if plan.serving.nodes > 1:
        return "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"
    return "apps/v1", "Deployment"


def deployment(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    """`spec` of a Deployment."""
    return {
        **_replicas(plan),
        "selector": {"matchLabels": selector_labels(plan.name)},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {
                "maxSurge": plan.rollout.max_surge,
                "maxUnavailable": plan.rollout.max_unavailable,
            },
        },
        "progressDeadlineSeconds": plan.startup.deadline,
        "revisionHistoryLimit": 5,
        "template": _pod(plan, environment),
    }


def leader_worker_set(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    """`spec` of a LeaderWorkerSet: the pods of a replica start, fail and roll out together."""
    return {
        **_replicas(plan),
        "startupPolicy": "LeaderCreated",  # all ranks must exist before any of them is ready
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {
                "maxSurge": plan.rollout.max_surge,
                "maxUnavailable": plan.rollout.max_unavailable,
            },
        },
        "networkConfig": {
            "subdomainPolicy": "Shared"
        },  # the headless Service by which workers find their leader
        "leaderWorkerTemplate": {
            "size": plan.serving.nodes,
            "restartPolicy": "RecreateGroupOnPodRestart",  # collectives do not survive the loss of a rank
            "leaderTemplate": _pod(plan, environment),
            "workerTemplate": _pod(plan, environment, worker=True),
        },
    }


def _replicas(plan: ModelPlan) -> dict[str, Any]:
    """`replicas`, unless an autoscaler owns it."""
    return {} if plan.model.autoscaled else {"replicas": plan.model.replicas.min}


def _pod(plan: ModelPlan, environment: Environment, *, worker: bool = False) -> dict[str, Any]:
    pod = server_pod(
        plan,
        environment=environment,
        priority_class=priority_class(plan, environment),
        settled=environment.strict,
        account=service_account(plan, environment),
        otlp_endpoint=environment.monitoring.otlp_endpoint,
        worker=worker,
    )
    return environment.routes.redirected(pod)


_WEEK = 7 * 24 * 3600


def batch_job(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    """`spec` of a Job that answers a file of requests and exits."""
    batch = plan.model.batch
    assert batch is not None
    template = server_pod(
        plan,
        environment=environment,
        priority_class=priority_class(plan, environment),
        settled=True,
        account=service_account(plan, environment),
    )
    template["metadata"]["labels"] = {
        **cost_labels(plan, environment.name),
        **model_labels(plan, environment.name, component="batch"),
    }
    spec = template["spec"]
    [server] = spec["containers"]
    for unused in ("ports", "lifecycle", "startupProbe", "readinessProbe", "livenessProbe"):
        server.pop(unused)
    engine = engine_called(plan.serving.release.engine)
    requests, answers = (uri.removeprefix("efs:/") for uri in (batch.input, batch.output))
    server |= {
        "name": "batch",
        "command": list(engine.batch_command()),
        "args": list(
            engine.batch_args(serve_settings(plan), plan.serving.release, requests=requests, answers=answers)
        ),
    }
    # Mounts only this folder, not the weights next to it.
    server["volumeMounts"] = [*server["volumeMounts"], mount(CLAIM, "/batches", folder="batches")]
    if claim(CLAIM) not in spec["volumes"]:  # of a batch whose weights are streamed
        spec["volumes"] = [*spec["volumes"], claim(CLAIM)]
    spec["restartPolicy"] = "Never"
    spec.pop("topologySpreadConstraints", None)
    job = one_off(
        {
            "backoffLimit": 2,
            "activeDeadlineSeconds": batch.deadline,
            # A Job of its own that a TTL deleted would be created again, and the batch would run once more.
            **({"ttlSecondsAfterFinished": _WEEK} if batch.schedule else {}),
            "template": template,
        }
    )
    return environment.routes.redirected(job)  # a Job's name is a hash of what it pulls


def batch_name(plan: ModelPlan, spec: dict[str, Any]) -> str:
    """A Job is immutable, so a new version has a new name. A CronJob keeps its name."""
    batch = plan.model.batch
    return plan.name if batch and batch.schedule else f"{plan.name}-batch-{digest(spec)}"
