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
TeamName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")]


class Owner(Document):
    """Who is responsible for the model, and who pays for it."""

    team: TeamName
    """Team that owns the model, as the environment's `teams` and the labels name it."""
    cost_center: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")] | None = (
        None
    )
    """Cost center, as a label of every object."""
    contact: Annotated[str, Field(max_length=256)] | None = None
    """Who is called when the model fails, as an annotation of every object."""


class Replicas(Document):
    """Number of replicas."""

    min: Annotated[int, Field(ge=0, le=500)]
    """Least replicas, such as 1; 0 scales to zero."""
    max: Annotated[int, Field(ge=1, le=500)]
    """Most replicas, such as 4."""

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
    """Start, as a cron expression with five fields."""
    end: Cron
    """End, as a cron expression."""
    timezone: TimeZone = "UTC"
    """IANA time zone, such as Europe/Berlin."""
    replicas: Annotated[int, Field(ge=1, le=500)] = 1
    """Minimum replicas in these hours."""

    @model_validator(mode="after")
    def _begins_and_ends(self) -> Self:
        begins_and_ends(self.start, self.end)
        return self


class Scaling(Document):
    """When replicas are added and removed; needs `replicas` with min < max and KEDA in the cluster."""

    metric: Literal["waiting", "kv-cache"] = "waiting"
    """`waiting`: queued requests per replica; `kv-cache`: percentage of KV cache in use."""
    target: Annotated[int, Field(ge=1, le=1000)] = 5
    """Requests or percentage at which a replica is added."""
    scale_down_after: Seconds = 600
    """Quiet time before a replica is removed; never less than the start-up budget."""
    schedule: tuple[Hours, ...] = ()
    """Hours with minimum replicas, independent of load; wakes a model that scales to zero."""
    activator: Literal["gateway"] | None = None
    """Wakes a model that scales to zero: `gateway`: on requests for it at the environment's LiteLLM
    gateway."""


class RolloutSettings(Document):
    """How replicas are replaced when the model changes."""

    strategy: Literal["auto", "surge", "in-place"] = "auto"
    """`surge` starts the new replica first; `in-place` frees the old one's accelerator first; `auto` depends
    on room in the pool."""


class Startup(Document):
    """How long a replica may take to start."""

    budget: Budget = None
    """Maximum time until a replica responds, such as 20m; `auto` derives it from size, throughput and
    compilation."""


class AllowedClients(Document):
    """Pods that may call the endpoint."""

    namespace: Annotated[str, Field(pattern=DNS_LABEL)]
    """Namespace of the pods."""
    pod_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Restrict to pods with these labels; default: every pod in the namespace."""


class Access(Document):
    """Who may call the endpoint."""

    exposure: Literal["cluster", "internal", "public"] = "cluster"
    """`cluster`: pods only; `internal` and `public`: also the environment's gateway of that name, with TLS
    and only `/v1/*`."""
    host: (
        Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$")]
        | None
    ) = None
    """Host name at the gateway; default: the model's name in the gateway's domain."""
    allow_from: tuple[AllowedClients, ...] = ()
    """Pods that may call the endpoint; default: pods in the model's namespace."""
    api_key: SecretName | None = None
    """Logical name of the secret with the API key that clients must send."""


class Disaggregation(Document):
    """Prefill on separate replicas, so that prefill and decode do not delay each other."""

    prefill: Annotated[Replicas, BeforeValidator(parse_replicas, json_schema_input_type=Replicas | int)]
    """Prefill replicas; `replicas` are the decode replicas."""
    threshold: Annotated[int, Field(ge=0)] = 256
    """Uncached prompt tokens from which a request goes to a prefill replica first."""


class Batch(Document):
    """A batch job over a file of requests (vLLM's run-batch) instead of an endpoint."""

    input: _BatchFile
    """Requests in OpenAI's batch format, one per line: a file below `efs://batches/` in the shared cache."""
    output: _BatchFile
    """Output file, also below `efs://batches/`."""
    schedule: Cron | None = None
    """Cron expression for recurring runs; default: once per version of the job."""
    deadline: Seconds = 6 * 3600
    """Maximum duration of a run, loading included."""


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
    """p95 time to first token, such as 800ms."""
    itl_p95: Latency | None = None
    """p95 time between tokens, such as 50ms."""
    e2e_p95: Annotated[Latency | None, Field(alias="e2eP95")] = None
    """p95 time to the whole answer, such as 20s."""
    error_rate: Annotated[Share, Field(gt=0, le=0.05)] | None = None
    """Maximum share of failed requests, such as 0.5%. Above 5%, an alert on fourteen times the rate could
    hardly fire."""


class Observability(Document):
    """Monitoring of the model."""

    scrape_interval: Seconds = 15
    """Scrape interval of the metrics."""
    slo: ServiceLevels = ServiceLevels.model_construct()
    """Service levels; default: none, so there are no alerts on latency or errors. Dashboards show both
    anyway."""
    dashboard: bool = True
    """Render a Grafana dashboard for this model."""
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
