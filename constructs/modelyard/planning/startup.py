"""Estimated start-up time of a replica, and its startup probe budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from modelyard.engines import engine
from modelyard.hardware import platform_facts
from modelyard.memory.serving import Serving
from modelyard.memory.weights import checkpoint_size
from modelyard.planning.admission import PodRequest
from modelyard.planning.placement import Placement
from modelyard.spec.storage import Cache, lustre_capacity_gib


@dataclass(frozen=True)
class StartupPlan:
    """All in seconds. `fetch`: fill the shared cache, once. `budget`: the startup probe's window, from
    container start to the first response. `deadline`: the Deployment's progress deadline, including node,
    image and fetch."""

    fetch: int
    node: int
    image: int
    load: int
    compile: int
    budget: int
    deadline: int

    @property
    def cold(self) -> int:
        """Estimated time from Pending to the first response, with weights in the cache."""
        return self.node + self.image + self.load + self.compile


LoadStrategy = Literal["prefetch", "eager", "lazy", "stream"]


def load_strategy(serving: Serving, placement: Placement, pod: PodRequest) -> LoadStrategy:
    """How to read safetensors: vLLM's `--safetensors-load-strategy`, or `stream` from S3.

    `prefetch` reads all files ahead, once for all ranks, and needs room for them in the page cache of every
    fitting node. Otherwise a single rank reads file by file into memory (`eager`). Several ranks would each
    hold a copy of every file, so they mmap the files and read on demand (`lazy`), as from a local disk.
    """
    if serving.model.cache_strategy == "s3-stream":
        return "stream"
    if serving.model.cache_strategy == "nvme":
        return "lazy"
    spare = [i.allocatable_memory - pod.memory for i in placement.instance_types if i.allocatable_memory]
    if spare and min(spare) >= checkpoint_size(serving.arch):
        return "prefetch"
    return "eager" if serving.count == 1 else "lazy"


def plan_startup(serving: Serving, cache: Cache) -> StartupPlan:
    """Estimate from checkpoint size and dated throughputs; the model's stated budget takes precedence."""
    facts = platform_facts().startup
    size = checkpoint_size(serving.arch).in_mib
    load = load_seconds(serving, cache)
    compiling = engine(serving.release.engine).compile_seconds(facts)
    estimate = round((load + compiling) * facts.safety_factor)
    budget = serving.model.startup.budget or max(facts.least_budget_seconds, -(-estimate // 60) * 60)
    fetch = round(size / facts.hub_mib_per_second) if serving.model.model.scheme == "hf" else 0
    deadline = (
        budget + facts.node_seconds + facts.image_pull_seconds + round(fetch * facts.safety_factor) + 300
    )
    return StartupPlan(fetch, facts.node_seconds, facts.image_pull_seconds, load, compiling, budget, deadline)


def load_seconds(serving: Serving, cache: Cache) -> int:
    """Seconds until the weights are on the accelerators of every node, cold: read from the shared cache,
    streamed from S3 at the node's bandwidth capped by the streamer's, or copied to the node's disk and read
    from there."""
    facts = platform_facts().startup
    size = checkpoint_size(serving.arch).in_mib
    if serving.model.cache_strategy == "s3-stream":
        return round(size / facts.s3_mib_per_second)
    shared = size / cache_mib_per_second(cache, readers=serving.model.replicas.min * serving.nodes)
    return round(
        shared + size / facts.nvme_mib_per_second if serving.model.cache_strategy == "nvme" else shared
    )


def cache_mib_per_second(cache: Cache, *, readers: int = 1) -> float:
    """Throughput of each of `readers` that start together. EFS, the base of S3 Files, gives every client the
    same; Lustre has a throughput per TiB that all clients share (FSx for Lustre user guide: disk throughput,
    the baseline)."""
    facts = platform_facts().startup
    if cache.file_system != "lustre":
        return facts.efs_mib_per_second
    capacity_tib = lustre_capacity_gib(cache.size_gib) / 1024
    whole = capacity_tib * cache.lustre_mb_per_second_per_tib * 1e6 / 2**20
    # A reader is a node, and its network bandwidth is the same as for S3.
    return min(whole / max(1, readers), facts.s3_mib_per_second)
