"""Nodes without a kubelet, as Karpenter and the device plug-ins register them, after their DaemonSets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modelyard.hardware import InstanceType, Memory
from modelyard.objects.node_taints import taints
from modelyard.planning import Plan
from modelyard.planning.admission import candidates, room_on, root_volume_gib, uses_local_disks
from modelyard.spec import Pool
from tests.cluster.api import Api, Object
from tests.cluster.programs import until

_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played"}
_OF_THE_KERNEL = 0.925
"""Share of an instance's memory that Karpenter takes a kernel to report, VM_MEMORY_OVERHEAD_PERCENT. It
remembers what the first node of a type really reports."""


def node(name: str, instance: InstanceType, plan: Plan, pool_name: str, zone: str) -> Object:
    """One of a pool; its resources are what DaemonSets leave."""
    pool = plan.environment.pools[pool_name]
    room = room_on(instance, volume_of(instance, pool))
    assert room is not None, instance.name
    kind = instance.accelerator
    amounts = {
        "cpu": f"{room.cpu_milli}m",
        "memory": str(room.memory.in_bytes),
        "ephemeral-storage": str(room.disk.in_bytes),
        "pods": "58",
        **({} if kind.vendor == "cpu" else {kind.resource: str(instance.accelerator_count)}),
        **({"vpc.amazonaws.com/efa": str(room.efa_interfaces)} if pool.fabric == "efa" else {}),
    }
    labels = {
        **instance.labels,
        "modelyard.dev/accelerator": pool.accelerator,
        "modelyard.dev/pool": pool_name,
        "karpenter.sh/nodepool": pool_name,
        "karpenter.sh/capacity-type": pool.capacity[0],
        "node.kubernetes.io/instance-type": instance.name,
        "kubernetes.io/arch": instance.arch,
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": plan.environment.region,
    }
    whole = {
        "cpu": str(instance.vcpu),
        "memory": str((instance.memory * _OF_THE_KERNEL).in_bytes),
        "ephemeral-storage": str(volume_of(instance, pool).in_bytes),
    }
    return _node(name, labels, taints(plan.environment, pool_name, pool), amounts, amounts | whole)


def general_node(name: str, zone: str) -> Object:
    """One of the pool without accelerators, with 16 vCPU."""
    labels = {
        "karpenter.sh/nodepool": "general",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
    }
    amounts = {"cpu": "15", "memory": "56Gi", "ephemeral-storage": "200Gi", "pods": "58"}
    return _node(name, labels, [], amounts, amounts)


def _node(
    name: str,
    labels: dict[str, str],
    taints: list[Object],
    amounts: dict[str, str],
    whole: dict[str, str],
) -> Object:
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | usual},
        "spec": {"taints": taints},
        "status": {
            "capacity": whole,
            "allocatable": amounts,
            "conditions": [_READY],
            "nodeInfo": {"kubeletVersion": "played"},  # which `kubectl get nodes` shows
        },
    }


def volume_of(instance: InstanceType, pool: Pool) -> Memory:
    """Where images and pods are."""
    if uses_local_disks(candidates(pool.accelerator, pool.instance_types)):
        return Memory.bytes(instance.local_nvme_gb * 1e9)
    return Memory.gib(root_volume_gib(pool))


def register(api: Api, item: Object) -> None:
    """As a kubelet does: first not ready, which is a taint, then ready."""
    api.create({key: value for key, value in item.items() if key != "status"})
    api.set_status(item, item["status"])
    api.merge(item, {"spec": item["spec"]})


def verdicts(api: Api, namespace: str) -> dict[str, tuple[str, str]]:
    """Name of each pod of `namespace` to its node, or "" and why it has none; waits for the scheduler."""
    found: dict[str, tuple[str, str]] = {}

    def judged() -> bool:
        found.clear()
        pods = api.list("v1", "Pod", namespace)
        for pod in pods:
            for each in _scheduled(pod):
                found[pod["metadata"]["name"]] = (pod["spec"].get("nodeName", ""), each.get("message", ""))
        return len(found) == len(pods)

    until(judged, "the scheduler", seconds=300)
    return found


def _scheduled(pod: Object) -> Iterator[dict[str, Any]]:
    for each in pod.get("status", {}).get("conditions", []):
        if each["type"] == "PodScheduled":
            yield each
