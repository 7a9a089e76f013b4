"""Alerts about shared resources: nodes, accelerators, the cache, certificates."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.hardware import accelerator_of
from modelyard.names import MODEL_CACHE
from modelyard.observability.rule import Alert, RuleGroup
from modelyard.planning import Plan

CACHE_FULL = 0.85
"""Usage of the model cache's stated size above which the alert fires. EFS itself grows, and so does its
bill."""

CERTIFICATE_DAYS = 21
"""Remaining days to renew a certificate by hand if renewal fails; cert-manager starts at thirty."""

_CLAIM = MODEL_CACHE
# XIDs of application errors, not device errors (NVIDIA's XID catalogue): kernel faults, memory faults with an
# address, a stopped channel. The engine's own alerts cover their effects.
_APPLICATION_XIDS = ("13", "31", "43", "45")


def platform_alerts(plan: Plan) -> RuleGroup:
    """Alerts for the on-call engineer about an environment, independent of its models."""
    vendors = {accelerator_of(pool.accelerator).vendor for pool in plan.environment.pools.values()}
    alerts = [*_nodes(plan), *_cache(plan), *_certificates()]
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


def _cache(plan: Plan) -> Iterator[Alert]:
    claim = f'namespace="{plan.environment.namespace}", persistentvolumeclaim="{_CLAIM}"'
    used = f"kubelet_volume_stats_used_bytes{{{claim}}}"
    size = plan.environment.cache.size_gib
    yield Alert(
        "ModelCacheFilling",
        f"max({used}) > {CACHE_FULL} * {size} * 2 ^ 30",
        "30m",
        "warning",
        f"the model cache holds more than {CACHE_FULL:.0%} of its {size} GiB",
    )


def _certificates() -> Iterator[Alert]:
    yield Alert(
        "CertificateExpiring",
        "min by (namespace, name) (certmanager_certificate_expiration_timestamp_seconds) - time() "
        f"< {CERTIFICATE_DAYS} * 86400",
        "1h",
        "warning",
        "certificate {{ $labels.name }} in {{ $labels.namespace }} expires in {{ $value | humanizeDuration }}",
    )
