"""Points of the checklist: engine, memory and compute of the server."""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import Any

from modelyard.hardware import instance_types
from modelyard.names import NODE_POOL_LABEL
from modelyard.object_rules.pods import at, mount_of, volume_of
from modelyard.object_rules.quantities import quantity
from modelyard.object_rules.service_points import access, autoscaling, cache, compile_cache, drain, metrics
from modelyard.object_rules.subject import Point, Reading, RenderedModel, beside_the_point, failed, passed

_PREPARED = "stands in the engine that was built before"
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def settings(subject: RenderedModel) -> dict[str, str]:
    """Settings of the engine under vLLM's flag names, from the command line and its config files."""
    repository = subject.named("ConfigMap", f"{subject.plan.name}-repository") or {}
    return subject.engine.given(subject.flags, at(repository, "data") or {})


def memory(subject: RenderedModel) -> Reading:
    serving, given = subject.plan.serving, settings(subject)
    ledger, limits = serving.ledger, at(subject.server, "resources.limits") or {}
    asked = at(subject.server, "resources.requests") or {}
    needed = subject.plan.pod.memory.in_bytes
    if not needed <= quantity(asked.get("memory")) <= quantity(limits.get("memory")):
        return failed(
            f"memory {asked.get('memory')} of at most {limits.get('memory')}, {subject.plan.pod.memory} needed",
            "keep the container's resources",
        )
    share = given.get("gpu-memory-utilization")
    planned = f"{subject.plan.model.engine.gpu_memory_utilization:g}"
    if subject.engine.states_utilization and share != planned:
        return failed(f"--gpu-memory-utilization is {share}, computed for {planned}", "keep the flag")
    batch = given.get("max-num-seqs")
    if not subject.engine.prepared and batch != str(serving.max_num_seqs):
        return failed(f"{batch} sequences at once, computed for {serving.max_num_seqs}", "keep the flag")
    if not ledger.weights.in_bytes < ledger.total.in_bytes or ledger.kv_cache.in_bytes <= 0:
        return failed("nothing is left for the KV cache", "use more accelerators or a smaller checkpoint")
    return passed(f"weights {ledger.weights}, KV cache {ledger.kv_cache} of {ledger.total} each")


def instance(subject: RenderedModel) -> Reading:
    accelerator, wanted = subject.plan.serving.accelerator, subject.plan.pod.accelerators
    pool = subject.named("NodePool", _pool(subject))
    if pool is None:
        return failed(f"no NodePool is called {_pool(subject)}", "keep the nodeSelector")
    chosen = _instance_types(subject.pod)
    if not chosen:
        return failed("any instance type may run it", "keep the affinity for instance types")
    unknown = [name for name in chosen if name not in instance_types()]
    if unknown:
        return failed(
            f"there is no instance type {', '.join(unknown)}", "keep the affinity for instance types"
        )
    foreign = [name for name in chosen if instance_types()[name].accelerator.name != accelerator.name]
    if foreign:
        return failed(
            f"{', '.join(foreign)} has no {accelerator.name}", "keep the affinity for instance types"
        )
    if accelerator.vendor != "cpu":
        asked = at(subject.server, "resources.requests") or {}
        count = quantity(asked.get(accelerator.resource))
        if count != wanted:
            return failed(
                f"asks for {count:g} {accelerator.resource}, {wanted} planned", "keep the resources"
            )
        small = [name for name in chosen if instance_types()[name].accelerator_count < wanted]
        if small:
            return failed(
                f"{', '.join(small)} has less than {wanted} {accelerator.name}", "keep the affinity"
            )
    offered = {
        name
        for r in at(pool, "spec.template.spec.requirements") or []
        if r["key"] == _INSTANCE_TYPE
        for name in r["values"]
    }
    if missing := sorted(set(chosen) - offered):
        return failed(f"pool {_pool(subject)} offers no {', '.join(missing)}", "keep the affinity")
    return passed(f"{wanted} × {accelerator.name} on {', '.join(chosen)}")


def _pool(subject: RenderedModel) -> str:
    return str((subject.pod.get("nodeSelector") or {}).get(NODE_POOL_LABEL))


def _instance_types(spec: dict[str, Any]) -> list[str]:
    required = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    terms = at(spec, required) or []
    return sorted(
        {
            name
            for term in terms
            for expression in term.get("matchExpressions") or []
            if expression["key"] == _INSTANCE_TYPE
            for name in expression.get("values") or []
        }
    )


def quantization(subject: RenderedModel) -> Reading:
    model, arch = subject.plan.model, subject.plan.serving.arch
    flag = settings(subject).get("quantization")
    if model.engine.quantization != "auto":
        if flag is None:
            return failed(
                f"no --quantization, {model.engine.quantization} at load was decided", "keep the flag"
            )
        return passed(f"16 bit, {model.engine.quantization} at load")
    if flag is not None:
        return failed(f"--quantization={flag} was not decided by the plan", "set engine.quantization")
    if model.model.file:
        if not settings(subject).get("model", "").endswith(model.model.file):
            return failed(f"serves another file than {model.model.file}", "keep --model")
        return passed(model.model.file.rpartition("/")[2])
    kept = arch.quantization
    return passed(f"checkpoint of {kept.bits} bit, {kept.method}" if kept else "checkpoint of 16 bit")


def length(subject: RenderedModel) -> Reading:
    if subject.engine.prepared:
        return beside_the_point(f"the length {_PREPARED}")
    serving, written = subject.plan.serving, settings(subject).get("max-model-len", "")
    if not written.isdigit():
        return failed("no length is set", "keep the flag")
    if not 0 < int(written) <= serving.longest:
        return failed(f"{written} tokens, {serving.longest} fit", "set engine.maxModelLen")
    return passed(f"{written} of {serving.longest} tokens")


def parallelism(subject: RenderedModel) -> Reading:
    if subject.engine.memory == "layers":
        return beside_the_point(f"{subject.engine.name} gives whole layers to each device")
    if subject.engine.prepared:
        return beside_the_point(f"the split {_PREPARED}")
    given, accelerator = settings(subject), subject.plan.serving.accelerator
    sizes = [given.get(f"{kind}-parallel-size", "1") for kind in ("tensor", "pipeline", "data")]
    if "tensor-parallel-size" not in given or not all(size.isdigit() for size in sizes):
        return failed("no tensor parallelism is set", "keep the flag")
    ranks = reduce(mul, map(int, sizes))
    devices = sum(
        int(quantity((at(pod["containers"][0], "resources.limits") or {}).get(accelerator.resource)))
        for pod in subject.pods
    )
    told = " × ".join(
        f"{k} {s}" for k, s in zip(("tensor", "pipeline", "data"), sizes, strict=True) if s != "1"
    )
    if ranks != devices * accelerator.cores:
        return failed(
            f"{told or 'one rank'} for {devices} × {accelerator.name} of a replica",
            "keep flags and resources",
        )
    return passed(told or "one rank, one accelerator")


def shm(subject: RenderedModel) -> Reading:
    if subject.engine.one_process:
        return beside_the_point(f"{subject.engine.name} is one process")
    needed = subject.plan.pod.shm
    for pod in subject.pods:
        mount = mount_of(pod["containers"][0], "/dev/shm")
        volume = volume_of(pod, mount) or {}
        if mount is None or at(volume, "emptyDir.medium") != "Memory":
            return failed(
                "no volume in memory at /dev/shm, 64 MiB are left", "keep the volume `shm` and its mount"
            )
        if quantity(at(volume, "emptyDir.sizeLimit")) < needed.in_bytes:
            found = at(volume, "emptyDir.sizeLimit")
            return failed(f"/dev/shm has {found}, {needed} needed", "keep the size of the volume `shm`")
    return passed(f"{needed} in each pod")


POINTS: dict[str, Point] = {
    "memory": memory,
    "instance": instance,
    "quantization": quantization,
    "length": length,
    "parallel": parallelism,
    "shm": shm,
    "metrics": metrics,
    "scaling": autoscaling,
    "cache": cache,
    "compile": compile_cache,
    "drain": drain,
    "access": access,
}
