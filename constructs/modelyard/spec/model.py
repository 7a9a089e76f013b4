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
Task = Literal["generate", "embed", "rerank"]
CacheStrategy = Literal["efs", "s3-stream", "nvme"]

_S3_URI = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=-]+)*"
_EFS_URI = r"efs://[\w.-]+(/[\w.-]+)*"
_URI = rf"^(hf://[\w.-]+/[\w.-]+|{_EFS_URI}|{_S3_URI})$"
_BATCH_FILE = r"^efs://batches(/[\w.-]+)+$"
NO_ACCELERATOR = "none"
"""What a model file writes as `accelerator` to be served by CPUs."""
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
    """`hf://ORG/REPO`; `efs://PATH` for weights that are already in the shared cache, `s3://BUCKET/PREFIX` for weights
    that are streamed from a bucket of yours."""
    revision: Annotated[str, Field(pattern=r"^[\w./-]{1,80}$")] = "main"
    """Branch, tag or 40-digit commit of a Hugging Face repository."""
    file: Annotated[str, Field(pattern=r"^[\w.-]+(/[\w.-]+)*\.gguf$")] | None = None
    """The GGUF file in a repository that holds several; of a split model the first part."""
    architecture: str | None = None
    """Hugging Face id whose architecture facts apply, when the uri is not one that the table knows (always for GGUF)."""
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
    """Accelerator name such as l40s, h100 or trn2, `auto` for the cheapest that fits, or `none` for CPUs."""
    count: Annotated[int, Field(ge=1, le=64)] | None = None
    """Accelerators a replica, or vCPU of `none`; default 1 (8 vCPU), or what `auto` finds. More than a node has are
    spread over nodes."""


class ParallelismSettings(Document):
    """How a replica is split, where the plan's own choice is not wanted: tensor × pipeline × data is the count of
    accelerators."""

    tensor: Annotated[int, Field(ge=1, le=64)] | None = None
    """Slices of every layer; default: all accelerators of a node."""
    pipeline: Annotated[int, Field(ge=1, le=16)] | None = None
    """Groups of layers; default: one a node."""
    data: Annotated[int, Field(ge=1, le=64)] = 1
    """Copies of attention that share the experts of a mixture-of-experts model."""
    expert: bool = False
    """Deal out whole experts instead of slices of all."""


class Replicas(Document):
    """How many copies serve."""

    min: Annotated[int, Field(ge=0, le=500)]
    max: Annotated[int, Field(ge=1, le=500)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min must not exceed max, got min {self.min} and max {self.max}")
        return self


def _parse_replicas(value: object) -> object:
    return {"min": value, "max": value} if isinstance(value, int) and not isinstance(value, bool) else value


class Engine(Document):
    """The inference engine and the settings that the plan derives unless they are given here."""

    name: Literal["auto", "vllm", "vllm-neuron", "llama-server", "sglang", "triton"] = "auto"
    """`auto`: vLLM on NVIDIA GPUs, vLLM Neuron on Trainium, llama-server for GGUF and on CPUs."""
    backend: Literal["vllm", "tensorrtllm"] | None = None
    """Backend of `triton`; default vllm."""
    version: Annotated[str, Field(pattern=r"^(\d+\.\d+(\.\d+)?|b\d+)$")] | None = None
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
    quantization: Literal["auto", "fp8", "int8"] = "auto"
    """Quantize a 16-bit checkpoint while it is loaded; `auto` takes the checkpoint as it is (fp8, awq, gptq, int8,
    mxfp4, …)."""
    gpu_layers: Annotated[int, Field(ge=0)] | None = None
    """llama-server: layers on the GPU; default: as many as fit."""
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


class KvOffload(Document):
    """A second tier of the KV cache."""

    size_gib: Annotated[int, Field(ge=1, le=4096)]
    """GiB of the node's memory, over all GPUs of a replica."""
    backend: Literal["native", "lmcache"] = "native"
    """`lmcache` keeps it in LMCache's local CPU store, which other replicas cannot read either."""


_SIZE = re.compile(r"^(\d+)Gi$")


def _parse_kv_offload(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not (match := _SIZE.match(value)):
        raise ValueError(f"must be a size in GiB such as 64Gi, got {value}")
    return {"sizeGib": int(match[1])}


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
    videos_per_prompt: Annotated[int, Field(ge=0, le=16)] | None = None
    """Videos in one prompt of a vision model; default 0."""
    structured_outputs: Literal["auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"] = "auto"
    """Grammar backend for JSON schemas and regular expressions; `auto` lets the engine choose for each request."""
    kv_offload: Annotated[
        KvOffload | None, BeforeValidator(_parse_kv_offload, json_schema_input_type=KvOffload | str | None)
    ] = None
    """Keep KV blocks that leave the GPU in the node's memory: a size such as `64Gi` in short."""
    sleep: bool = False
    """vLLM's sleep mode: opens endpoints without a key that free the GPU's memory; never in a strict environment."""


class Adapter(Document):
    """A LoRA adapter served beside the base model."""

    name: ObjectName
    uri: Annotated[str, Field(pattern=r"^hf://[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[\w./-]{1,80}$")] = "main"
    rank: Literal[1, 8, 16, 32, 64, 128, 256, 320, 512] = 16
    """Rank of the adapter's matrices."""


class DraftModel(Document):
    """Weights that draft for the model."""

    uri: Annotated[str, Field(pattern=r"^hf://[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[\w./-]{1,80}$")] = "main"
    architecture: str | None = None
    """Hugging Face id whose architecture facts apply, when the uri is not one that the table knows."""
    config: ConfigJson | None = None
    """The draft's config.json, as `model.config`."""

    @property
    def repository(self) -> str:
        """The uri without its scheme."""
        return self.uri.split("://", 1)[1]


def _parse_draft(value: object) -> object:
    return {"uri": value} if isinstance(value, str) else value


class SpeculativeDecoding(Document):
    """Draft tokens that the model only verifies."""

    method: Literal["ngram", "draft", "mtp", "eagle", "eagle3"] = "ngram"
    """`ngram` drafts from the prompt, `mtp` with layers that the checkpoint brings, `draft` with a small model of the same
    vocabulary, `eagle` and `eagle3` with a head trained for the model."""
    model: Annotated[
        DraftModel | None, BeforeValidator(_parse_draft, json_schema_input_type=DraftModel | str | None)
    ] = None
    """What drafts, for `draft`, `eagle` and `eagle3`: `hf://ORG/REPO` in short."""
    tokens: Annotated[int, Field(ge=1, le=16)] = 5
    """Tokens drafted a step."""
    prompt_lookup_max: Annotated[int, Field(ge=1, le=16)] = 4
    """Longest piece of the prompt that `ngram` looks up, in tokens."""

    @model_validator(mode="after")
    def _a_model_where_one_drafts(self) -> Self:
        if (self.model is not None) != (self.method in ("draft", "eagle", "eagle3")):
            raise ValueError(
                f"method {self.method} needs a model"
                if self.model is None
                else f"method {self.method} takes no model"
            )
        return self


_CRON = r"^(\S+\s+){4}\S+$"


class Hours(Document):
    """Times at which replicas are kept, such as office hours."""

    start: Annotated[str, Field(pattern=_CRON)]
    """Cron expression of the beginning, five fields."""
    end: Annotated[str, Field(pattern=_CRON)]
    """Cron expression of the end."""
    timezone: Annotated[str, Field(pattern=r"^[A-Za-z_]+(/[A-Za-z_+-]+[0-9]*)*$")] = "UTC"
    """IANA name of the time zone."""
    replicas: Annotated[int, Field(ge=1, le=500)] = 1
    """Replicas in that time, at the least."""


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
    """What wakes a model that scales to zero: `gateway`, requests for it at the environment's LiteLLM gateway."""


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
    """Who may call the endpoint."""

    exposure: Literal["cluster", "internal", "public"] = "cluster"
    """`cluster`: pods alone; `internal` and `public`: the environment's gateway of that name, TLS and `/v1/*` alone."""
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
    """Replicas that only read prompts, apart from those that generate: neither holds up the other."""

    prefill: Annotated[Replicas, BeforeValidator(_parse_replicas, json_schema_input_type=Replicas | int)]
    """Replicas that read prompts; `replicas` are those that generate."""
    threshold: Annotated[int, Field(ge=0)] = 256
    """Prompt tokens not in the cache from which a request goes to a prefill replica first."""


class Batch(Document):
    """A job over a file of requests (vLLM's run-batch) instead of an endpoint."""

    input: Annotated[str, Field(pattern=_BATCH_FILE)]
    """Requests in OpenAI's batch format, one a line: a file below `efs://batches/` in the shared cache."""
    output: Annotated[str, Field(pattern=_BATCH_FILE)]
    """Where the answers go: another file there."""
    schedule: Annotated[str, Field(pattern=_CRON)] | None = None
    """Cron expression of a recurring run; default: once for each version of the job."""
    deadline: Seconds = 6 * 3600
    """Time after which a run is stopped, loading included."""


class ModelCacheSettings(Document):
    """How servers get at the weights."""

    strategy: CacheStrategy
    """`efs`: read from the shared cache; `s3-stream`: streamed from the weights' bucket into the GPU; `nvme`: copied to the
    node's own disk first."""


def _parse_cache(value: object) -> object:
    return {"strategy": value} if isinstance(value, str) else value


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


def _parse_engine(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


def _parse_accelerator(value: object) -> object:
    if not isinstance(value, str):
        return value
    name, colon, count = value.partition(":")
    if colon and not count.isdigit():
        raise ValueError(f"must be NAME or NAME:COUNT such as l40s:4, got {value}")
    return {"type": name, "count": int(count)} if colon else {"type": name}


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
    """Accelerators of one replica: `l40s`, `l40s:4`, `h100:16` over two nodes, `trn2:16`, `auto`, or `none:8` for 8 vCPU."""
    replicas: Annotated[Replicas, BeforeValidator(_parse_replicas, json_schema_input_type=Replicas | int)]
    """A number, or `{min, max}` for autoscaling."""
    task: Task = "generate"
    """`generate` answers prompts, `embed` returns vectors, `rerank` scores documents."""
    pool: ObjectName | None = None
    """Pool to run in; default: the environment's pool with this accelerator."""
    engine: Annotated[Engine, BeforeValidator(_parse_engine, json_schema_input_type=Engine | str)] = Engine()
    """The engine by name, or with its settings."""
    parallelism: ParallelismSettings | None = None
    """How a replica is split over its accelerators; default: tensor parallel in a node, pipeline parallel over nodes."""
    disaggregation: Disaggregation | None = None
    """Prefill and decode on replicas of their own."""
    batch: Batch | None = None
    """A batch job instead of an endpoint."""
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
    cache: Annotated[
        ModelCacheSettings | None,
        BeforeValidator(_parse_cache, json_schema_input_type=ModelCacheSettings | str | None),
    ] = None
    """`efs`, `s3-stream` or `nvme`; default: s3-stream for `s3://` weights, else efs."""
    access: Access = Access()
    observability: Observability = Observability()
    patches: tuple[Patch, ...] = ()

    @property
    def autoscaled(self) -> bool:
        return self.replicas.min < self.replicas.max

    @property
    def cache_strategy(self) -> CacheStrategy:
        if self.cache:
            return self.cache.strategy
        return "s3-stream" if self.model.scheme == "s3" else "efs"

    @model_validator(mode="after")
    def _streams_come_from_buckets(self) -> Self:
        if self.model.scheme == "s3" and self.cache_strategy != "s3-stream":
            raise ValueError(f"s3:// weights are streamed: use cache s3-stream, got {self.cache_strategy}")
        if self.model.scheme == "efs" and self.cache_strategy == "s3-stream":
            raise ValueError("efs:// weights cannot be streamed from S3: use cache efs or nvme")
        return self

    @model_validator(mode="after")
    def _a_batch_is_one_job(self) -> Self:
        if self.batch and (self.replicas.min, self.replicas.max) != (1, 1):
            raise ValueError("a batch is one job: replicas must be 1")
        if self.batch and self.disaggregation:
            raise ValueError("a batch has no disaggregation")
        return self

    @model_validator(mode="after")
    def _one_adapter_a_name(self) -> Self:
        names = [adapter.name for adapter in self.adapters]
        if len(set(names)) != len(names):
            raise ValueError("adapters must have different names")
        return self
