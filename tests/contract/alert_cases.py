"""When each alert must fire, and when it must not: series with one sample a minute, for promtool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MODEL, NAMESPACE = "support-chat", "llm"
"""The model of `tests/fixtures/everything` that states every service level and has an autoscaler."""

POD = f"{MODEL}-7d9f8b6c5d-x2x4z"
_OURS = f'namespace="{NAMESPACE}", model="{MODEL}"'
_SERVER = f'{_OURS}, pod="{POD}", service="{MODEL}", engine="0", model_name="{MODEL}"'
_KUBE = f'namespace="{NAMESPACE}", pod="{POD}"'
_CONTAINER = f'{_KUBE}, container="server"'
_GPU = 'Hostname="ip-10-70-0-9", gpu="0", UUID="GPU-1"'
_OLD = f'kube_deployment_created{{namespace="{NAMESPACE}", deployment="{MODEL}"}}'

Series = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """One alert: `firing` series make it fire at `minute`, `silent` ones do not; `what` says what the silence
    is about."""

    alert: str
    firing: Series
    silent: Series
    what: str
    minute: int = 60
    severity: str = ".+"


def ours(metric: str, extra: str = "") -> str:
    return f"{metric}{{{_SERVER}{extra}}}"


def _up(values: str, pod: str = POD) -> dict[str, str]:
    return {f'up{{{_OURS}, pod="{pod}", job="{MODEL}"}}': values}


def _buckets(histogram: str, counts: Mapping[str, str], total: str) -> dict[str, str]:
    buckets = {ours(f"{histogram}_bucket", f', le="{bound}"'): values for bound, values in counts.items()}
    return {**buckets, ours(f"{histogram}_count"): total}


_XID = f"DCGM_EXP_XID_ERRORS_COUNT{{{_GPU}, "
_ECC = f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{_GPU}}}"
_REMAP = f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{_GPU}}}"
_HPA = f'{{namespace="{NAMESPACE}", horizontalpodautoscaler="keda-hpa-{MODEL}"}}'
# Jobs that download are named after the repository, not the model.
_JOB = f'kube_job_failed{{namespace="{NAMESPACE}", condition="true", job_name="qwen3-8b-fetch-0a1b2c3d"}}'
_PDB = f'{{namespace="{NAMESPACE}", poddisruptionbudget="{MODEL}"}}'
_POOL = '{nodepool="bottle", resource_type="nvidia.com/gpu"}'
_HELD, _LIMIT = f"karpenter_nodepools_usage{_POOL}", f"karpenter_nodepools_limit{_POOL}"
_PENDING = f'kube_pod_status_phase{{{_KUBE}, phase="Pending"}}'
_SCALER = (
    f'keda_scaler_detail_errors_total{{namespace="{NAMESPACE}", scaledObject="{MODEL}", scaler="prometheus"}}'
)
_LAUNCH = "karpenter_cloudprovider_errors_total{method="
_NEURON = 'hardware_ecc_events_total{instance_id="i-1", neuron_device_index="3", event_type='
_REQUESTS = f'kube_pod_container_resource_requests{{{_CONTAINER}, resource="nvidia_com_gpu", unit="integer", node="a"}}'
_WAITING, _RUNNING = ours("vllm:num_requests_waiting"), ours("vllm:num_requests_running")
_TOKENS, _DONE = (
    ours("vllm:generation_tokens_total"),
    ours("vllm:request_success_total", ', finished_reason="stop"'),
)
_FAILED = ours("vllm:request_success_total", ', finished_reason="error"')
_READY = f'kube_pod_status_ready{{{_KUBE}, condition="true"}}'
_RESTARTS = f"kube_pod_container_status_restarts_total{{{_CONTAINER}}}"
_OOM = f'kube_pod_container_status_last_terminated_reason{{{_CONTAINER}, reason="OOMKilled"}}'
_LOOP = f'kube_pod_container_status_waiting_reason{{{_CONTAINER}, reason="CrashLoopBackOff"}}'

_FLUX = 'customresource_kind="HelmRelease", exported_namespace="flux-system", name="karpenter"'
_WELL = f'gotk_resource_info{{{_FLUX}, ready="True", reason="UpgradeSucceeded"}}'
_ILL = f'gotk_resource_info{{{_FLUX}, ready="False", reason="InstallFailed"}}'
_AT_IT = f'gotk_resource_info{{{_FLUX}, ready="Unknown", reason="Progressing"}}'
_BEHIND = f'gotk_resource_info{{{_FLUX}, ready="False", reason="DependencyNotReady"}}'
_ALL_FLUX = 'gotk_resource_info{customresource_kind="Kustomization", name="models", ready="True"}'
_CONTROLLERS = ("helm-controller", "kustomize-controller", "source-controller")
_NOT_READY = 'condition="Ready", status="False"'
_KEY = f'externalsecret_status_condition{{namespace="llm", name="front-door", {_NOT_READY}}}'
_STORE = f'clustersecretstore_status_condition{{name="modelyard-secrets", {_NOT_READY}}}'
_READS = 'up{job="monitoring/external-secrets", pod="external-secrets-1"}'


def _flux_up(values: str) -> dict[str, str]:
    return {f'up{{job="monitoring/{name}", pod="{name}-1"}}': values for name in _CONTROLLERS}


# The GPU's whole page while all is well: nothing of it may alarm anybody.
HEALTHY_GPU: Series = {
    f'{_XID}xid="0"}}': "0x200",
    f'{_XID}xid="31"}}': "0x30 1x5 0x200",  # a fault of the program
    _ECC: "0x200",
    _REMAP: "0x200",
    f"DCGM_FI_DEV_GPU_UTIL{{{_GPU}}}": "97x200",
    f"DCGM_FI_DEV_FB_USED{{{_GPU}}}": "41000x200",
    f"DCGM_FI_DEV_GPU_TEMP{{{_GPU}}}": "71x200",
    f"DCGM_FI_DEV_POWER_USAGE{{{_GPU}}}": "330x200",
    _HELD: "1x200",
    _LIMIT: "16x200",
}

CASES = (
    Case(
        "DeliveryControllerGone",
        {**_flux_up("1x200"), 'up{job="monitoring/helm-controller", pod="helm-controller-1"}': "1x20 0x180"},
        _flux_up("1x200"),
        "all three answer",
    ),
    Case("DeliveryFailing", {_ILL: "1x200"}, {_WELL: "1x200"}, "it is Ready", 90),
    Case(
        "DeliveryFailing",
        # A failing health check: one minute False, then an hour and a half of the next try.
        {_ILL: "_x20 1 _x89 1 _x89", _AT_IT: "1x20 _ 1x88 _ 1x89"},
        {_ILL: "_x20 1 _x180", _WELL: "_x25 1x175"},
        "it became Ready after a failure",
        105,
    ),
    Case("DeliveryFailing", {_ILL: "1x200"}, {_BEHIND: "1x200"}, "another one is at fault", 90),
    Case("DeliveryFailing", {_ILL: "1x200"}, {_AT_IT: "1x200"}, "it is at its first download", 90),
    Case("DeliveryFailing", {_ILL: "1x200"}, {_ILL: "1x60"}, "it was deleted", 100),
    Case("DeliveryUnseen", {_ILL: "1x200"}, {_ALL_FLUX: "1x200"}, "Kustomizations are reported"),
    Case("SecretNotSynced", {_KEY: "1x200"}, {_KEY: "0x200"}, "it is synced"),
    Case("SecretNotSynced", {_KEY: "1x200"}, {_KEY: "1x5 0x195"}, "it was new"),
    Case(
        "SecretStoreFailing",
        {_STORE: "1x200", _READS: "1x200"},
        {_STORE: "0x200", _READS: "1x200"},
        "it reads",
    ),
    Case("SecretStoreFailing", {_STORE: "0x200"}, {_STORE: "0x200", _READS: "1x200"}, "the operator runs"),
    # The target is gone with its Service, not only down: a sum over `up` would have nothing to say.
    Case("ModelGone", {_OLD: "-100000x200"}, {_OLD: "-100000x200", **_up("1x200")}, "a replica answers"),
    Case("ModelGone", {_OLD: "-100000x200", **_up("0x200")}, {_OLD: "600x200"}, "the Deployment is new", 44),
    Case(
        "ModelHung",
        {_RUNNING: "4x200", _TOKENS: "0+100x30 3000x200"},
        {_RUNNING: "4x200", _TOKENS: "0+100x200"},
        "tokens flow",
    ),
    Case(
        "ModelHung",
        {_RUNNING: "1x200", _TOKENS: "5x200"},
        {_RUNNING: "0x200", _TOKENS: "5x200"},
        "nobody asks",
    ),
    Case(
        "RequestQueueGrowing",
        {_WAITING: "0+2x200", **_up("1x200")},
        {_WAITING: "200-2x100", **_up("1x200")},
        "the queue shrinks",
    ),
    Case(
        "RequestQueueGrowing",
        {_WAITING: "40x200", **_up("1x200")},
        {_WAITING: "30x200", **_up("1x200")},
        "less than half a batch waits",
    ),
    Case(
        "KvCacheFull",
        {ours("vllm:kv_cache_usage_perc"): "0.99x200", _WAITING: "3x200"},
        {ours("vllm:kv_cache_usage_perc"): "0.99x200", _WAITING: "0x200"},
        "nobody waits for it",
    ),
    Case(
        "PreemptionsHigh",
        {ours("vllm:num_preemptions_total"): "0+30x200", _DONE: "0+60x200"},
        {ours("vllm:num_preemptions_total"): "0+1x200", _DONE: "0+60x200"},
        "one in sixty requests",
    ),
    Case(
        "ReplicaNotReady",
        {f"kube_pod_created{{{_KUBE}}}": "0x200", _READY: "0x200"},
        {f"kube_pod_created{{{_KUBE}}}": "0x200", _READY: "0x40 1x200"},
        "it became ready in time",
    ),
    Case(
        "ModelCrashLooping", {_RESTARTS: "0x30 1x3 2x3 3x3 4x200"}, {_RESTARTS: "0x30 1x200"}, "one restart"
    ),
    Case("ModelCrashLooping", {_LOOP: "1x200"}, {_LOOP: "0x200"}, "it no longer waits to be restarted"),
    Case(
        "ModelOutOfMemory",
        {_OOM: "1x200", _RESTARTS: "0x30 1x200"},
        {_OOM: "1x200", _RESTARTS: "1x200"},
        "it was killed long ago",
    ),
    Case("WeightsFetchFailed", {_JOB: "1x200"}, {_JOB: "0x200"}, "the job did not fail"),
    Case(
        "DisruptionBlocked",
        {
            f"kube_poddisruptionbudget_status_pod_disruptions_allowed{_PDB}": "0x200",
            f"kube_poddisruptionbudget_status_expected_pods{_PDB}": "2x200",
        },
        {
            f"kube_poddisruptionbudget_status_pod_disruptions_allowed{_PDB}": "0x40 1x200",
            f"kube_poddisruptionbudget_status_expected_pods{_PDB}": "2x200",
        },
        "a rollout",
        90,
    ),
    Case(
        "AcceleratorIdle",
        {_TOKENS: "9x200", _REQUESTS: "1x200"},
        {_TOKENS: "0x50 100x200", _REQUESTS: "1x200"},
        "a request within the hour",
        90,
    ),
    Case(
        "AutoscalerAtMaximum",
        {
            f"kube_horizontalpodautoscaler_status_desired_replicas{_HPA}": "3x200",
            f"kube_horizontalpodautoscaler_spec_max_replicas{_HPA}": "3x200",
            _WAITING: "9x200",
        },
        {
            f"kube_horizontalpodautoscaler_status_desired_replicas{_HPA}": "3x200",
            f"kube_horizontalpodautoscaler_spec_max_replicas{_HPA}": "3x200",
            _WAITING: "0x200",
        },
        "nobody waits",
    ),
    Case("AutoscalerFailing", {_SCALER: "0+1x200"}, {_SCALER: "7x200"}, "old errors"),
    Case(
        "TtftBudgetBurn",
        _buckets("vllm:time_to_first_token_seconds", {"0.75": "0+2x200", "1.0": "0+2x200"}, "0+60x200"),
        _buckets("vllm:time_to_first_token_seconds", {"0.75": "0+57x200", "1.0": "0+58x200"}, "0+60x200"),
        "one in twenty is slow, as it may be",
        100,
    ),
    Case(
        "ItlBudgetBurn",
        _buckets("vllm:inter_token_latency_seconds", {"0.05": "0+6x200"}, "0+60x200"),
        _buckets("vllm:inter_token_latency_seconds", {"0.05": "0+58x200"}, "0+60x200"),
        "most gaps are short",
        100,
    ),
    Case(
        "E2eBudgetBurn",
        _buckets("vllm:e2e_request_latency_seconds", {"20.0": "0+6x200"}, "0+60x200"),
        _buckets("vllm:e2e_request_latency_seconds", {"20.0": "0x200"}, "0x200"),
        "there are no requests",
        100,
    ),
    Case(
        "ErrorBudgetBurn",
        {_FAILED: "0+6x200", _DONE: "0+54x200"},
        {_FAILED: "0+1x200", _DONE: "0+999x200"},
        "one in a thousand",
        100,
    ),
    Case(
        "ErrorBudgetBurn",
        {_FAILED: "0+6x200", _DONE: "0+54x200"},
        {_FAILED: "0+6x30 180x200", _DONE: "0+54x200"},
        "it is over: the short window is clean",
        80,
        "critical",
    ),
    Case(
        "NodePoolAtLimit",
        {_HELD: "16x200", _LIMIT: "16x200", _PENDING: "1x200"},
        {_HELD: "16x200", _LIMIT: "16x200", _PENDING: "0x200"},
        "no pod waits",
    ),
    Case(
        "NodeLaunchFailing",
        {f'{_LAUNCH}"Create", error="InsufficientCapacityError"}}': "0+1x200"},
        {f'{_LAUNCH}"Get", error="NodeClaimNotFoundError"}}': "0+1x200"},
        "an answer about a node that is gone",
    ),
    Case(
        "GpuXidError",
        {f'{_XID}xid="79"}}': "0x50 1x200"},
        HEALTHY_GPU,
        "a healthy GPU and a fault of the program",
    ),
    Case("GpuMemoryFault", {_ECC: "0x40 1x200"}, HEALTHY_GPU, "a healthy GPU"),
    Case("GpuMemoryFault", {_REMAP: "1x200"}, {_ECC: "3x200"}, "old errors, since remapped"),
    Case("GpuMetricsMissing", {_HELD: "1x200"}, HEALTHY_GPU, "the exporter answers"),
    Case(
        "NeuronMemoryFault",
        {f'{_NEURON}"mem_ecc_uncorrected"}}': "0x40 1x200"},
        {f'{_NEURON}"mem_ecc_corrected"}}': "0+1x200"},
        "errors that were corrected",
    ),
)
