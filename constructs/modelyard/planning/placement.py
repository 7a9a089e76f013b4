"""Which instance types of a pool admit a pod, and why the others do not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from modelyard.hardware import InstanceType, Memory, instance_types, platform_facts, types_with
from modelyard.planning.serving import Serving
from modelyard.planning.weights import checkpoint_size
from modelyard.spec.environment import Environment, Pool


@dataclass(frozen=True)
class PodRequest:
    """What the server's pod asks of a node. `memory` includes `shm`, which is a memory-backed volume.

    `memory_limit` lies above the request by the checkpoint's size: the page cache of files that are read counts
    against the limit, and would be thrown out before it is used.
    """

    accelerators: int
    cpu_milli: int
    memory: Memory
    memory_limit: Memory
    shm: Memory
    ephemeral: Memory


@dataclass(frozen=True)
class Rejection:
    """An instance type that does not admit the pod."""

    instance_type: str
    reason: str


@dataclass(frozen=True)
class Placement:
    """The pool for a model and its admitting instance types, cheapest first, priceless ones last.

    `instance_types` all have the same number of accelerators, the smallest that suffices, so that one replica never
    buys an eight-GPU node because a one-GPU node was not to be had.
    """

    pool_name: str
    pool: Pool
    instance_types: tuple[InstanceType, ...]
    rejections: tuple[Rejection, ...]

    @property
    def cheapest(self) -> InstanceType:
        return self.instance_types[0]


# Host memory of the processes: API server and engine core together about 1.3 GiB, a worker 1.7 GiB with a tiny model
# (measured with vLLM 0.32); CUDA context, pinned buffers and page tables grow it on a GPU.
_HOST_BASE = Memory.gib(5)
_HOST_PER_WORKER = Memory.gib(4)
_HOST_MULTIMODAL = Memory.gib(4)  # --mm-processor-cache-gb, default 4
_SHM_ALONE = Memory.gib(2)
_SHM_PER_WORKER = Memory.gib(2)  # NCCL and message queues: 16 GiB at eight workers, as upstream examples use
_EPHEMERAL = Memory.gib(20)  # compile caches, temporary files and logs


def pod_request(serving: Serving) -> PodRequest:
    """Requests of the server's container."""
    workers = serving.count
    shm = _SHM_ALONE if workers == 1 else _SHM_PER_WORKER * workers
    memory = _HOST_BASE + _HOST_PER_WORKER * workers + shm
    if serving.arch.multimodal:
        memory += _HOST_MULTIMODAL
    return PodRequest(
        accelerators=serving.count,
        cpu_milli=2000 if workers == 1 else 1000 * (workers + 2),
        memory=memory,
        memory_limit=Memory.gib(math.ceil((memory + checkpoint_size(serving.arch)).in_gib)),
        shm=shm,
        ephemeral=_EPHEMERAL,
    )


def candidates(pool: Pool) -> tuple[InstanceType, ...]:
    """The instance types that Karpenter may choose from in `pool`."""
    if not pool.instance_types:
        return types_with(pool.accelerator)
    return tuple(instance_types()[name] for name in pool.instance_types if name in instance_types())


def launchable(pool: Pool, region: str) -> list[InstanceType]:
    """The candidates of `pool` that Karpenter can launch in `region`."""
    return [i for i in candidates(pool) if not i.unsupported and region in i.offered_regions]


def uses_local_disks(types: Iterable[InstanceType]) -> bool:
    """Whether nodes of a pool with `types` put pods and images on their NVMe disks: only where all of them have some."""
    return all(instance.local_nvme_gb for instance in types)


def place(request: PodRequest, pool_name: str, environment: Environment) -> Placement:
    """Match `request` against every instance type of the pool."""
    pool = environment.pools[pool_name]
    admitted: list[InstanceType] = []
    rejections: list[Rejection] = []
    types = candidates(pool)
    on_nvme = uses_local_disks(types)
    for instance in types:
        disk = Memory.bytes(instance.local_nvme_gb * 1e9) if on_nvme else Memory.gib(pool.root_volume_gib)
        if reason := _refusal(instance, request, pool, environment.region, disk):
            rejections.append(Rejection(instance.name, reason))
        else:
            admitted.append(instance)
    if admitted:
        fewest = min(instance.accelerator_count for instance in admitted)
        rejections += [
            Rejection(instance.name, f"{instance.accelerator_count} accelerators where {fewest} suffice")
            for instance in admitted
            if instance.accelerator_count > fewest
        ]
        admitted = [instance for instance in admitted if instance.accelerator_count == fewest]
    admitted.sort(key=lambda i: (i.price(environment.region).usd_per_hour or float("inf"), i.vcpu, i.name))
    return Placement(pool_name, pool, tuple(admitted), tuple(rejections))


def _refusal(
    instance: InstanceType, request: PodRequest, pool: Pool, region: str, disk: Memory
) -> str | None:
    facts = platform_facts()
    if instance.unsupported:
        return instance.unsupported
    if instance.accelerator.name != pool.accelerator:
        return f"has {instance.accelerator.name}, not {pool.accelerator}"
    if region not in instance.offered_regions:
        return f"is not offered in {region}"
    if instance.accelerator_count < request.accelerators:
        return f"has {instance.accelerator_count} of {request.accelerators} accelerators"
    if instance.allocatable_cpu_milli is None or instance.allocatable_memory is None:
        return "Karpenter states no allocatable resources"
    cpu = instance.allocatable_cpu_milli - facts.daemon_cpu_milli
    if cpu < request.cpu_milli:
        return f"has {cpu / 1000:.2f} CPU free of DaemonSets, {request.cpu_milli / 1000:.2f} needed"
    memory = instance.allocatable_memory - facts.daemon_memory
    if memory < request.memory:
        return f"has {memory} of memory free of DaemonSets, {request.memory} needed"
    space = disk * facts.usable_disk_share - facts.system_disk
    if space < facts.image_disk + request.ephemeral:
        return f"has {space} of disk, {facts.image_disk + request.ephemeral} needed; raise rootVolumeGib"
    return None
