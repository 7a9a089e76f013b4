"""vLLM on NVIDIA GPUs: `vllm serve`, `vllm run-batch`, and its ranks over several nodes."""

from __future__ import annotations

from typing import Any

from modelyard.engines.engine import CACHE, HOME, Engine, compact_json, free_args
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings
from modelyard.engines.signals import Signals
from modelyard.hardware import Accelerator

# Ports inside a replica: vLLM's defaults, as constants for network policies.
MASTER_PORT = 29501
DATA_PARALLEL_PORT = 13345
KV_TRANSFER_PORT = 5600

# Online quantization, our names to vLLM's (vllm/model_executor/layers/quantization, online methods).
_ONLINE = {"fp8": "fp8_per_channel", "int8": "int8_per_channel_weight_only"}


# A worker's first rank: after the ranks of all nodes before it.
_WORKER_WITH_RANKS = 'exec vllm serve "$@" --data-parallel-start-rank=$((LWS_WORKER_INDEX * RANKS_PER_NODE))'

_SIGNALS = Signals(
    waiting="vllm:num_requests_waiting",
    running="vllm:num_requests_running",
    kv_cache_usage="vllm:kv_cache_usage_perc",
    ttft="vllm:time_to_first_token_seconds",
    itl="vllm:inter_token_latency_seconds",
    e2e="vllm:e2e_request_latency_seconds",
    prompt_tokens="vllm:prompt_tokens_total",
    generated_tokens="vllm:generation_tokens_total",
    preemptions="vllm:num_preemptions_total",
    requests="vllm:request_success_total",
    failed='vllm:request_success_total{finished_reason="error"}',
)


class Vllm(Engine):
    """The model path comes first, as the entrypoint requires, then full flag names: vLLM silently accepts
    abbreviations."""

    name = "vllm"
    fp8_cache = True
    states_utilization = True
    shares_compiled = True
    kserve = ("vllm", "serve")
    aiconfigurator = "vllm"
    service_prefix = "vllm"
    signals = _SIGNALS

    def usual_for(self, accelerator: Accelerator, *, gguf: bool) -> bool:
        return accelerator.vendor == "nvidia" and not gguf

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        return (
            *common_args(settings),
            *_gpu_args(settings),
            *_adapter_args(settings),
            *_topology_args(settings),
            *free_args(settings, release),
        )

    def addresses(self, settings: ServeSettings) -> tuple[str, ...]:
        exchanging = ("VLLM_NIXL_SIDE_CHANNEL_HOST",) if settings.kv_role != "both" else ()
        return (*exchanging, *(("VLLM_HOST_IP",) if settings.ranks.nodes > 1 else ()))

    def worker_command(self, settings: ServeSettings) -> tuple[str, ...]:
        return ("/bin/sh", "-c", _WORKER_WITH_RANKS, "worker") if settings.ranks.data > 1 else ()

    def worker_args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        """The worker pod computes its first data-parallel rank itself."""
        return (*self.args(settings, release), "--headless")

    def worker_env(self, settings: ServeSettings) -> dict[str, str]:
        return {"RANKS_PER_NODE": str(settings.ranks.data_per_node)} if settings.ranks.data > 1 else {}

    def compile_variables(self, root: str | None) -> dict[str, str]:
        return compile_variables(root)

    def batch_command(self) -> tuple[str, ...]:
        return ("vllm", "run-batch")

    def batch_args(
        self, settings: ServeSettings, release: Release, *, requests: str, answers: str
    ) -> tuple[str, ...]:
        """The same engine arguments without the server's; run-batch takes the model as a flag."""
        serving = {
            "--served-model-name",
            "--host",
            "--port",
            "--shutdown-timeout",
            "--disable-access-log-for-endpoints",
        }
        path, *flags = self.args(settings, release)
        kept, skipping = [], False
        for flag in flags:
            if flag.startswith("--"):
                skipping = flag.partition("=")[0] in serving
            if not skipping:
                kept.append(flag)
        files = ("-i", requests, "-o", answers)
        return (*files, f"--model={path}", "--served-model-name", *settings.served_names, *kept)

    def env(self, settings: ServeSettings) -> dict[str, str]:
        env = {"VLLM_NO_USAGE_STATS": "1"}
        if settings.ranks.tensor * settings.ranks.pipeline * settings.ranks.data > 1:
            env["NCCL_DEBUG"] = "WARN"
        if settings.ranks.nodes > 1:
            # libfabric's EFA provider with GPUDirect RDMA; NCCL uses the pod's interface only for bootstrap.
            # Without huge pages: Karpenter counts none on any instance type, so a pod that asked for them
            # would wait for ever, and without asking their use is a bus error.
            env |= {
                "FI_PROVIDER": "efa",
                "FI_EFA_USE_DEVICE_RDMA": "1",
                "FI_EFA_USE_HUGE_PAGE": "0",
                "NCCL_SOCKET_IFNAME": "eth0",
            }
        if settings.kv_role != "both":
            env["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(KV_TRANSFER_PORT)
        if settings.load == "stream":
            # Concurrent range requests over several files; values from AWS's S3 guide.
            env |= {"RUNAI_STREAMER_CONCURRENCY": "16", "RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING": "1"}
        if settings.sleep:
            env["VLLM_SERVER_DEV_MODE"] = "1"
        return env


def compile_variables(root: str | None) -> dict[str, str]:
    """Compile cache directories of vLLM and its libraries, all below `root`; without `root`, the libraries'
    defaults."""
    cache = root or f"{CACHE}/vllm"
    beside = root or CACHE
    return {
        "VLLM_CACHE_ROOT": cache,
        "TORCHINDUCTOR_CACHE_DIR": f"{beside}/torchinductor",
        "TRITON_CACHE_DIR": f"{beside}/triton",
        "FLASHINFER_WORKSPACE_BASE": root or HOME,
    }


def common_args(settings: ServeSettings) -> list[str]:
    """Arguments that every vLLM build supports."""
    ranks = settings.ranks
    args = [
        settings.model_path,
        "--served-model-name",
        *settings.served_names,
        "--host=0.0.0.0",
        f"--port={settings.port}",
        f"--tensor-parallel-size={ranks.tensor}",
        f"--max-model-len={settings.max_model_len}",
        f"--max-num-seqs={settings.max_num_seqs}",
        f"--max-num-batched-tokens={settings.max_num_batched_tokens}",
        f"--shutdown-timeout={settings.drain_seconds}",
        "--disable-access-log-for-endpoints=/health,/metrics",
    ]
    if settings.task == "generate":
        args.append("--enable-prefix-caching" if settings.prefix_caching else "--no-enable-prefix-caching")
    else:
        args += ["--runner=pooling", f"--convert={'embed' if settings.task == 'embed' else 'classify'}"]
    if settings.tool_parser:
        args += ["--enable-auto-tool-choice", f"--tool-call-parser={settings.tool_parser}"]
    if settings.reasoning_parser:
        args.append(f"--reasoning-parser={settings.reasoning_parser}")
    if settings.trust_remote_code:
        args.append("--trust-remote-code")
    return args


def _gpu_args(settings: ServeSettings) -> list[str]:
    args = [f"--gpu-memory-utilization={settings.gpu_memory_utilization:g}"]
    if settings.dtype != "auto":
        args.append(f"--dtype={settings.dtype}")
    if settings.kv_cache_dtype != "auto":
        args.append(f"--kv-cache-dtype={settings.kv_cache_dtype}")
    if settings.quantization != "auto":
        args.append(f"--quantization={_ONLINE[settings.quantization]}")
    if settings.enforce_eager:
        args.append("--enforce-eager")
    if settings.load == "stream":
        args.append("--load-format=runai_streamer")
    else:
        args.append(f"--safetensors-load-strategy={settings.load}")
    if settings.images_per_prompt is not None:
        limits = {"image": settings.images_per_prompt, "video": settings.videos_per_prompt}
        args.append(f"--limit-mm-per-prompt={compact_json(limits)}")
    if settings.structured_outputs != "auto":
        args.append(f"--structured-outputs-config={compact_json({'backend': settings.structured_outputs})}")
    if settings.speculative:
        args.append(f"--speculative-config={compact_json(dict(settings.speculative))}")
    if settings.kv_offload_gib and settings.kv_offload_backend == "native":
        args += [f"--kv-offloading-size={settings.kv_offload_gib}", "--kv-offloading-backend=native"]
    if connector := _connector(settings):
        args.append(f"--kv-transfer-config={compact_json(connector)}")
    if settings.sleep:
        args.append("--enable-sleep-mode")
    if settings.otlp_endpoint:
        args.append(f"--otlp-traces-endpoint={settings.otlp_endpoint}")
    return args


def _connector(settings: ServeSettings) -> dict[str, Any] | None:
    """KV connector: to replicas of the other role, or to LMCache's store in host memory."""
    if settings.kv_role != "both":
        return {
            "kv_connector": "NixlConnector",
            "kv_role": "kv_producer" if settings.kv_role == "prefill" else "kv_consumer",
            # A lost block costs time, not the answer.
            "kv_load_failure_policy": "recompute",
        }
    if settings.kv_offload_gib and settings.kv_offload_backend == "lmcache":
        return {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
    return None


def _adapter_args(settings: ServeSettings) -> list[str]:
    if not settings.adapters:
        return []
    return [
        "--enable-lora",
        f"--max-loras={len(settings.adapters)}",
        f"--max-lora-rank={settings.max_lora_rank}",
        "--lora-modules",
        *(f"{name}={path}" for name, path in sorted(settings.adapters.items())),
    ]


def _topology_args(settings: ServeSettings) -> list[str]:
    """Pipeline, data and expert parallelism, and rendezvous of the pods of one replica.

    The kubelet expands `$(LWS_…)` from the variables that LeaderWorkerSet sets in every pod.
    """
    ranks = settings.ranks
    args = []
    if ranks.pipeline > 1:
        args.append(f"--pipeline-parallel-size={ranks.pipeline}")
    if ranks.expert:
        args.append("--enable-expert-parallel")
    if ranks.data > 1:
        args.append(f"--data-parallel-size={ranks.data}")
        if ranks.nodes > 1:
            args += [
                f"--data-parallel-size-local={ranks.data_per_node}",
                "--data-parallel-address=$(LWS_LEADER_ADDRESS)",
                f"--data-parallel-rpc-port={DATA_PARALLEL_PORT}",
            ]
    elif ranks.nodes > 1:
        args += [
            f"--nnodes={ranks.nodes}",
            "--node-rank=$(LWS_WORKER_INDEX)",
            "--master-addr=$(LWS_LEADER_ADDRESS)",
            f"--master-port={MASTER_PORT}",
        ]
    return args
