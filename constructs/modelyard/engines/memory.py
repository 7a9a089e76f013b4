"""Memory behaviour of each engine release, from dated tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from modelyard.engines.memory_facts import BatchDefault, BatchRules, CacheRules, MemoryFacts
from modelyard.engines.registry import engine as engine_called
from modelyard.engines.registry import has_memory_model, memory_models
from modelyard.engines.versions import stated_order
from modelyard.hardware.gpu_features import Capability
from modelyard.reading.table import read_table


def memory_facts_for(
    engine: str, version: str, capability: Capability | None, kv_cache_dtype: str = "auto"
) -> MemoryFacts:
    """As `memory_facts`, but follows a release's fallback to an older engine on some GPUs or cache types.

    Raises:
        LookupError: as `memory_facts`.
    """
    fallback = _table(engine).get("fallback") if has_memory_model(engine) else None
    if fallback and stated_order(fallback["since"]) <= stated_order(version) < stated_order(
        fallback["until"]
    ):
        old = capability is not None and capability < tuple(fallback["belowCapability"])
        if old or kv_cache_dtype in fallback["caches"]:
            return memory_facts(engine, fallback["to"])
    return memory_facts(engine, version)


@cache
def memory_facts(engine: str, version: str) -> MemoryFacts:
    """Memory facts of `engine` in `version`, such as `0.19.0` or `0.17.1rc1.dev88`.

    Raises:
        LookupError: no facts for the engine, or for a version this old.
    """
    if not has_memory_model(engine):
        raise LookupError(f"no memory facts for engine {engine}; known are {', '.join(memory_models())}")
    merged: dict[str, Any] = {}
    for entry in _table(engine)["versions"]:
        if stated_order(entry["since"]) <= stated_order(version):
            merged.update({key: value for key, value in entry.items() if key != "since"})
    if not merged:
        raise LookupError(f"no memory facts for {engine} {version}")
    return _facts(engine, version, merged)


def regime(engine: str, version: str, key: str) -> str:
    """The version that introduced the value of `key` that holds in `version`."""
    return [
        str(entry["since"])
        for entry in _table(engine)["versions"]
        if key in entry and stated_order(entry["since"]) <= stated_order(version)
    ][-1]


@cache
def _table(engine: str) -> Mapping[str, Any]:
    return read_table(engine_called(engine).folder.joinpath("memory.yaml"))


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
        checkpoint_caches=tuple(row.get("checkpointCaches", ())),
    )
