"""What a pod asks of a node, what a node has for pods, and what one lacks for the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modelyard.hardware import InstanceType, Memory, Prices, instance_types, platform_facts, types_with
from modelyard.spec.environment import Environment
from modelyard.spec.pool import Pool

_NOTHING = Memory(0)

EPHEMERAL = Memory.gib(20)
"""What a server's pod asks of the node's disk: compile caches, temporary files and logs."""

_LEAST_VOLUME_GIB = 100


@dataclass(frozen=True)
class PodRequest:
    """What the server's pod asks of a node. `memory` includes `shm`, which is a memory-backed volume.

    `memory_limit` lies above the request by the checkpoint's size: the page cache of files that are read
    counts against the limit, and would be thrown out before it is used. A replica is one pod on one node,
    whose accelerators talk over NVLink, PCIe or NeuronLink: it asks for no EFA interface and no huge pages,
    which only several pods that work together would need.
    """

    accelerators: int
    cpu_milli: int
    memory: Memory
    memory_limit: Memory
    shm: Memory
    ephemeral: Memory
    efa_interfaces: int = 0
    hugepages: Memory = _NOTHING

    @property
    def amounts(self) -> tuple[int, ...]:
        """What the scheduler adds up on a node, in the order of `Room.amounts`. Huge pages are taken off its
        memory."""
        memory = self.memory.in_bytes + self.hugepages.in_bytes
        return self.accelerators, self.cpu_milli, memory, self.ephemeral.in_bytes, self.efa_interfaces


@dataclass(frozen=True)
class Room:
    """What a node has for models' pods: Karpenter's allocatable amounts without the platform's DaemonSets,
    and the disk without system, reserve and one engine image."""

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
    """What of a pool decides which nodes it can have, for look-ups: `limit` in accelerators, the volume in
    GiB.

    `priced` are the types whose price on demand the pool states: Karpenter is told, and can launch them.
    `prices` are those of the region.
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
    """One thing that a type lacks. `weight` is between 1 and 2 by the share of the need that is missing, and
    `IMPOSSIBLE` where no smaller request helps."""

    reason: str
    weight: float


IMPOSSIBLE = 10.0
"""More than all shortages of amounts together: a type that is only too small is nearer than one not to be
had."""


def room_on(instance: InstanceType, volume: Memory) -> Room | None:
    """What a node of the type has for pods, with `volume` for images and pods; None where Karpenter states
    nothing."""
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
    """The instance types of a pool: those it names, or all with its accelerator."""
    if not names:
        return types_with(accelerator)
    return tuple(instance_types()[name] for name in names if name in instance_types())


def uses_local_disks(types: Iterable[InstanceType]) -> bool:
    """Whether nodes of a pool with `types` put pods and images on their NVMe disks: only where all of them
    have some."""
    return all(instance.local_nvme_gb for instance in types)


def root_volume_gib(pool: Pool) -> int:
    """Size of the root volume: what the pool says, or room for two engine images, as an update pulls the next
    beside the last, and for a pod on each accelerator. Local disks hold images and pods where there are
    some."""
    if pool.root_volume_gib:
        return pool.root_volume_gib
    types = candidates(pool.accelerator, pool.instance_types)
    if not types or uses_local_disks(types):
        return _LEAST_VOLUME_GIB
    return default_volume_gib(max(instance.accelerator_count for instance in types))


def default_volume_gib(pods: int) -> int:
    """Root volume in GiB, in tens, of a node for so many model servers."""
    facts = platform_facts()
    held = facts.system_disk + facts.image_disk * 2 + EPHEMERAL * pods
    return max(_LEAST_VOLUME_GIB, math.ceil(held.in_gib / facts.usable_disk_share / 10) * 10)


def priced_by(pool: Pool, environment: Environment, prices: Prices) -> tuple[str, ...]:
    """Types without a public price that the pool states one for, in a NodeOverlay, which Auto Mode does not
    know."""
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
    """Whether AWS publishes no price on demand, and Karpenter therefore launches none."""
    return prices.of(instance).source == "none-published"


def capacity_types(instance: InstanceType, terms: PoolTerms) -> tuple[str, ...]:
    """The pool's capacity types by which Karpenter can launch the type.

    It launches nothing on demand that AWS publishes no price for, unless the pool states one. Spot prices are
    read at run time; reservations name what they hold.
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
    """Why Karpenter cannot launch the type in the pool at all."""
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
        # A limit counts whole nodes, whatever part of them is used (Karpenter, filterByRemainingResources).
        yield f"has {instance.accelerator_count} accelerators, which the pool's limit of {terms.limit} never allows"


def shortages(
    instance: InstanceType, amounts: tuple[int, ...], terms: PoolTerms, volume: Memory
) -> list[Shortage]:
    """Everything that keeps a pod that asks for `amounts` from a node of the type; empty where it is
    admitted."""
    found = [Shortage(reason, IMPOSSIBLE) for reason in obstacles(instance, terms)]
    room = room_on(instance, volume)
    if room is None or instance.accelerator.name != terms.accelerator:
        return found
    accelerators, cpu, memory, disk, efa = amounts
    if instance.accelerator.vendor == "aws" and 1 < accelerators < instance.accelerator_count:
        # The device plugin hands out any free devices; neighbours need the Neuron scheduler extension.
        found.append(
            Shortage(
                f"hands out 1 or all {instance.accelerator_count} of its devices, not {accelerators}",
                IMPOSSIBLE,
            )
        )
    image = platform_facts().image_disk
    reasons = (
        f"has {room.accelerators} of {accelerators} accelerators",
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
