"""How a model is operated: replicas, scaling, access, caches and service levels."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from modelyard.reading import closest
from modelyard.secret_values import shown
from modelyard.spec.cron import Cron
from modelyard.spec.document import (
    DNS_LABEL,
    Budget,
    Document,
    Latency,
    Seconds,
    SecretName,
    Share,
)
from modelyard.spec.labels import LabelKey, LabelValue
from modelyard.spec.timezone import TimeZone
from modelyard.spec.uri import check_uri
from modelyard.spec.weights import CacheStrategy

Availability = Literal["zonal", "single"]
_BatchFile = Annotated[str, Field(pattern=r"^efs://batches(/[A-Za-z0-9_.-]+)+$"), AfterValidator(check_uri)]


class Owner(Document):
    """Who is responsible for the model, and who pays for it."""

    team: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")]
    cost_center: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")] | None = (
        None
    )
    contact: Annotated[str, Field(max_length=256)] | None = None


class Replicas(Document):
    """Number of replicas."""

    min: Annotated[int, Field(ge=0, le=500)]
    max: Annotated[int, Field(ge=1, le=500)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min must not exceed max, got min {self.min} and max {self.max}")
        return self


def parse_replicas(value: object) -> object:
    return {"min": value, "max": value} if isinstance(value, int) and not isinstance(value, bool) else value


def begins_and_ends(start: str, end: str) -> None:
    """Reject empty time ranges: KEDA rejects a scaler whose start equals its end.

    Raises:
        ValueError: start and end are equal.
    """
    if start.split() == end.split():
        raise ValueError(f"start and end are the same, {shown(start)}")


class Hours(Document):
    """Hours in which a minimum of replicas runs, such as office hours."""

    start: Cron
    """Cron expression of the beginning, five fields."""
    end: Cron
    """Cron expression of the end."""
    timezone: TimeZone = "UTC"
    """Time zone by its IANA name, such as Europe/Berlin."""
    replicas: Annotated[int, Field(ge=1, le=500)] = 1
    """Replicas in that time, at the least."""

    @model_validator(mode="after")
    def _begins_and_ends(self) -> Self:
        begins_and_ends(self.start, self.end)
        return self


class Scaling(Document):
    """When replicas are added and removed; needs `replicas` with min < max and KEDA in the cluster."""

    metric: Literal["waiting", "kv-cache"] = "waiting"
    """`waiting`: requests queued per replica; `kv-cache`: percent of the KV cache in use."""
    target: Annotated[int, Field(ge=1, le=1000)] = 5
    """Requests or percent at which another replica is added."""
    scale_down_after: Seconds = 600
    """Quiet time before a replica is removed; never less than the start-up budget."""
    schedule: tuple[Hours, ...] = ()
    """Hours in which replicas are kept whatever the load is: what wakes a model that scales to zero."""
    activator: Literal["gateway"] | None = None
    """What wakes a model that scales to zero: `gateway`, requests for it at the environment's LiteLLM
    gateway."""


class RolloutSettings(Document):
    strategy: Literal["auto", "surge", "in-place"] = "auto"
    """`surge` starts the new replica first, `in-place` frees its accelerator first; `auto` asks the pool."""


class Startup(Document):
    budget: Budget = None
    """Time a replica may take until it answers, such as 20m; `auto` derives it from size, throughput and
    compilation."""


class AllowedClients(Document):
    """Pods that may call the endpoint."""

    namespace: Annotated[str, Field(pattern=DNS_LABEL)]
    pod_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Further restriction; default: every pod of the namespace."""


class Access(Document):
    """Who may call the endpoint."""

    exposure: Literal["cluster", "internal", "public"] = "cluster"
    """`cluster`: pods alone; `internal` and `public`: the environment's gateway of that name, TLS and `/v1/*`
    alone."""
    host: (
        Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$")]
        | None
    ) = None
    """Host name at the gateway; default: the model's name under the gateway's domain."""
    allow_from: tuple[AllowedClients, ...] = ()
    """Default: pods of the model's own namespace."""
    api_key: SecretName | None = None
    """Logical name of the secret with the API key that clients must send."""


class Disaggregation(Document):
    """Prefill on separate replicas, so that prefill and decode do not delay each other."""

    prefill: Annotated[Replicas, BeforeValidator(parse_replicas, json_schema_input_type=Replicas | int)]
    """Replicas that read prompts; `replicas` are those that generate."""
    threshold: Annotated[int, Field(ge=0)] = 256
    """Prompt tokens not in the cache from which a request goes to a prefill replica first."""


class Batch(Document):
    """A batch job over a file of requests (vLLM's run-batch) instead of an endpoint."""

    input: _BatchFile
    """Requests in OpenAI's batch format, one a line: a file below `efs://batches/` in the shared cache."""
    output: _BatchFile
    """Where the answers go: another file there."""
    schedule: Cron | None = None
    """Cron expression of a recurring run; default: once for each version of the job."""
    deadline: Seconds = 6 * 3600
    """Time after which a run is stopped, loading included."""


class ModelCacheSettings(Document):
    """How servers load the weights."""

    strategy: CacheStrategy
    """`efs`: read from the shared cache; `s3-stream`: streamed from the weights' bucket into the GPU; `nvme`:
    copied to the node's own disk first."""


def parse_cache(value: object) -> object:
    return {"strategy": value} if isinstance(value, str) else value


class ServiceLevels(Document):
    """Service levels; each stated one creates burn rate alerts."""

    ttft_p95: Latency | None = None
    """Time to the first token of 95 % of requests, such as 800ms."""
    itl_p95: Latency | None = None
    """Time between two tokens, 95 % of all gaps, such as 50ms."""
    e2e_p95: Annotated[Latency | None, Field(alias="e2eP95")] = None
    """Time to the whole answer of 95 % of requests, such as 20s."""
    error_rate: Annotated[Share, Field(gt=0, le=0.05)] | None = None
    """Most requests that may fail, such as 0.5%. Above 5% an alert on fourteen times the rate could hardly
    fire."""


class Observability(Document):
    """Monitoring of the model."""

    scrape_interval: Seconds = 15
    """Time between two readings of the metrics."""
    slo: ServiceLevels = ServiceLevels.model_construct()
    """Service levels; default: none, and so no alert on latency or errors. Dashboards show them all the
    same."""
    dashboard: bool = True
    """Render a Grafana dashboard of this model."""
    tracing: bool = False
    """Send OpenTelemetry traces to the environment's `monitoring.otlpEndpoint`."""


PATCHABLE = (
    "ConfigMap",
    "CronJob",
    "Deployment",
    "HTTPRoute",
    "InferencePool",
    "Job",
    "LeaderWorkerSet",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "ScaledObject",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
)
"""Kinds that models can render; which of them one model renders depends on its settings."""


def _rendered_kind(kind: str) -> str:
    if kind not in PATCHABLE:
        by_lower = {known.lower(): known for known in PATCHABLE}
        close = closest(kind.lower(), by_lower)
        raise ValueError(
            f"no model renders it (did you mean {by_lower[close[0]]}?)"
            if close
            else f"no model renders it (known kinds are {', '.join(PATCHABLE)})"
        )
    return kind


class Patch(Document):
    """A last resort: a merge patch of one rendered object, which is then checked like every other object."""

    kind: Annotated[str, AfterValidator(_rendered_kind)]
    """Kind of the object to change."""
    merge: dict[str, Any]
    """RFC 7386 merge patch."""
