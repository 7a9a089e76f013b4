"""What each release of an engine does with accelerator memory, from dated tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ruamel.yaml import YAML

from modelyard.engines.versions import stated_order
from modelyard.hardware import Accelerator
from modelyard.hardware.accelerators import Capability

Absorbed = Literal["none", "products", "projections"]

_FILES = {"vllm": "vllm.yaml", "vllm-neuron": "neuron.yaml", "llama-server": "llama-server.yaml"}


@dataclass(frozen=True)
class CacheRules:
    """What a release does with the KV cache.

    `hybrid`: layers that see a window keep no more than it. `in_flight`: batches that may be scheduled at once, which a
    window holds on to. `latent`: latent attention is cached as such, not as full heads, in `latent_width` numbers a token
    (0: its own). `tokens_by_groups`: the start-up log counts blocks // groups × block size instead of requests × length.
    `state_blocks`: blocks of recurrent state that a request and group takes (2 with prefix caching). `reserved_blocks`: what
    the pool holds back from the check that one request fits.
    """

    hybrid: bool = True
    in_flight: int = 2
    latent: bool = True
    latent_width: int = 0
    tokens_by_groups: bool = False
    state_blocks: int = 2
    reserved_blocks: int = 1


@dataclass(frozen=True)
class BatchDefault:
    """Batch limits from `memory_gib` on; `excepted`: compute capabilities that the row leaves out."""

    memory_gib: float
    excepted: Capability | None
    tokens: int
    seqs: int


@dataclass(frozen=True)
class BatchRules:
    """Defaults of a batch. Without chunked prefill (`whole_prompts`) a batch holds a whole prompt, at least
    `least_tokens`; from `chunk_from` on prompts are chunked into `chunk_tokens`, with latent attention if `chunk_latent`."""

    rows: tuple[BatchDefault, ...]
    whole_prompts: bool = False
    least_tokens: int = 0
    chunk_from: int = 0
    chunk_tokens: int = 0
    chunk_latent: bool = True


@dataclass(frozen=True)
class MemoryFacts:
    """Memory behaviour of one release, per rank; the table names sources and units.

    `kv_cap_fraction`: Neuron's limit for the KV cache as a share of the budget, None where there is none.
    """

    engine: str
    version: str
    utilization: float
    block_size: int
    batch: BatchRules
    cache: CacheRules
    sampler_bytes: float = 0.0
    mlp_widths: float = 0.0
    hidden_widths: float = 0.0
    fixed_gib: float = 0.0
    reserved: float = 1.0
    expert_workspace: bool = False
    expert_chunk: int = 1 << 30
    non_torch_gib: float = 0.0
    ranks_pcie_gib: float = 0.0
    ranks_nvlink_gib: float = 0.0
    ranks_nvlink_each_gib: float = 0.0
    ranks_hopper_gib: float = 0.0
    ranks_hopper_each_gib: float = 0.0
    fused_gib: float = 0.0
    fused_each_gib: float = 0.0
    graphs_base_gib: float = 0.0
    graphs_per_layer_gib: float = 0.0
    graphs_per_layer_ranks_gib: float = 0.0
    graphs_experts_gib: float = 0.0
    graphs_in_budget: bool = False
    graphs_follow_seqs: bool = False
    context_gib: float = 0.0
    encoder_cache: bool = True
    images_limit_rows: bool = False
    cross_attention_rows: bool = False
    absorbed: Absorbed = "none"
    kv_cap_fraction: float | None = None

    def batch_defaults(
        self, accelerator: Accelerator, max_model_len: int = 0, *, latent: bool = False
    ) -> tuple[int, int]:
        """The engine's own (max_num_batched_tokens, max_num_seqs); `latent`: for a model with latent attention."""
        rules = self.batch
        for row in rules.rows:
            excepted = row.excepted is not None and accelerator.compute_capability == row.excepted
            if accelerator.usable.in_gib >= row.memory_gib and not excepted:
                tokens = row.tokens
                if rules.whole_prompts:
                    chunked = 0 < rules.chunk_from <= max_model_len and (rules.chunk_latent or not latent)
                    tokens = rules.chunk_tokens if chunked else max(max_model_len, rules.least_tokens)
                return tokens, row.seqs
        raise LookupError(f"{self.engine} {self.version} has no batch defaults for {accelerator.name}")


def memory_facts_for(
    engine: str, version: str, capability: Capability | None, kv_cache_dtype: str = "auto"
) -> MemoryFacts:
    """As `memory_facts`, where a release falls back to an older engine on some GPUs or for some caches.

    Raises:
        LookupError: as `memory_facts`.
    """
    fallback = _table(engine).get("fallback") if engine in _FILES else None
    order = stated_order(version)
    if fallback and stated_order(fallback["since"]) <= order < stated_order(fallback["until"]):
        old = capability is not None and capability < tuple(fallback["belowCapability"])
        if old or kv_cache_dtype in fallback["caches"]:
            return memory_facts(engine, fallback["to"])
    return memory_facts(engine, version)


@cache
def memory_facts(engine: str, version: str) -> MemoryFacts:
    """What `engine` does with memory in `version`, such as `0.19.0` or `0.17.1rc1.dev88`.

    Raises:
        LookupError: nothing is known about the engine, or about a version so old.
    """
    if engine not in _FILES:
        raise LookupError(f"no memory facts for engine {engine}; known are {', '.join(_FILES)}")
    merged: dict[str, Any] = {}
    for entry in _table(engine)["versions"]:
        if stated_order(entry["since"]) <= stated_order(version):
            merged.update({key: value for key, value in entry.items() if key != "since"})
    if not merged:
        raise LookupError(f"no memory facts for {engine} {version}")
    return _facts(engine, version, merged)


def regime(engine: str, version: str, key: str) -> str:
    """The version since which `key` of the table has the value that holds in `version`."""
    return [
        str(entry["since"])
        for entry in _table(engine)["versions"]
        if key in entry and stated_order(entry["since"]) <= stated_order(version)
    ][-1]


@cache
def _table(engine: str) -> Mapping[str, Any]:
    text = files("modelyard.engines").joinpath("data", "memory", _FILES[engine]).read_text(encoding="utf-8")
    found: Mapping[str, Any] = YAML(typ="safe", pure=True).load(text)
    return found


def _facts(engine: str, version: str, row: Mapping[str, Any]) -> MemoryFacts:
    batch, cached, graphs = row["batch"], row["cache"], row["graphs"]
    ranks = row.get("ranksGib", {})
    return MemoryFacts(
        engine=engine,
        version=version,
        utilization=row["utilization"],
        block_size=row["blockSize"],
        batch=BatchRules(
            rows=tuple(
                BatchDefault(
                    r["fromGib"], tuple(r["except"]) if "except" in r else None, r["tokens"], r["seqs"]
                )
                for r in batch["rows"]
            ),
            whole_prompts=batch.get("wholePrompts", False),
            least_tokens=batch.get("leastTokens", 0),
            chunk_from=batch.get("chunkFrom", 0),
            chunk_tokens=batch.get("chunkTokens", 0),
            chunk_latent=batch.get("chunkLatent", True),
        ),
        cache=CacheRules(
            hybrid=cached["hybrid"],
            in_flight=cached["inFlight"],
            latent=cached["latent"],
            latent_width=cached.get("latentWidth", 0),
            tokens_by_groups=cached["tokensByGroups"],
            state_blocks=cached["stateBlocks"],
            reserved_blocks=cached.get("reservedBlocks", 0),
        ),
        sampler_bytes=row.get("samplerBytes", 0.0),
        mlp_widths=row.get("mlpWidths", 0.0),
        hidden_widths=row.get("hiddenWidths", 0.0),
        fixed_gib=row.get("fixedGib", 0.0),
        reserved=row.get("reserved", 1.0),
        expert_workspace=row.get("expertWorkspace", False),
        expert_chunk=row.get("expertChunk", 1 << 30),
        non_torch_gib=row.get("nonTorchGib", 0.0),
        ranks_pcie_gib=ranks.get("pcie", 0.0),
        ranks_nvlink_gib=ranks.get("nvlink", 0.0),
        ranks_nvlink_each_gib=ranks.get("nvlinkPerRank", 0.0),
        ranks_hopper_gib=ranks.get("hopper", 0.0),
        ranks_hopper_each_gib=ranks.get("hopperPerRank", 0.0),
        fused_gib=ranks.get("fused", 0.0),
        fused_each_gib=ranks.get("fusedPerRank", 0.0),
        graphs_base_gib=graphs["baseGib"],
        graphs_per_layer_gib=graphs["perLayerGib"],
        graphs_per_layer_ranks_gib=graphs["perLayerRanksGib"],
        graphs_experts_gib=graphs["expertsGib"],
        graphs_in_budget=graphs["inBudget"],
        graphs_follow_seqs=graphs.get("followSeqs", False),
        context_gib=row.get("contextGib", 0.0),
        encoder_cache=row.get("vision", {}).get("encoderCache", True),
        images_limit_rows=row.get("vision", {}).get("imagesLimitRows", False),
        cross_attention_rows=row.get("vision", {}).get("crossAttentionRows", False),
        absorbed=row.get("absorbed", "none"),
        kv_cap_fraction=row.get("kvCapFraction"),
    )
