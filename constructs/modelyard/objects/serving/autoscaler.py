"""Autoscaling by queue or KV cache, with windows longer than a model's load time."""

from __future__ import annotations

import json
import re
from typing import Any

from modelyard.engines import metrics_of
from modelyard.objects.labels import model_annotations, model_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.serving.workloads import workload_kind
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

_SCALE_DOWN_LEAST = 300  # the HorizontalPodAutoscaler's own default, in seconds
# Upper bounds of the HorizontalPodAutoscaler API, in seconds.
_WINDOW_MOST = 3600
_PERIOD_MOST = 1800


def scaled_object(plan: ModelPlan, environment: Environment) -> Manifest:
    """A KEDA ScaledObject over the engine's metrics. GPU utilisation is no measure of load: one request fills
    it."""
    replicas = plan.model.replicas
    version, kind = workload_kind(plan)
    quiet = max(_SCALE_DOWN_LEAST, plan.startup.budget, plan.model.scaling.scale_down_after)
    return manifest(
        api_version="keda.sh/v1alpha1",
        kind="ScaledObject",
        name=plan.name,
        namespace=environment.namespace,
        labels=model_labels(plan, environment.name),
        annotations=model_annotations(plan),
        spec={
            "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": plan.name},
            "minReplicaCount": replicas.min,
            "maxReplicaCount": replicas.max,
            "pollingInterval": plan.model.observability.scrape_interval,
            "cooldownPeriod": quiet,
            "fallback": {"failureThreshold": 4, "replicas": max(1, replicas.min)},
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "behavior": {
                        "scaleUp": {"stabilizationWindowSeconds": 30},
                        "scaleDown": {
                            "stabilizationWindowSeconds": min(quiet, _WINDOW_MOST),
                            "policies": [
                                {"type": "Pods", "value": 1, "periodSeconds": min(quiet, _PERIOD_MOST)}
                            ],
                        },
                    }
                }
            },
            "triggers": [_trigger(plan, environment), *_hours(plan), *_activator(plan, environment)],
        },
    )


# Requests within this time keep a model that scales to zero awake; more replicas follow the model's own
# metrics.
_ASKED_WITHIN = "5m"
_NEVER_MORE_THAN_ONE = 1_000_000


def _activator(plan: ModelPlan, environment: Environment) -> list[dict[str, Any]]:
    """A trigger on requests at the LiteLLM proxy, which also counts those that find no replica."""
    if plan.model.scaling.activator is None:
        return []
    names = plan.gateway_names
    by_name = f'="{names[0]}"' if len(names) == 1 else f"=~{json.dumps('|'.join(map(re.escape, names)))}"
    asked = f'litellm_proxy_total_requests_metric_total{{namespace="{environment.namespace}", requested_model{by_name}}}'
    query = f"sum(increase({asked}[{_ASKED_WITHIN}])) or vector(0)"
    return [_prometheus(environment, query, "AverageValue", threshold=_NEVER_MORE_THAN_ONE)]


def _hours(plan: ModelPlan) -> list[dict[str, Any]]:
    """Cron triggers; KEDA takes the largest replica count of all triggers."""
    return [
        {
            "type": "cron",
            "metadata": {
                "timezone": hours.timezone,
                "start": hours.start,
                "end": hours.end,
                "desiredReplicas": str(hours.replicas),
            },
        }
        for hours in plan.model.scaling.schedule
    ]


def _trigger(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    selector = f'{{namespace="{environment.namespace}",model="{plan.name}"}}'
    scaling = plan.model.scaling
    release = plan.interface
    signals = metrics_of(release.engine, release.version).signals
    if scaling.metric == "waiting":  # KEDA divides a sum by the replicas
        query, kind = f"sum({signals.waiting}{selector})", "AverageValue"
    else:
        query, kind = f"100 * avg({signals.kv_cache_usage}{selector})", "Value"
    if not plan.model.replicas.min:  # without replicas there is no queue, and that is no error
        query = f"({query}) or vector(0)"
    return _prometheus(environment, query, kind, threshold=scaling.target)


def _prometheus(environment: Environment, query: str, kind: str, *, threshold: int) -> dict[str, Any]:
    return {
        "type": "prometheus",
        "metricType": kind,
        "metadata": {
            "serverAddress": environment.monitoring.prometheus_url,
            "query": query,
            "threshold": str(threshold),
            # An empty result means a missing metric, not an empty queue.
            "ignoreNullValues": "false",
        },
    }
