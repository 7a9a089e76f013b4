"""A plan for a cluster without accelerators: every engine is llm-d's simulator, on a fraction of a CPU.

Services, policies, monitors, probes, budgets and scalers stay unchanged, so that they can be tried out. AWS
and accelerator objects are left out: nodes, the shared cache, secrets and their users, gateways, downloads,
add-ons.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from modelyard.engines import newest_release
from modelyard.findings import Finding
from modelyard.names import DO_NOT_DISRUPT
from modelyard.object_rules.pods import DRAIN, INSTANCE, Manifest, at, is_server, pod_templates
from modelyard.objects.pods.parts import Container, empty_dir, mount, variables
from modelyard.objects.pods.probes import Drain
from modelyard.objects.serving.settings import serve_settings
from modelyard.planning import ModelPlan, Plan, Runner

# Release v0.9.2 of 2026-06-09; flags: docs/configuration.md of llm-d/llm-d-inference-sim.
IMAGE = "ghcr.io/llm-d/llm-d-inference-sim:v0.9.2"

# Folders that fetch from outside, or send keys that the simulator does not know.
_FOLDERS = re.compile(r"addons|argocd|checks/.*|models/_.*")
_NO_NEED = frozenset(
    {
        *("NodePool", "EC2NodeClass", "StorageClass", "PersistentVolume", "PersistentVolumeClaim"),
        *("ClusterSecretStore", "ExternalSecret", "Gateway", "HTTPRoute", "DaemonSet", "PodMonitor"),
    }
)
_OF_THE_ENGINE = frozenset({"affinity", "nodeSelector", "tolerations", "initContainers"})
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def simulator() -> Runner:
    """The runner for simulators: vLLM's paths and metrics, whatever engine they replace."""
    return Runner(stand_in=newest_release("vllm"))


def simulated(
    plan: Plan, folders: Mapping[str, list[Manifest]]
) -> tuple[dict[str, list[Manifest]], list[Finding]]:
    """`folders` of a plan with simulators in the pods, and findings for models left out."""
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
        kept = [_simulated(plans, item) for item in objects if item["kind"] not in _NO_NEED]
        if kept:
            result[folder] = kept
    return result, left_out


def _simulated(plans: Mapping[str, ModelPlan], item: Manifest) -> Manifest:
    """A server with simulators in its pods; every other object unchanged."""
    plan = plans.get((at(item, "metadata.labels") or {}).get(INSTANCE, ""))
    if plan is None or not is_server(item):
        return item
    first, *workers = pod_templates(item)
    pod, spec = _pod(plan, first, answers=True), item["spec"]
    if not workers:
        return {**item, "spec": {**spec, "template": pod}}
    pods = {"leaderTemplate": pod, "workerTemplate": _pod(plan, *workers, answers=False)}
    return {**item, "spec": {**spec, "leaderWorkerTemplate": {**spec["leaderWorkerTemplate"], **pods}}}


def _pod(plan: ModelPlan, template: Manifest, *, answers: bool) -> Manifest:
    """A simulator's pod: identity and ports as in `template`, without the engine's settings."""
    spec = template["spec"]
    engine = spec["containers"][0]
    # The simulator exits at once on SIGTERM, so the signal waits until requests are over.
    drain = Drain(requests=plan.model.drain, kind="wait")
    asked = {name: engine[name] for name in _PROBES} if answers else {}
    stopped = {"lifecycle": {"preStop": drain.pre_stop}} if answers else {}
    simulator = Container(
        name=engine["name"],
        image=IMAGE,
        args=simulator_args(plan),
        env=variables({"HF_HUB_OFFLINE": "1"}),
        ports=engine["ports"] if answers else (),
        requests={"cpu": "50m", "memory": "64Mi"},
        limits={"memory": "256Mi"},
        mounts=[mount("tmp", "/tmp")],
        fields=asked | stopped,
    )
    annotations = {
        k: v for k, v in template["metadata"].get("annotations", {}).items() if k != DO_NOT_DISRUPT
    }
    own = {
        "containers": [simulator.manifest()],
        "volumes": [empty_dir("tmp", "256Mi")],
        "terminationGracePeriodSeconds": drain.grace,
    }
    # The routing sidecar stays: it can be tried out too.
    sidecars = [c for c in spec.get("initContainers", []) if c.get("restartPolicy") == "Always"]
    return {
        "metadata": {
            **template["metadata"],
            "annotations": annotations | {DRAIN: f"{drain.kind}:{drain.requests}"},
        },
        "spec": {
            **{name: value for name, value in spec.items() if name not in _OF_THE_ENGINE},
            **own,
            **({"initContainers": sidecars} if sidecars else {}),
        },
    }


def simulator_args(model: ModelPlan) -> list[str]:
    """Names, port and limits of the replaced engine, at the speed that the plan computes for it."""
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
