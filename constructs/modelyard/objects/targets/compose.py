"""One model on one machine with Docker Compose: fetch the weights, then serve them, as confined as in the
cluster."""

from __future__ import annotations

from typing import Any

from modelyard.engines import ServeSettings, engine, server_args, server_command
from modelyard.engines.engine import HOME
from modelyard.findings import Finding
from modelyard.objects.platform.model_cache import MOUNT_PATH
from modelyard.objects.pods.images import PYTHON
from modelyard.objects.pods.ports import PORT
from modelyard.objects.pods.probes import Drain
from modelyard.objects.pods.security import UID
from modelyard.objects.serving.pod import server_image, server_variables
from modelyard.objects.serving.settings import serve_settings
from modelyard.objects.serving.weights import (
    FETCH_SCRIPT,
    LOCAL_PATH,
    WeightsSource,
    beside,
    fetch_variables,
    fetched_sources,
)
from modelyard.planning import ModelPlan

Document = dict[str, Any]

_CONFINED: Document = {
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
}


def compose_obstacle(plan: ModelPlan) -> Finding | None:
    """Why the model cannot run on one machine, or None."""
    model, reason = plan.model, ""
    if model.disaggregation:
        reason, field = "reads prompts and generates on different replicas", "disaggregation"
    elif plan.serving.nodes > 1:
        reason, field = f"takes {plan.serving.nodes} nodes", "accelerator"
    elif model.batch:
        reason, field = "is a batch job over files in the cluster's cache", "batch"
    elif model.model.scheme != "hf":
        reason, field = f"takes its weights from {model.model.scheme}://, which is the cluster's", "model"
    elif any(not adapter.uri.startswith("hf://") for adapter in model.adapters):
        reason, field = "takes an adapter from the cluster's cache or a bucket", "adapters"
    if not reason:
        return None
    return Finding(
        "TARGET001",
        f"{reason}: Compose runs one container on one box",
        "render it for Kubernetes",
        subject=model.name,
        field=(field,),
    )


def compose_file(plan: ModelPlan) -> Document:
    """The Compose file of a model for which `compose_obstacle` returns None."""
    settings = serve_settings(plan)
    services: Document = {}
    for number, source in enumerate(fetched_sources(plan)):
        services["weights" if number == 0 else f"weights-{number + 1}"] = _fetch(plan, source)
    fetches = {name: {"condition": "service_completed_successfully"} for name in services}
    services["server"] = {"depends_on": fetches, **_server(plan, settings)}
    document: Document = {"name": plan.name, "services": services, "volumes": {"models": {}}}
    if files := engine(plan.serving.release.engine).files(settings):
        document["configs"] = {
            _config_name(path): {"content": _literal(text)} for path, text in files.items()
        }
    return document


def _fetch(plan: ModelPlan, source: WeightsSource) -> Document:
    told = fetch_variables(source, beside(source, plan))
    environment = {name: _literal(value) for name, value in told.items()}
    if token := plan.token_secret:
        environment["HF_TOKEN"] = _told(token, "a Hugging Face token that may read the repository")
    return {
        "image": PYTHON,
        "command": ["python3", "-c", _literal(FETCH_SCRIPT)],
        "environment": environment,
        # Docker creates a new volume owned by root; without capabilities root may write only there.
        "user": "0:0",
        **_CONFINED,
        "tmpfs": ["/tmp:size=2g,mode=1777"],
        "volumes": [f"models:{MOUNT_PATH}"],
    }


def _server(plan: ModelPlan, settings: ServeSettings) -> Document:
    release, pod = plan.serving.release, plan.pod
    command = [*server_command(settings, release), *server_args(settings, release)]
    drain = Drain(requests=plan.model.drain, kind=release.drain)
    mounted = f"{LOCAL_PATH}{MOUNT_PATH}" if plan.model.cache_strategy == "nvme" else MOUNT_PATH
    budget = plan.startup.budget
    service: Document = {
        "image": server_image(plan),
        **_entry(command),
        "environment": _environment(plan, settings),
        "user": f"{UID}:{UID}",
        **_CONFINED,
        "ports": [f"127.0.0.1:{PORT}:{PORT}"],
        "volumes": [f"models:{mounted}:ro"],
        # Docker mounts tmpfs noexec; compiled kernels are loaded from here.
        "tmpfs": [f"{HOME}:exec,size=8g,mode=0700,uid={UID},gid={UID}", "/tmp:exec,size=2g,mode=1777"],
        "shm_size": _bytes(pod.shm.in_mib),
        "healthcheck": {
            "test": ["CMD", *engine(release.engine).probe(f"http://127.0.0.1:{PORT}{release.health}")],
            "interval": "15s",
            "timeout": "15s",
            "retries": 10,
            "start_period": f"{budget}s",
        },
        "stop_grace_period": f"{drain.requests + drain.teardown}s",
        "restart": "unless-stopped",
        "deploy": {"resources": {"limits": {"memory": _bytes(pod.memory_limit.in_mib)}, **_devices(plan)}},
    }
    if plan.serving.accelerator.vendor == "aws":
        service["devices"] = [
            f"/dev/neuron{number}:/dev/neuron{number}" for number in range(pod.accelerators)
        ]
    served_by = engine(release.engine)
    if files := served_by.files(settings):
        service["configs"] = [
            {"source": _config_name(path), "target": f"{served_by.repository}/{path}"}
            for path in sorted(files)
        ]
    return service


def _entry(command: list[str]) -> Document:
    """The command line; variables that the kubelet would expand are expanded by a shell."""
    filled = [word for word in command if "$(" in word]
    plain = [_literal(word) for word in command if word not in filled]
    if not filled:
        return {"command": plain}
    named = " ".join(f'"{word.replace("$(", "$${").replace(")", "}")}"' for word in filled)
    return {"entrypoint": ["/bin/sh", "-c", f'exec "$$@" {named}', "server"], "command": plain}


def _environment(plan: ModelPlan, settings: ServeSettings) -> dict[str, str]:
    """The server's variables; the key comes from the shell or from `.env`, under the secret's name."""
    environment = {}
    for variable in server_variables(plan, settings, {}):
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        environment[variable["name"]] = (
            _told(reference["name"], "the API key that clients send")
            if reference
            else _literal(variable["value"])
        )
    return environment


def _told(secret: str, what: str) -> str:
    """A required variable: Compose refuses to start without it, and no file of ours has the value."""
    name = secret.upper().replace("-", "_")
    return f"${{{name}:?set {name} to {what}}}"


def _devices(plan: ModelPlan) -> Document:
    if plan.serving.accelerator.vendor != "nvidia":
        return {}
    device = {"driver": "nvidia", "count": plan.pod.accelerators, "capabilities": ["gpu"]}
    return {"reservations": {"devices": [device]}}


def _literal(text: str) -> str:
    """Escapes `$`, which Compose interpolates in every string."""
    return text.replace("$", "$$")


def _bytes(mib: float) -> str:
    return f"{-(-mib // 1):.0f}m"


def _config_name(path: str) -> str:
    return path.replace("/", "-").replace(".", "-").lower()
