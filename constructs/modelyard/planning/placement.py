"""Which of a pool's instance types fit a pod, and why the others do not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from modelyard.engines import engine
from modelyard.engines.host import HostLoad
from modelyard.hardware import InstanceType, Memory, Prices, platform_facts, types_with
from modelyard.memory.serving import Serving
from modelyard.memory.weights import checkpoint_size
from modelyard.planning.admission import (
    EPHEMERAL,
    PodRequest,
    PoolTerms,
    Room,
    candidates,
    room_on,
    shortages,
    uses_local_disks,
)
from modelyard.spec.environment import Environment
from modelyard.spec.pool import Pool


@dataclass(frozen=True)
class Rejection:
    """An instance type that does not fit the pod. `distance` grows with the number and size of its
    shortages."""

    instance_type: str
    reason: str
    distance: float = 0.0


@dataclass(frozen=True)
class Placement:
    """The pool of a model and its fitting instance types, cheapest first, types without a price last.

    `instance_types` all have the same, smallest sufficient number of accelerators, so that one replica never
    gets an eight-GPU node because no one-GPU node is available.
    """

    pool_name: str
    pool: Pool
    instance_types: tuple[InstanceType, ...]
    rejections: tuple[Rejection, ...]
    room: Room | None
    """The least room of all fitting types; None if none fits."""

    @property
    def cheapest(self) -> InstanceType:
        return self.instance_types[0]


_KUBELET_CPU_MILLI = 110  # CPU that Karpenter reserves for the kubelet on a node's first cores


def pod_request(serving: Serving) -> PodRequest:
    """Requests of the server's container, in every pod of a replica."""
    workers = serving.count // serving.nodes
    checkpoint = checkpoint_size(serving.arch)
    offload = serving.model.features.kv_offload
    asked = engine(serving.release.engine).host(
        HostLoad(
            workers=workers,
            checkpoint=checkpoint,
            weights=serving.ledger.weights * serving.count,
            caches=serving.ledger.kv_need(serving.max_model_len) * serving.max_num_seqs,
            activation=serving.ledger.activation,
            on_cpu=serving.on_cpu,
            free_cpu_milli=1000 * serving.count - platform_facts().daemon_cpu_milli - _KUBELET_CPU_MILLI,
            multimodal=serving.arch.multimodal,
            offloaded=Memory.gib(offload.size_gib / serving.nodes) if offload else Memory(0),
        )
    )
    spread = serving.nodes > 1
    kept = serving.model.cache_strategy == "nvme"
    return PodRequest(
        accelerators=workers,
        cpu_milli=asked.cpu_milli,
        memory=asked.memory,
        memory_limit=Memory.gib(math.ceil((asked.memory + checkpoint).in_gib)),
        shm=asked.shm,
        ephemeral=EPHEMERAL + checkpoint if kept else EPHEMERAL,
        efa_interfaces=_efa_of_a_node(serving, workers) if spread else 0,
    )


def _efa_of_a_node(serving: Serving, workers: int) -> int:
    """All EFA interfaces of a node of the smallest fitting type, but at least one: pools without EFA must not
    fit the pod."""
    counts = [
        t.efa_interfaces for t in types_with(serving.accelerator.name) if t.accelerator_count == workers
    ]
    return max(1, min((count for count in counts if count), default=0))


def launchable(pool: Pool, region: str) -> list[InstanceType]:
    """The candidates of `pool` that Karpenter can launch in `region`."""
    return [
        i
        for i in candidates(pool.accelerator, pool.instance_types)
        if not i.unsupported and region in i.offered_regions
    ]


def single_offering(pool: Pool, environment: Environment) -> bool:
    """Whether the nodes of `pool` are of one type, in one zone, of one capacity type."""
    offerings = len(launchable(pool, environment.region)) * len(environment.pool_zones(pool))
    return offerings * len(pool.capacity) == 1


def place(request: PodRequest, pool_name: str, environment: Environment, prices: Prices) -> Placement:
    """Match `request` against every instance type of the pool."""
    pool = environment.pools[pool_name]
    return Placement(pool_name, pool, *_match(request.amounts, PoolTerms.of(pool, environment, prices)))


@lru_cache(maxsize=4096)
def _match(
    amounts: tuple[int, ...], terms: PoolTerms
) -> tuple[tuple[InstanceType, ...], tuple[Rejection, ...], Room | None]:
    """Fitting types, rejected types, and the least room of the fitting ones. Cached: models have few distinct
    requests."""
    admitted: list[InstanceType] = []
    rejections: list[Rejection] = []
    types = candidates(terms.accelerator, terms.instance_types)
    on_nvme = uses_local_disks(types)
    rooms: dict[str, Room | None] = {}
    for instance in types:
        # Images and pods are on the NVMe disks, or else on the root volume.
        volume = Memory.bytes(instance.local_nvme_gb * 1e9) if on_nvme else Memory.gib(terms.root_volume_gib)
        if lacks := shortages(instance, amounts, terms, volume):
            reason = "; ".join(shortage.reason for shortage in lacks)
            rejections.append(Rejection(instance.name, reason, sum(shortage.weight for shortage in lacks)))
        else:
            admitted.append(instance)
            rooms[instance.name] = room_on(instance, volume)
    if admitted:
        fewest = min(instance.accelerator_count for instance in admitted)
        rejections += [
            Rejection(
                instance.name,
                f"{instance.accelerator_count} {instance.accelerator.plural} where {fewest} suffice",
            )
            for instance in admitted
            if instance.accelerator_count > fewest
        ]
        admitted = [instance for instance in admitted if instance.accelerator_count == fewest]
    admitted.sort(key=lambda i: (terms.prices.of(i).usd_per_hour or float("inf"), i.vcpu, i.name))
    least = _least([room for i in admitted if (room := rooms[i.name])])
    return tuple(admitted), tuple(rejections), least


def nearest_miss(placements: Iterable[Placement]) -> Rejection | None:
    """The rejected type with the smallest distance; the first among equals."""
    misses = (rejection for placement in placements for rejection in placement.rejections)
    return min(misses, key=lambda rejection: rejection.distance, default=None)


def _least(rooms: list[Room]) -> Room | None:
    if not rooms:
        return None
    return Room(
        accelerators=min(room.accelerators for room in rooms),
        cpu_milli=min(room.cpu_milli for room in rooms),
        memory=min(room.memory for room in rooms),
        disk=min(room.disk for room in rooms),
        efa_interfaces=min(room.efa_interfaces for room in rooms),
    )
