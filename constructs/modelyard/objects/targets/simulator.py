"""The rendered tree for a cluster without accelerators: every engine is llm-d's simulator, on a fraction of a
CPU.

Services, policies, monitors, probes, budgets and scalers stay as they are, so that they can be tried out.
What belongs to AWS or to accelerators goes: nodes, the shared cache, secrets and what needs them, gateways,
downloads, add-ons.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy

from modelyard.engines import metrics_of, newest_release
from modelyard.findings import Finding
from modelyard.object_rules.pods import DRAIN, INSTANCE, Manifest, is_server, pod_templates
from modelyard.objects.pods.probes import Drain
from modelyard.objects.pods.security import container_security_context
from modelyard.objects.serving.settings import serve_settings
from modelyard.planning import ModelPlan, Plan

# Release v0.9.2 of 2026-06-09; its flags stand in docs/configuration.md of llm-d/llm-d-inference-sim.
IMAGE = "ghcr.io/llm-d/llm-d-inference-sim:v0.9.2"

# What fetches from outside, or asks with keys that the simulator does not know.
_FOLDERS = re.compile(r"addons|argocd|checks/.*|models/_.*")
_NO_NEED = frozenset(
    {
        *("NodePool", "EC2NodeClass", "StorageClass", "PersistentVolume", "PersistentVolumeClaim"),
        *("ClusterSecretStore", "ExternalSecret", "Gateway", "HTTPRoute", "DaemonSet", "PodMonitor"),
    }
)
_WRITABLE = {"name": "tmp", "mountPath": "/tmp"}


def simulated(
    plan: Plan, folders: Mapping[str, list[Manifest]]
) -> tuple[dict[str, list[Manifest]], list[Finding]]:
    """`folders` of the Kubernetes tree with simulators for engines, and which models it leaves out."""
    plans = {model.name: model for model in plan.models}
    left_out = [
        Finding(
            "TARGET001",
            "is a batch job, which the simulator cannot run",
            "try it as an endpoint: leave out `batch`",
            subject=model.name,
            field=("batch",),
        )
        for model in plan.models
        if model.model.batch
    ]
    gone = {f"models/{finding.subject}" for finding in left_out}
    result = {}
    for folder, objects in folders.items():
        if _FOLDERS.fullmatch(folder) or folder in gone:
            continue
        kept = [_simulated(plans, deepcopy(item)) for item in objects if item["kind"] not in _NO_NEED]
        if kept:
            result[folder] = kept
    return result, left_out


def _simulated(plans: Mapping[str, ModelPlan], item: Manifest) -> Manifest:
    model = plans.get((item["metadata"].get("labels") or {}).get(INSTANCE, ""))
    if model is None:
        return item
    if is_server(item):
        for position, template in enumerate(pod_templates(item)):
            _swap(model, template, answers=position == 0)
    elif item["kind"] == "ServiceMonitor":
        for endpoint in item["spec"]["endpoints"]:
            endpoint["path"] = "/metrics"
            endpoint.pop("authorization", None)  # the simulator asks for no key
    elif item["kind"] == "ScaledObject":
        _ask_the_simulator(model, item)
    return item


def _ask_the_simulator(model: ModelPlan, scaler: Manifest) -> None:
    """The simulator has vLLM's metrics, whatever engine it stands for."""
    own = metrics_of(model.serving.release.engine, model.serving.release.version).signals
    vllm = newest_release("vllm")
    told = metrics_of("vllm", vllm.version).signals
    for trigger in scaler["spec"]["triggers"]:
        if query := trigger["metadata"].get("query"):
            query = query.replace(str(own.waiting), str(told.waiting))
            trigger["metadata"]["query"] = query.replace(str(own.kv_cache_usage), str(told.kv_cache_usage))


def _swap(model: ModelPlan, template: Manifest, *, answers: bool) -> None:
    spec = template["spec"]
    for field in ("affinity", "nodeSelector", "tolerations", "initContainers"):
        if field == "initContainers":  # the routing sidecar stays, it is one of the things to try out
            kept = [c for c in spec.pop(field, []) if c.get("restartPolicy") == "Always"]
            if kept:
                spec[field] = kept
        else:
            spec.pop(field, None)
    server = spec["containers"][0]
    # The simulator ends at once on SIGTERM: the signal waits until requests are over.
    drain = Drain(requests=model.model.drain, kind="wait")
    template["metadata"]["annotations"] = {
        **template["metadata"].get("annotations", {}),
        DRAIN: f"wait:{drain.requests}",
    }
    template["metadata"]["annotations"].pop("karpenter.sh/do-not-disrupt", None)
    spec["terminationGracePeriodSeconds"] = drain.grace
    spec["volumes"] = [{"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}]
    simulator = {
        "name": server["name"],
        "image": IMAGE,
        "args": simulator_args(model),
        "env": [{"name": "HF_HUB_OFFLINE", "value": "1"}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": container_security_context(),
        "volumeMounts": [_WRITABLE],
    }
    if answers:
        simulator["ports"] = server["ports"]
        simulator["lifecycle"] = {"preStop": drain.pre_stop}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            get = {**server[probe]["httpGet"], "path": "/health"}
            simulator[probe] = {**server[probe], "httpGet": get}
    spec["containers"] = [simulator]


def simulator_args(model: ModelPlan) -> list[str]:
    """Names, port and limits of the engine that it stands for, at the speed that the plan computes for it."""
    settings = serve_settings(model)
    output = model.throughput.output_per_second / max(1, model.throughput.batch)
    between = max(1, round(1000 / output)) if output > 0 else 20
    args: list[str] = [
        f"--model={settings.served_names[0]}",
        "--served-model-name",
        *settings.served_names,
        f"--port={settings.port}",
        f"--max-model-len={settings.max_model_len}",
        f"--max-num-seqs={settings.max_num_seqs}",
        "--mode=random",
        "--force-dummy-tokenizer",  # the real one would be downloaded
        f"--inter-token-latency={between}ms",
        f"--time-to-first-token={between * 5}ms",
    ]
    if settings.adapters:
        args.append(f"--max-loras={len(settings.adapters)}")
        args.append("--lora-modules")
        args += [f'{{"name":"{name}","path":"{path}"}}' for name, path in sorted(settings.adapters.items())]
    return args
