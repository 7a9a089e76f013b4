"""Alerts of one model. Thresholds come from its plan and change with it."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.observability.rule import Alert, RuleGroup, seconds
from modelyard.observability.selection import Selection, metrics_for
from modelyard.planning import ModelPlan
from modelyard.spec.weights import fetch_name

KV_CACHE_FULL = 0.95
"""KV cache usage (0 to 1) above which new requests have to wait."""

PREEMPTIONS_PER_REQUEST = 0.1
"""Preemptions per finished request above which users notice."""

QUEUE_PER_BATCH = 0.5
"""Allowed waiting requests per replica, as a share of a full batch: beyond it, each waits for half an answer
or more."""


def model_alerts(plan: ModelPlan, namespace: str) -> RuleGroup:
    """Alerts for the on-call engineer about one model."""
    chosen = Selection.of(plan, namespace)
    alerts = [
        *_availability(plan, chosen),
        *_saturation(plan, chosen),
        *_pods(plan, chosen),
        *_waste(chosen),
        *(_autoscaling(chosen) if plan.model.autoscaled else ()),
    ]
    return RuleGroup(f"{plan.name}.alerts", tuple(alerts))


def most_waiting(plan: ModelPlan) -> int:
    """Maximum waiting requests per replica before the alert."""
    return max(1, round(plan.serving.max_num_seqs * QUEUE_PER_BATCH))


def _availability(plan: ModelPlan, chosen: Selection) -> Iterator[Alert]:
    budget = plan.startup.deadline
    # A single replica is down during the start-up of every rollout, which its owner has accepted.
    wait = "5m" if plan.model.replicas.min > 1 else seconds(plan.startup.budget)
    new = f"time() - {chosen.created} < {budget}"
    expr = f"absent({chosen.series('up')} == 1) unless on () ({new})"
    if plan.model.replicas.min == 0:
        wanted = chosen.wanted
        expr = f"({expr}) and on () ({wanted} > 0)"
    yield Alert("ModelGone", expr, wait, "critical", f"{chosen.model}: no replica answers", chosen.labels)
    signals = metrics_for(plan).signals
    if signals.running and signals.generated_tokens:
        running = f"sum by (pod) ({chosen.series(signals.running)})"
        tokens = f"sum by (pod) (rate({chosen.series(signals.generated_tokens)}[3m]))"
        yield Alert(
            "ModelHung",
            f"{running} > 0 and on (pod) ({tokens} == 0)",
            "1m",
            "critical",
            f"{chosen.model}: {{{{ $labels.pod }}}} has requests running and generates nothing",
            chosen.labels,
        )


def _saturation(plan: ModelPlan, chosen: Selection) -> Iterator[Alert]:
    signals = metrics_for(plan).signals
    waiting = chosen.series("model:requests_waiting:sum")
    if signals.waiting:
        up = chosen.series("model:replicas_up:sum")
        yield Alert(
            "RequestQueueGrowing",
            f"{waiting} > on (model, namespace) {most_waiting(plan)} * {up} "
            f"and on (model, namespace) {waiting} >= {waiting} offset 10m",
            "10m",
            "warning",
            f"{chosen.model}: {{{{ $value }}}} requests wait, and the queue does not shrink",
            chosen.labels,
        )
    if signals.kv_cache_usage and signals.waiting:
        yield Alert(
            "KvCacheFull",
            f"{chosen.series('model:kv_cache_usage:max')} > {KV_CACHE_FULL} and on (model, namespace) {waiting} > 0",
            "10m",
            "warning",
            f"{chosen.model}: the KV cache is full and requests wait for it",
            chosen.labels,
        )
    if signals.preemptions and signals.requests:
        preemptions = chosen.series("model:preemptions:rate5m")
        requests = chosen.series("model:requests:rate5m")
        yield Alert(
            "PreemptionsHigh",
            f"{preemptions} > on (model, namespace) ({PREEMPTIONS_PER_REQUEST} * {requests}) "
            f"and on (model, namespace) {preemptions} > 0",
            "15m",
            "warning",
            f"{chosen.model}: running requests are thrown out of the batch and computed again",
            chosen.labels,
        )


def _pods(plan: ModelPlan, chosen: Selection) -> Iterator[Alert]:
    server = 'container="server"'
    ready = chosen.pods("kube_pod_status_ready", 'condition="true"')
    age = f"time() - {chosen.pods('kube_pod_created')}"
    pod = "{{ $labels.pod }}"
    yield Alert(
        "ReplicaNotReady",
        f"max by (pod) ({age}) > {plan.startup.deadline} and on (pod) ({ready} == 0)",
        "5m",
        "warning",
        f"{chosen.model}: {pod} is not ready, beyond the {plan.startup.deadline} s that a start may take",
        chosen.labels,
    )
    restarts = chosen.pods("kube_pod_container_status_restarts_total", server)
    waiting = chosen.pods("kube_pod_container_status_waiting_reason", server, 'reason="CrashLoopBackOff"')
    yield Alert(
        "ModelCrashLooping",
        f"sum by (pod) (increase({restarts}[1h])) > 2 or sum by (pod) ({waiting}) > 0",
        "5m",
        "critical",
        f"{chosen.model}: {pod} starts again and again",
        chosen.labels,
    )
    killed = chosen.pods("kube_pod_container_status_last_terminated_reason", server, 'reason="OOMKilled"')
    yield Alert(
        "ModelOutOfMemory",
        f"sum by (pod) ({killed}) > 0 and on (pod) sum by (pod) (increase({restarts}[1h])) > 0",
        "0m",
        "warning",
        f"{chosen.model}: {pod} was killed for using more host memory than its limit",
        chosen.labels,
    )
    if names := sorted({fetch_name(part.uri) for part in plan.model.downloaded}):
        jobs = f'job_name=~"({"|".join(names)})-[0-9a-f]+"'
        failed = f'kube_job_failed{{namespace="{chosen.namespace}", {jobs}, condition="true"}}'
        yield Alert(
            "WeightsFetchFailed",
            f"max by (job_name) ({failed}) > 0",
            "0m",
            "warning",
            f"{chosen.model}: {{{{ $labels.job_name }}}} gave up, so replicas wait for weights",
            chosen.labels,
        )
    allowed = chosen.named("kube_poddisruptionbudget_status_pod_disruptions_allowed", "poddisruptionbudget")
    expected = chosen.named("kube_poddisruptionbudget_status_expected_pods", "poddisruptionbudget")
    yield Alert(
        "DisruptionBlocked",
        f"max({allowed}) == 0 and on () (max({expected}) > 0)",
        seconds(max(3600, plan.startup.deadline)),
        "warning",
        f"{chosen.model}: no replica may be evicted, so its nodes can be neither drained nor updated",
        chosen.labels,
    )


def _waste(chosen: Selection) -> Iterator[Alert]:
    requests = chosen.series("model:generated_tokens:rate5m")
    held = chosen.series("model:accelerators:sum")
    yield Alert(
        "AcceleratorIdle",
        f"{requests} == 0 and on (model, namespace) {held} > 0",
        "1h",
        "info",
        f"{chosen.model}: accelerators are paid for, and nobody has asked anything for an hour",
        chosen.labels,
    )


def _autoscaling(chosen: Selection) -> Iterator[Alert]:
    scaler = f"keda-hpa-{chosen.model}"
    desired = chosen.named(
        "kube_horizontalpodautoscaler_status_desired_replicas", "horizontalpodautoscaler", scaler
    )
    most = chosen.named("kube_horizontalpodautoscaler_spec_max_replicas", "horizontalpodautoscaler", scaler)
    yield Alert(
        "AutoscalerAtMaximum",
        f"max({desired}) >= max({most}) and on () ({chosen.series('model:requests_waiting:sum')} > 0)",
        "15m",
        "warning",
        f"{chosen.model}: requests wait and the autoscaler may not add a replica",
        chosen.labels,
    )
    errors = chosen.named("keda_scaler_detail_errors_total", "scaledObject")
    yield Alert(
        "AutoscalerFailing",
        f"sum(rate({errors}[5m])) > 0",
        "10m",
        "warning",
        f"{chosen.model}: the autoscaler cannot read its metric and runs the fallback number of replicas",
        chosen.labels,
    )
