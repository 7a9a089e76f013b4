"""Jobs that call a served model as its clients do: the smoke test, and the load test.

A Job is immutable, so its name carries a hash of its own spec and of the server it calls: a changed server
gets a new Job, and so a new verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from modelyard.endpoint_tests.bench import CONCURRENCY, settings_json
from modelyard.endpoint_tests.load import RequestedLoad
from modelyard.endpoint_tests.promises import bounds, expectations
from modelyard.memory import throughput as planned
from modelyard.names import CHECKS_ACCOUNT, REPORTS_VARIABLE
from modelyard.objects.labels import model_annotations, model_labels, platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.network import ENDPOINT_CHECK
from modelyard.objects.platform.priority import PRIORITY_CLASS
from modelyard.objects.pods.digest import digest
from modelyard.objects.pods.images import BOTO3, PYTHON
from modelyard.objects.pods.parts import (
    UNDISTURBED,
    Container,
    Pod,
    config_map,
    empty_dir,
    mount,
    one_off,
    variables,
)
from modelyard.objects.serving.pod import server_pod
from modelyard.planning import OURS, ModelPlan
from modelyard.planning.identity import service_account
from modelyard.spec import Environment

MOUNT_PATH: Final = "/checks"
_REQUEST_SECONDS: Final = 120
_WEEK: Final = 7 * 24 * 3600

# A pod learns its own name and its Job's name (a label) through the downward API.
_NAMES: Final = {
    "JOB_NAME": "metadata.labels['batch.kubernetes.io/job-name']",
    "POD_NAME": "metadata.name",
}

OPENAI: Final = "openai==3.51.0"
LLMETER: Final = ("llmeter==0.2.0", "httpx==0.28.1")

# Starts the program in the ConfigMap. No `${}` in it: Flux would substitute it.
START_SCRIPT: Final = """\
import os, runpy, subprocess, sys
if packages := os.environ["PACKAGES"].split():
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", "/tmp/packages", *packages]
    subprocess.run(pip, check=True)
    sys.path.insert(1, "/tmp/packages")
runpy.run_module(os.environ["PROGRAM"], run_name="__main__")
"""


@cache
def program_files(modules: tuple[str, ...]) -> Mapping[str, str]:
    """Path to source of some modules of `modelyard.endpoint_tests`, in packages of the same names."""
    package = files("modelyard.endpoint_tests")
    sources = {
        f"modelyard/endpoint_tests/{name}.py": package.joinpath(f"{name}.py").read_text(encoding="utf-8")
        for name in ("__init__", *modules)
    }
    return MappingProxyType({"modelyard/__init__.py": "", **sources})


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of `modelyard.endpoint_tests` that jobs run."""

    kind: str
    """Its module, and a part of the Jobs' names."""
    modules: tuple[str, ...]
    """Its modules."""
    packages: tuple[str, ...]
    """The pip packages that it installs, pinned."""
    retries: int
    seconds: int
    """Longest run in seconds, once the server answers."""
    memory: str


SMOKE: Final = Program(
    kind="smoke",
    modules=("endpoint", "checks", "embedding_checks", "outcome", "smoke"),
    packages=(OPENAI,),
    retries=2,
    seconds=900,
    memory="512Mi",
)
"""All checks of `modelyard smoke`; fails if one of them fails."""

BENCH: Final = Program(
    kind="bench",
    modules=("endpoint", "measurement", "load", "outcome", "report", "bench"),
    packages=(OPENAI, *LLMETER),
    retries=0,  # a second run would find warm caches
    seconds=3600,
    memory="1Gi",
)
"""The load of `modelyard bench` with its defaults; the report goes to its log."""


def smoke_job(plan: ModelPlan, environment: Environment) -> Manifest:
    """The Job that checks a model after its delivery."""
    return _job(SMOKE, plan, environment, {})


def bench_job(plan: ModelPlan, environment: Environment) -> Manifest:
    """The Job that load-tests a model after its delivery."""
    work = planned.RequestLengths(RequestedLoad.prompt_tokens, RequestedLoad.output_tokens).within(
        plan.serving.max_model_len // 2  # prompts have only roughly the requested length
    )
    limits = bounds(plan, work.input_tokens, work.output_tokens, CONCURRENCY)
    rounded = {level: round(bound, 1) for level, bound in limits.items()}
    load = RequestedLoad(work.input_tokens, work.output_tokens)
    variables = {"SETTINGS": settings_json(load, rounded, planned.ROOFLINE)}
    return _job(BENCH, plan, environment, variables)


def client_programs(environment: Environment) -> Iterator[Manifest]:
    """One ConfigMap with the program for each kind of Job that the environment runs, shared by all models."""
    wanted = ((SMOKE, environment.checks.smoke), (BENCH, environment.checks.bench))
    for program in (program for program, stated in wanted if stated):
        sources = program_files(program.modules)
        yield manifest(
            api_version="v1",
            kind="ConfigMap",
            name=program_name(program.kind, sources),
            namespace=environment.namespace,
            labels=platform_labels(ENDPOINT_CHECK),
            data={path.replace("/", "."): text for path, text in sources.items()},
            immutable=True,
        )


def _job(program: Program, plan: ModelPlan, environment: Environment, own: Mapping[str, str]) -> Manifest:
    """A Job that runs `program`; `own`: its variables beyond the common ones."""
    labels = model_labels(plan, environment.name, component=ENDPOINT_CHECK)
    pod = _pod(program, plan, environment, own)
    server = server_pod(  # the same Job name for every runner
        replace(plan, runner=OURS),
        environment=environment,
        priority_class=PRIORITY_CLASS,
        settled=environment.strict,
        account=service_account(plan, environment),
    )
    patches = [patch.model_dump(mode="json") for patch in plan.model.patches]
    spec = one_off(
        {
            "backoffLimit": program.retries,
            "activeDeadlineSeconds": plan.startup.deadline + program.seconds,
            "template": {"metadata": {"labels": labels, "annotations": dict(UNDISTURBED)}, "spec": pod},
        }
    )
    images = environment.routes  # a Job is immutable: what it pulls is in its name
    spec, server = images.redirected(spec), images.redirected(server)
    if environment.delivery != "flux":  # Flux would recreate a Job that its TTL deleted
        spec["ttlSecondsAfterFinished"] = _WEEK
    return manifest(
        api_version="batch/v1",
        kind="Job",
        name=f"{plan.name}-{program.kind}-{digest([spec, server, patches])}",
        namespace=environment.namespace,
        labels=labels,
        annotations={**model_annotations(plan), **_handling(environment)},
        spec=spec,
    )


def _pod(
    program: Program, plan: ModelPlan, environment: Environment, own: Mapping[str, str]
) -> dict[str, Any]:
    sources = program_files(program.modules)
    reports = environment.reports_checks
    fixed = {
        "EXPECTATIONS": expectations(plan).to_json(),
        "HOME": "/tmp",
        "PACKAGES": " ".join((*program.packages, *([BOTO3] if reports else []))),
        "PROGRAM": f"modelyard.endpoint_tests.{program.kind}",
        "PYTHONPATH": MOUNT_PATH,
        "PYTHONUNBUFFERED": "1",
        "TIMEOUT": str(_REQUEST_SECONDS),
        "URL": f"http://{plan.name}.{environment.namespace}/v1",
        "WAIT": str(plan.startup.deadline),
        **own,
    }
    if reports:
        fixed |= {"REPORTS": f"${{{REPORTS_VARIABLE}}}", "REPORTS_REGION": environment.region}
    key = plan.model.access.api_key
    container = Container(
        name=program.kind,
        image=PYTHON,
        command=["python3", "-c", START_SCRIPT],
        env=[
            *variables(fixed, secrets={"API_KEY": key} if key else {}),
            *variables({}, fields=_NAMES if reports else {}),
        ],
        requests={"cpu": "250m", "memory": program.memory, "ephemeral-storage": "512Mi"},
        limits={"memory": program.memory, "ephemeral-storage": "1Gi"},
        mounts=[mount("program", MOUNT_PATH, read_only=True), mount("tmp", "/tmp")],
        fields={"terminationMessagePolicy": "FallbackToLogsOnError"},
    )
    paths = [{"key": path.replace("/", "."), "path": path} for path in sources]
    return Pod(
        account=CHECKS_ACCOUNT if reports else plan.name,
        containers=[container.manifest()],
        volumes=[
            config_map("program", program_name(program.kind, sources), paths),
            empty_dir("tmp", "1Gi"),
        ],
        fields={"restartPolicy": "Never"},  # keeps the log of every attempt
    ).spec()


def program_name(kind: str, sources: Mapping[str, str]) -> str:
    """Name of the ConfigMap; it changes with the program, and so do the names of the Jobs."""
    return f"{kind}-program-{digest(dict(sources))}"


def _handling(environment: Environment) -> dict[str, str]:
    """Argo CD runs the Job after each sync, and the sync succeeds only if the Job does. Flux recreates an
    immutable Job when its report bucket changes."""
    if environment.delivery == "flux":
        return {"kustomize.toolkit.fluxcd.io/force": "enabled"}
    if environment.delivery != "argocd":
        return {}
    return {
        "argocd.argoproj.io/hook": "PostSync",
        "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation",
    }
