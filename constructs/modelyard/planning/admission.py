"""What a pod requests, what a node has allocatable, and what the node lacks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modelyard.hardware import InstanceType, Memory, Prices, instance_types, platform_facts, types_with
from modelyard.spec.environment import Environment
from modelyard.spec.pool import Pool

_NOTHING = Memory(0)

EPHEMERAL = Memory.gib(20)
"""Ephemeral storage request of a server's pod: compile caches, temporary files and logs."""

_LEAST_VOLUME_GIB = 100


@dataclass(frozen=True)
class PodRequest:
    """Requests of the server's pod. `memory` includes `shm`, a memory-backed volume.

    `memory_limit` exceeds the request by the checkpoint's size: the page cache of the files read counts
    against the limit and would be evicted before it is used. A replica on one node talks over NVLink, PCIe or
    NeuronLink and requests no EFA interfaces; only replicas of several pods need them.
    """

    accelerators: int
    cpu_milli: int
    memory: Memory
    memory_limit: Memory
    shm: Memory
    ephemeral: Memory
    efa_interfaces: int = 0

    @property
    def amounts(self) -> tuple[int, ...]:
        """The amounts that the scheduler sums per node, in the order of `Room.amounts`."""
        memory, disk = self.memory.in_bytes, self.ephemeral.in_bytes
        return self.accelerators, self.cpu_milli, memory, disk, self.efa_interfaces


@dataclass(frozen=True)
class Room:
    """Room for model pods on a node: Karpenter's allocatable minus the platform's DaemonSets, and the disk
    minus system, reserve and one engine image."""

    accelerators: int
    cpu_milli: int
    memory: Memory
    disk: Memory
    efa_interfaces: int

    @property
    def amounts(self) -> tuple[int, ...]:
        disk, memory = self.disk.in_bytes, self.memory.in_bytes
        return self.accelerators, self.cpu_milli, memory, disk, self.efa_interfaces


@dataclass(frozen=True)
class PoolTerms:
    """The pool settings that decide which nodes it can launch, as a cache key. `limit`: accelerators;
    `root_volume_gib`: GiB.

    `priced`: types whose on-demand price the pool states; Karpenter gets it and can launch them. `prices`:
    the region's prices.
    """

    accelerator: str
    instance_types: tuple[str, ...]
    capacity: tuple[str, ...]
    limit: int
    root_volume_gib: int
    prices: Prices
    priced: tuple[str, ...] = ()

    @classmethod
    def of(cls, pool: Pool, environment: Environment, prices: Prices) -> PoolTerms:
        return cls(
            pool.accelerator,
            pool.instance_types,
            pool.capacity,
            pool.limit,
            root_volume_gib(pool),
            prices,
            priced_by(pool, environment, prices),
        )


@dataclass(frozen=True)
class Shortage:
    """One resource that an instance type lacks. `weight` is between 1 and 2, by the missing share of the
    request; `IMPOSSIBLE` where no smaller request helps."""

    reason: str
    weight: float


IMPOSSIBLE = 10.0
"""More than the sum of all other shortages: a type that is only too small ranks nearer than one that cannot
be launched."""


def room_on(instance: InstanceType, volume: Memory) -> Room | None:
    """Room for model pods on a node of this type whose `volume` holds images and pods; None where Karpenter
    publishes no allocatable resources."""
    if instance.allocatable_cpu_milli is None or instance.allocatable_memory is None:
        return None
    facts = platform_facts()
    return Room(
        accelerators=instance.accelerator_count,
        cpu_milli=instance.allocatable_cpu_milli - facts.daemon_cpu_milli,
        memory=instance.allocatable_memory - facts.daemon_memory,
        disk=volume * facts.usable_disk_share - facts.system_disk - facts.image_disk,
        efa_interfaces=instance.efa_interfaces,
    )


def candidates(accelerator: str, names: tuple[str, ...]) -> tuple[InstanceType, ...]:
    """A pool's instance types: the listed ones, or all types with its accelerator."""
    if not names:
        return types_with(accelerator)
    return tuple(instance_types()[name] for name in names if name in instance_types())


def uses_local_disks(types: Iterable[InstanceType]) -> bool:
    """Whether a pool with `types` keeps pods and images on NVMe: only if every type has local disks."""
    return all(instance.local_nvme_gb for instance in types)


def root_volume_gib(pool: Pool) -> int:
    """Root volume size: the pool's setting, or room for two engine images (an update pulls the new one beside
    the old) and one pod per accelerator. If the nodes have local disks, those hold images and pods."""
    if pool.root_volume_gib:
        return pool.root_volume_gib
    types = candidates(pool.accelerator, pool.instance_types)
    if not types or uses_local_disks(types):
        return _LEAST_VOLUME_GIB
    return default_volume_gib(max(instance.accelerator_count for instance in types))


def default_volume_gib(pods: int) -> int:
    """Default root volume in GiB for a node with this many model servers, rounded up to tens."""
    facts = platform_facts()
    held = facts.system_disk + facts.image_disk * 2 + EPHEMERAL * pods
    return max(_LEAST_VOLUME_GIB, math.ceil(held.in_gib / facts.usable_disk_share / 10) * 10)


def priced_by(pool: Pool, environment: Environment, prices: Prices) -> tuple[str, ...]:
    """Types without a public price for which the pool states one, in a NodeOverlay; Auto Mode does not
    support NodeOverlays."""
    if environment.cluster.auto_mode:
        return ()
    return tuple(
        sorted(
            instance.name
            for instance in candidates(pool.accelerator, pool.instance_types)
            if unpriced(instance, prices) and pool.has_price(instance.name)
        )
    )


def unpriced(instance: InstanceType, prices: Prices) -> bool:
    """Whether AWS publishes no on-demand price, so Karpenter does not launch the type on demand."""
    return prices.of(instance).source == "none-published"


def capacity_types(instance: InstanceType, terms: PoolTerms) -> tuple[str, ...]:
    """The pool's capacity types with which Karpenter can launch the instance type.

    Karpenter does not launch a type on demand without a public price, unless the pool states one. Spot prices
    are read at run time; reservations name their instance type.
    """
    sold = instance.usage_classes
    possible = {
        "reserved": bool({"on-demand", "capacity-block"} & set(sold)),
        "on-demand": "on-demand" in sold
        and (instance.name in terms.priced or not unpriced(instance, terms.prices)),
        "spot": "spot" in sold,
    }
    return tuple(kind for kind in terms.capacity if possible[kind])


def obstacles(instance: InstanceType, terms: PoolTerms) -> Iterator[str]:
    """Reasons why Karpenter can never launch the type in this pool."""
    if instance.unsupported:
        yield instance.unsupported
    elif instance.accelerator.name != terms.accelerator:
        yield f"has {instance.accelerator.name}, not {terms.accelerator}"
    elif terms.prices.region not in instance.offered_regions:
        yield f"is not offered in {terms.prices.region}"
    elif instance.allocatable_cpu_milli is None or instance.allocatable_memory is None:
        yield "Karpenter states no allocatable resources"
    elif not capacity_types(instance, terms):
        if "on-demand" in terms.capacity and "on-demand" in instance.usage_classes:
            yield "has no public price, so Karpenter launches it from reservations alone"
        else:
            yield f"is not sold as {' or '.join(terms.capacity)}"
    if instance.accelerator_count > terms.limit:
        # A limit counts whole nodes, even partly used ones (Karpenter, filterByRemainingResources).
        yield f"has {instance.accelerator_count} accelerators, which the pool's limit of {terms.limit} never allows"


def shortages(
    instance: InstanceType, amounts: tuple[int, ...], terms: PoolTerms, volume: Memory
) -> list[Shortage]:
    """Every reason why a pod requesting `amounts` does not fit a node of this type; empty if it fits."""
    found = [Shortage(reason, IMPOSSIBLE) for reason in obstacles(instance, terms)]
    room = room_on(instance, volume)
    if room is None or instance.accelerator.name != terms.accelerator:
        return found
    accelerators, cpu, memory, disk, efa = amounts
    if instance.accelerator.vendor == "aws" and 1 < accelerators < instance.accelerator_count:
        # The device plugin hands out any free devices; adjacent ones need the Neuron scheduler extension.
        found.append(
            Shortage(
                f"hands out 1 or all {instance.accelerator_count} of its devices, not {accelerators}",
                IMPOSSIBLE,
            )
        )
    image = platform_facts().image_disk
    reasons = (
        f"has {room.accelerators} of {accelerators} {instance.accelerator.plural}",
        f"has {room.cpu_milli / 1000:.2f} CPU free of DaemonSets, {cpu / 1000:.2f} needed",
        f"has {room.memory} of memory free of DaemonSets, {Memory(memory)} needed",
        f"has {room.disk + image} of disk, {Memory(disk) + image} needed; raise rootVolumeGib",
        f"has {room.efa_interfaces} of {efa} EFA interfaces",
    )
    compared = zip(reasons, room.amounts, amounts, strict=True)
    return [
        *found,
        *(Shortage(text, 2 - max(0, have) / need) for text, have, need in compared if have < need),
    ]
