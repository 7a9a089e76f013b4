"""CPU and memory of the node that an engine's processes take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from modelyard.hardware import Memory

# Host memory of the processes: API server and engine core together about 1.3 GiB, a worker 1.7 GiB with a
# tiny model (measured with vLLM 0.32); CUDA context, pinned buffers and page tables grow it on a GPU.
_BASE = Memory.gib(5)
_PER_WORKER = Memory.gib(4)
_MULTIMODAL = Memory.gib(4)  # --mm-processor-cache-gb, default 4
SHM_ALONE = Memory.gib(2)
_SHM_PER_WORKER = Memory.gib(2)  # NCCL and message queues: 16 GiB at eight workers, as upstream examples use


@dataclass(frozen=True)
class HostLoad:
    """What a pod of a server holds. `workers`: its accelerators, or CPUs on a CPU. `weights`: on all of its
    accelerators. `caches`: all KV caches together. `free_cpu_milli`: of the CPUs, what the node's own pods
    leave, in thousandths of one."""

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
    """CPU in thousandths of one, memory, and the part of it that `/dev/shm` may take."""

    cpu_milli: int
    memory: Memory
    shm: Memory


def request_of_workers(load: HostLoad) -> HostRequest:
    """One process for each accelerator beside the API server, which talk through shared memory."""
    shm = SHM_ALONE if load.workers == 1 else _SHM_PER_WORKER * load.workers
    memory = _BASE + _PER_WORKER * load.workers + shm + load.offloaded
    if load.multimodal:
        memory += _MULTIMODAL
    return HostRequest(2000 if load.workers == 1 else 1000 * (load.workers + 2), memory, shm)


# Processes and prompt cache of llama-server beside its weights (--cache-ram is left at 8 GiB at the most).
_ONE_PROCESS = Memory.gib(2)


def request_of_mapped_weights(load: HostLoad) -> HostRequest:
    """One process that maps its weights: what no GPU holds stays in memory, and on a CPU all caches."""
    if load.on_cpu:
        memory = _ONE_PROCESS + load.checkpoint + load.caches + load.activation
        cpu = load.free_cpu_milli
    else:
        memory = _ONE_PROCESS + Memory(max(0, (load.checkpoint - load.weights).in_bytes))
        cpu = 2000
    return HostRequest(cpu, Memory.gib(math.ceil(memory.in_gib)), SHM_ALONE)
