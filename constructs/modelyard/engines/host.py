"""CPU and memory requests of an engine's processes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from modelyard.hardware import Memory

# Host memory of the processes: API server and engine core together about 1.3 GiB, a worker 1.7 GiB with a
# tiny model (measured with vLLM 0.32); on a GPU, CUDA context, pinned buffers and page tables add to it.
_BASE = Memory.gib(5)
_PER_WORKER = Memory.gib(4)
_MULTIMODAL = Memory.gib(4)  # --mm-processor-cache-gb, default 4
SHM_ALONE = Memory.gib(2)
_SHM_PER_WORKER = Memory.gib(2)  # NCCL and message queues: 16 GiB at eight workers, as upstream examples use


@dataclass(frozen=True)
class HostLoad:
    """Load of a server's pod. `workers`: its accelerators, or vCPUs on a CPU node. `weights`: on all its
    accelerators. `caches`: all KV caches together. `free_cpu_milli`: millicores that the node's own pods
    leave free."""

    workers: int
    checkpoint: Memory
    weights: Memory
    caches: Memory
    activation: Memory
    on_cpu: bool
    free_cpu_milli: int
    multimodal: bool
    offloaded: Memory


@dataclass(frozen=True)
class HostRequest:
    """CPU in millicores, memory, and the part of the memory for `/dev/shm`."""

    cpu_milli: int
    memory: Memory
    shm: Memory


def request_of_workers(load: HostLoad) -> HostRequest:
    """The API server and one worker process per accelerator, which communicate through shared memory."""
    shm = SHM_ALONE if load.workers == 1 else _SHM_PER_WORKER * load.workers
    memory = _BASE + _PER_WORKER * load.workers + shm + load.offloaded
    if load.multimodal:
        memory += _MULTIMODAL
    return HostRequest(2000 if load.workers == 1 else 1000 * (load.workers + 2), memory, shm)


# llama-server's memory without weights: processes and prompt cache (--cache-ram is left at 8 GiB at most).
_ONE_PROCESS = Memory.gib(2)


def request_of_mapped_weights(load: HostLoad) -> HostRequest:
    """One process that mmaps its weights: memory holds the part that no GPU holds, and on a CPU node all
    caches."""
    if load.on_cpu:
        memory = _ONE_PROCESS + load.checkpoint + load.caches + load.activation
        cpu = load.free_cpu_milli
    else:
        memory = _ONE_PROCESS + Memory(max(0, (load.checkpoint - load.weights).in_bytes))
        cpu = 2000
    return HostRequest(cpu, Memory.gib(math.ceil(memory.in_gib)), SHM_ALONE)
