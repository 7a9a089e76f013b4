"""`models/NAME.yaml`: one model, three lines or a page; nothing in it belongs to an account or an environment."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from modelyard.spec.document import (
    DNS_LABEL,
    Budget,
    Document,
    Latency,
    ObjectName,
    Seconds,
    SecretName,
    Share,
)

Availability = Literal["zonal", "single"]

_URI = r"^(hf://[\w.-]+/[\w.-]+|efs://[\w.-]+(/[\w.-]+)*)$"
# Set by the server's pod, or read by vLLM as something else than people mean (VLLM_PORT is not the API's port).
_RESERVED_ENV = re.compile(
    r"HOME|USER|TMPDIR|XDG_.*|HF_.*|HUGGING_FACE_HUB_TOKEN|VLLM_(PORT|HOST_IP|API_KEY|CACHE_ROOT)"
    r"|TRITON_CACHE_DIR|TORCHINDUCTOR_CACHE_DIR|FLASHINFER_WORKSPACE_BASE"
)
_COMMIT = re.compile(r"^[0-9a-f]{40}$")

LEAST_MAX_MODEL_LEN = 256
"""The shortest `maxModelLen` that a file may state, and that a fix proposes, in tokens."""


class Owner(Document):
    """Who answers for the model and who pays."""

    team: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$")]
    cost_center: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$")] | None = None
    contact: str | None = None


class RemoteCode(Document):
    """The permission to run code from the model's repository, with the reason for it."""

    reason: Annotated[str, Field(min_length=10)]


ConfigJson = Annotated[
    dict[str, Any], BeforeValidator(lambda value: value, json_schema_input_type=dict[str, Any] | str)
]
"""A config.json; in a model file also the path to one."""


class Weights(Document):
    """Where the weights come from."""

    uri: Annotated[str, Field(pattern=_URI)]
    """`hf://ORG/REPO`, or `efs://PATH` for weights that are already in the shared cache."""
    revision: Annotated[str, Field(pattern=r"^[\w./-]{1,80}$")] = "main"
    """Branch, tag or 40-digit commit of a Hugging Face repository."""
    architecture: str | None = None
    """Hugging Face id whose architecture facts apply, when the uri is not one that the table knows."""
    config: ConfigJson | None = None
    """The checkpoint's config.json, for an architecture that no table knows; a path is relative to the model file."""
    served_names: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Names under which clients ask for the model; default: the Hugging Face id and the model's name."""
    auth: SecretName | None = None
    """Logical name of the secret with the Hugging Face token; default: `hf-token` for gated repositories."""
    trust_remote_code: RemoteCode | None = None
    """Run Python from the repository; needs a reason and a revision that is a commit."""

    @property
    def repository(self) -> str:
        """The uri without its scheme."""
        return self.uri.split("://", 1)[1]

    @property
    def scheme(self) -> str:
        return self.uri.split("://", 1)[0]

    @model_validator(mode="after")
    def _one_source_of_facts(self) -> Self:
        if self.architecture and self.config is not None:
            raise ValueError("give one of architecture and config")
        return self

    @model_validator(mode="after")
    def _remote_code_is_pinned(self) -> Self:
        if self.trust_remote_code and not _COMMIT.match(self.revision):
            raise ValueError(
                f"trustRemoteCode needs a revision that is a 40-digit commit, got {self.revision}"
            )
        return self


class Accelerator(Document):
    """Accelerators of one replica."""

    type: Annotated[str, Field(pattern=DNS_LABEL)]
    """Accelerator name such as l40s, h100 or trn2, or `auto` for the cheapest that fits."""
    count: Annotated[int, Field(ge=1, le=64)] | None = None
    """Accelerators a replica; default 1, or what `auto` finds."""


class Replicas(Document):
    """How many copies serve."""

    min: Annotated[int, Field(ge=0, le=500)]
    max: Annotated[int, Field(ge=1, le=500)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min must not exceed max, got min {self.min} and max {self.max}")
        return self


class Engine(Document):
    """The inference engine and the settings that the plan derives unless they are given here."""

    name: Literal["auto", "vllm", "vllm-neuron"] = "auto"
    """`auto`: vLLM on NVIDIA, vLLM Neuron on Trainium."""
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] | None = None
    """Engine release; default: the newest one that Modelyard knows."""
    max_model_len: Annotated[int, Field(ge=LEAST_MAX_MODEL_LEN)] | None = None
    """Longest prompt plus answer, in tokens; default: the longest that fits, up to the model's own limit."""
    concurrency: Annotated[int, Field(ge=1)] = 1
    """Requests of full length that must fit into the KV cache at once."""
    max_num_seqs: Annotated[int, Field(ge=1)] | None = None
    """Most sequences in a batch; default: the engine's."""
    max_num_batched_tokens: Annotated[int, Field(ge=256)] | None = None
    """Most tokens in a batch; default: the engine's."""
    gpu_memory_utilization: Annotated[float, Field(ge=0.3, le=0.95)] = 0.9
    """Share of the accelerator's memory for weights, activations and KV cache."""
    dtype: Literal["auto", "bfloat16", "float16"] = "auto"
    kv_cache_dtype: Literal["auto", "fp8"] = "auto"
    """`fp8` halves the KV cache."""
    enforce_eager: bool = False
    """Run without CUDA graphs: slower, less memory."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Further flags of the engine in kebab-case, without dashes; checked against the release's flag table."""
    env: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], str] = Field(default_factory=dict)
    """Environment variables of the server."""

    @field_validator("env")
    @classmethod
    def _not_the_pods_own(cls, value: dict[str, str]) -> dict[str, str]:
        taken = [name for name in value if _RESERVED_ENV.fullmatch(name)]
        if taken:
            raise ValueError(f"{', '.join(taken)} cannot be set here: the server's pod needs it for itself")
        return value

    @field_validator("args")
    @classmethod
    def _kebab_case(cls, value: dict[str, Any]) -> dict[str, Any]:
        wrong = [key for key in value if key.startswith("-") or "_" in key]
        if wrong:
            raise ValueError(
                f"flags are written without dashes in front and in kebab-case, got {', '.join(wrong)}"
            )
        return value


class Features(Document):
    """What the endpoint offers beyond plain completion."""

    tools: bool = False
    """Tool calls, with the parser of the model's family."""
    reasoning: bool = False
    """Reasoning split from the answer, with the parser of the model's family."""
    prefix_caching: bool = True
    """Reuse the KV cache of shared prompt prefixes."""
    images_per_prompt: Annotated[int, Field(ge=0, le=64)] | None = None
    """Images in one prompt of a vision model; default 1."""


class Adapter(Document):
    """A LoRA adapter served beside the base model."""

    name: ObjectName
    uri: Annotated[str, Field(pattern=r"^hf://[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[\w./-]{1,80}$")] = "main"
    rank: Literal[8, 16, 32, 64, 128, 256, 320, 512] = 16
    """Rank of the adapter's matrices."""


class SpeculativeDecoding(Document):
    """Draft tokens that the model only verifies."""

    method: Literal["ngram"] = "ngram"
    """`ngram` drafts from the prompt and needs no second model."""
    tokens: Annotated[int, Field(ge=1, le=16)] = 5
    prompt_lookup_max: Annotated[int, Field(ge=1, le=16)] = 4


class Scaling(Document):
    """When replicas are added and removed; needs `replicas` with min < max and KEDA in the cluster."""

    metric: Literal["waiting", "kv-cache"] = "waiting"
    """`waiting`: requests queued per replica; `kv-cache`: percent of the KV cache in use."""
    target: Annotated[int, Field(ge=1, le=1000)] = 5
    scale_down_after: Seconds = 600
    """Quiet time before a replica is removed; never less than the start-up budget."""


class Rollout(Document):
    strategy: Literal["auto", "surge", "in-place"] = "auto"
    """`surge` starts the new replica first, `in-place` frees its accelerator first; `auto` asks the pool."""


class Startup(Document):
    budget: Budget = None
    """Time a replica may take until it answers, such as 20m; `auto` derives it from size, throughput and compilation."""


class AllowedClients(Document):
    """Pods that may call the endpoint."""

    namespace: Annotated[str, Field(pattern=DNS_LABEL)]
    pod_labels: dict[str, str] = Field(default_factory=dict)
    """Further restriction; default: every pod of the namespace."""


class Access(Document):
    """Who may call the endpoint; it is never reachable from outside the cluster."""

    allow_from: tuple[AllowedClients, ...] = ()
    """Default: pods of the model's own namespace."""
    api_key: SecretName | None = None
    """Logical name of the secret with the API key that clients must send."""


class ServiceLevels(Document):
    """What callers may rely on; each one that is stated brings an alert on the rate at which its budget burns."""

    ttft_p95: Latency | None = None
    """Time to the first token of 95 % of requests, such as 800ms."""
    itl_p95: Latency | None = None
    """Time between two tokens, 95 % of all gaps, such as 50ms."""
    e2e_p95: Annotated[Latency | None, Field(alias="e2eP95")] = None
    """Time to the whole answer of 95 % of requests, such as 20s."""
    error_rate: Annotated[Share, Field(gt=0, le=0.05)] | None = None
    """Most requests that may fail, such as 0.5%. Above 5% an alert on fourteen times the rate could hardly fire."""


class Observability(Document):
    """How the model is watched."""

    scrape_interval: Seconds = 15
    """Time between two readings of the metrics."""
    slo: ServiceLevels = ServiceLevels()
    """Service levels; default: none, and so no alert on latency or errors. Dashboards show them all the same."""
    dashboard: bool = True
    """Render a Grafana dashboard of this model."""
    tracing: bool = False
    """Send OpenTelemetry traces to the environment's `monitoring.otlpEndpoint`."""


class Patch(Document):
    """A last resort: a merge over one rendered object, checked afterwards like everything else."""

    kind: str
    """Kind of the object to change."""
    merge: dict[str, Any]
    """RFC 7386 merge patch."""


def _parse_weights(value: object) -> object:
    return {"uri": value} if isinstance(value, str) else value


def _parse_accelerator(value: object) -> object:
    if not isinstance(value, str):
        return value
    name, colon, count = value.partition(":")
    if colon and not count.isdigit():
        raise ValueError(f"must be NAME or NAME:COUNT such as l40s:4, got {value}")
    return {"type": name, "count": int(count)} if colon else {"type": name}


def _parse_replicas(value: object) -> object:
    return {"min": value, "max": value} if isinstance(value, int) and not isinstance(value, bool) else value


class Model(Document):
    """One served model."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    """Version of this format."""
    name: ObjectName
    """Lower-case letters, digits and dashes; default: the file's name."""
    description: str | None = None
    owner: Owner | None = None
    model: Annotated[Weights, BeforeValidator(_parse_weights, json_schema_input_type=Weights | str)]
    """The weights: `hf://ORG/REPO` in short."""
    accelerator: Annotated[
        Accelerator, BeforeValidator(_parse_accelerator, json_schema_input_type=Accelerator | str)
    ]
    """Accelerators of one replica: `l40s`, `l40s:4`, `h100:8`, `trn2:16` or `auto`."""
    replicas: Annotated[Replicas, BeforeValidator(_parse_replicas, json_schema_input_type=Replicas | int)]
    """A number, or `{min, max}` for autoscaling."""
    pool: ObjectName | None = None
    """Pool to run in; default: the environment's pool with this accelerator."""
    engine: Engine = Engine()
    features: Features = Features()
    adapters: tuple[Adapter, ...] = ()
    speculative_decoding: SpeculativeDecoding | None = None
    scaling: Scaling = Scaling()
    rollout: Rollout = Rollout()
    availability: Availability | None = None
    """`zonal` spreads replicas over zones; `single` accepts that one replica is an outage at every disruption."""
    drain: Seconds = 60
    """Time that running requests get to finish when a replica stops."""
    startup: Startup = Startup()
    access: Access = Access()
    observability: Observability = Observability()
    patches: tuple[Patch, ...] = ()

    @property
    def autoscaled(self) -> bool:
        return self.replicas.min < self.replicas.max

    @model_validator(mode="after")
    def _one_adapter_a_name(self) -> Self:
        names = [adapter.name for adapter in self.adapters]
        if len(set(names)) != len(names):
            raise ValueError("adapters must have different names")
        return self
