"""`models/NAME.yaml`: one model, three lines or a page; nothing in it depends on an account or an
environment."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from modelyard.spec.document import (
    Document,
    ObjectName,
    Seconds,
)
from modelyard.spec.engine import (
    EngineSettings,
    Features,
    ModelAccelerator,
    ParallelismSettings,
    parse_accelerator,
    parse_engine,
)
from modelyard.spec.operation import (
    Access,
    Availability,
    Batch,
    Disaggregation,
    ModelCacheSettings,
    Observability,
    Owner,
    Patch,
    Replicas,
    RolloutSettings,
    Scaling,
    Startup,
    parse_cache,
    parse_replicas,
)
from modelyard.spec.weights import (
    Adapter,
    CacheStrategy,
    DraftModel,
    SpeculativeDecoding,
    Task,
    Weights,
    parse_weights,
)


class Model(Document):
    """One served model."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    """Version of this format."""
    name: ObjectName
    """Lower-case letters, digits and dashes; default: the file name."""
    description: Annotated[str, Field(max_length=4096)] | None = None
    """A few sentences, added to every object as an annotation."""
    owner: Owner | None = None
    model: Annotated[Weights, BeforeValidator(parse_weights, json_schema_input_type=Weights | str)]
    """The weights; short form: `hf://ORG/REPO`."""
    accelerator: Annotated[
        ModelAccelerator, BeforeValidator(parse_accelerator, json_schema_input_type=ModelAccelerator | str)
    ]
    """Accelerators of one replica: `l40s`, `l40s:4`, `h100:16` over two nodes, `trn2:16`, `auto`, or `none:8`
    for 8 vCPU."""
    replicas: Annotated[Replicas, BeforeValidator(parse_replicas, json_schema_input_type=Replicas | int)]
    """A number, or `{min, max}` for autoscaling."""
    task: Task = "generate"
    """`generate` answers prompts, `embed` returns vectors, `rerank` scores documents."""
    pool: ObjectName | None = None
    """Pool to run in; default: the environment's pool with this accelerator."""
    engine: Annotated[
        EngineSettings, BeforeValidator(parse_engine, json_schema_input_type=EngineSettings | str)
    ] = EngineSettings.model_construct()
    """The engine name, or its settings."""
    parallelism: ParallelismSettings | None = None
    """How a replica is split over its accelerators; default: tensor parallel within a node, pipeline parallel
    across nodes."""
    disaggregation: Disaggregation | None = None
    """Prefill and decode on separate replicas."""
    batch: Batch | None = None
    """A batch job instead of an endpoint."""
    features: Features = Features.model_construct()
    adapters: tuple[Adapter, ...] = ()
    speculative_decoding: SpeculativeDecoding | None = None
    scaling: Scaling = Scaling.model_construct()
    rollout: RolloutSettings = RolloutSettings.model_construct()
    availability: Availability | None = None
    """`zonal` spreads replicas over zones; `single` accepts that one replica means an outage at every
    disruption."""
    drain: Seconds = 60
    """Time for running requests to finish when a replica stops."""
    startup: Startup = Startup.model_construct()
    cache: Annotated[
        ModelCacheSettings | None,
        BeforeValidator(parse_cache, json_schema_input_type=ModelCacheSettings | str | None),
    ] = None
    """`efs`, `s3-stream` or `nvme`; default: s3-stream for `s3://` weights, else efs."""
    access: Access = Access.model_construct()
    observability: Observability = Observability.model_construct()
    patches: tuple[Patch, ...] = ()

    @property
    def downloaded(self) -> tuple[Weights | DraftModel | Adapter, ...]:
        """Base model, draft and adapters, in this order, that a Job brings into the cache: from the Hub, and
        adapters from a bucket. `efs://` parts are already in place, and `s3://` weights are streamed."""
        draft = self.speculative_decoding.model if self.speculative_decoding else None
        parts: list[Weights | DraftModel | Adapter] = [self.model, *self.adapters]
        if draft:
            parts.insert(1, draft)
        return tuple(
            part
            for part in parts
            if part.uri.startswith("hf://") or (isinstance(part, Adapter) and part.uri.startswith("s3://"))
        )

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
