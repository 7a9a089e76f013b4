"""Alerts about shared resources: nodes and accelerators.

Not about the model cache: the EKS add-on accepts no setting for volume metrics (aws/containers-roadmap#2642),
and EFS has no size that could be reached.
"""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.hardware import accelerator_of
from modelyard.observability.rule import Alert, RuleGroup
from modelyard.planning import Plan

# XIDs of application errors, not device errors (NVIDIA's XID catalogue): kernel faults, memory faults with an
# address, a stopped channel. The engine's own alerts cover their effects.
_APPLICATION_XIDS = ("13", "31", "43", "45")


def platform_alerts(plan: Plan) -> RuleGroup:
    """Alerts for the on-call engineer about an environment, independent of its models."""
    vendors = {accelerator_of(pool.accelerator).vendor for pool in plan.environment.pools.values()}
    alerts = [*_nodes(plan)]
    if "nvidia" in vendors:
        alerts += _gpus(plan)
    if "aws" in vendors:
        alerts += _neuron()
    return RuleGroup("modelyard.platform", tuple(alerts))


def node_accelerators(plan: Plan, pool: str) -> int:
    """Accelerators of the smallest node that a model of the plan needs in the pool."""
    return min(
        (m.placement.cheapest.accelerator_count for m in plan.models if m.placement.pool_name == pool),
        default=1,
    )


def _nodes(plan: Plan) -> Iterator[Alert]:
    namespace = plan.environment.namespace
    for pool in plan.environment.pools:
        held = f'pool:accelerators:sum{{nodepool="{pool}"}}'
        limit = f'pool:accelerators:limit{{nodepool="{pool}"}}'
        pending = f'kube_pod_status_phase{{namespace="{namespace}", phase="Pending"}}'
        yield Alert(
            "NodePoolAtLimit",
            f"{held} + {node_accelerators(plan, pool)} > on (nodepool) {limit} and on () (sum({pending}) > 0)",
            "15m",
            "warning",
            f"pool {pool} holds as many accelerators as it may, and pods wait",
            {"nodepool": pool},
        )
    yield Alert(
        "NodeLaunchFailing",
        'sum by (error) (increase(karpenter_cloudprovider_errors_total{method="Create"}[15m])) > 0',
        "15m",
        "warning",
        "Karpenter cannot launch nodes: {{ $labels.error }}",
    )


def _gpus(plan: Plan) -> Iterator[Alert]:
    xids = "|".join(("0", *_APPLICATION_XIDS))
    at = "Hostname, gpu, UUID"
    where = "GPU {{ $labels.gpu }} of {{ $labels.Hostname }}"
    yield Alert(
        "GpuXidError",
        f'max by ({at}, xid) (max_over_time(DCGM_EXP_XID_ERRORS_COUNT{{xid!="", xid!~"{xids}"}}[15m])) > 0',
        "0m",
        "critical",
        f"{where} reports XID {{{{ $labels.xid }}}}",
    )
    yield Alert(
        "GpuMemoryFault",
        f"max by ({at}) (increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[1h])) > 0 or "
        f"max by ({at}) (DCGM_FI_DEV_ROW_REMAP_FAILURE) > 0",
        "0m",
        "critical",
        f"{where} has memory that cannot be corrected or remapped",
    )
    held = " or ".join(
        f'pool:accelerators:sum{{nodepool="{name}"}} > 0'
        for name, pool in plan.environment.pools.items()
        if accelerator_of(pool.accelerator).vendor == "nvidia"
    )
    yield Alert(
        "GpuMetricsMissing",
        f"({held}) unless on () (count(DCGM_FI_DEV_GPU_UTIL) > 0)",
        "15m",
        "warning",
        "pool {{ $labels.nodepool }} has GPUs and no metrics of them: faults would go unseen",
    )


def _neuron() -> Iterator[Alert]:
    events = 'hardware_ecc_events_total{event_type=~"mem_ecc_uncorrected|sram_ecc_uncorrected"}'
    yield Alert(
        "NeuronMemoryFault",
        f"sum by (instance_id, neuron_device_index) (increase({events}[1h])) > 0",
        "0m",
        "critical",
        "device {{ $labels.neuron_device_index }} of {{ $labels.instance_id }} has memory that cannot be corrected",
    )
