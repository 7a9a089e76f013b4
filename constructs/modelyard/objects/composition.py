"""What makes up an environment: folder of the tree to objects, and where an organisation adds or replaces
some."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Protocol

from modelyard.failure import Failure
from modelyard.findings import Finding
from modelyard.names import CHECKS_FOLDER, MODELS_FOLDER, WEIGHTS_FOLDER
from modelyard.object_rules import api_schemas, check_objects
from modelyard.objects.checks.jobs import bench_job, client_programs, smoke_job
from modelyard.objects.delivery.addons import addons
from modelyard.objects.delivery.applications import applications
from modelyard.objects.delivery.kustomizations import DELIVERY, kustomizations
from modelyard.objects.manifest import Manifest, file_name
from modelyard.objects.monitoring.monitors import model_rules, platform_monitoring
from modelyard.objects.patches import apply_patches, schema_findings
from modelyard.objects.platform.shared import platform
from modelyard.objects.serving.cache_sweep import cache_sweep
from modelyard.objects.serving.model import model_server
from modelyard.objects.serving.weights import WeightsSource, fetch_jobs, fetched_sources
from modelyard.objects.traffic.gateways import model_gateways
from modelyard.objects.traffic.litellm import litellm_proxy
from modelyard.planning import OURS, ModelPlan, Plan
from modelyard.spec import Environment

PLATFORM = "platform"
MONITORING = "monitoring"
ADDONS = "addons"
APPLICATIONS = "argocd"

SWEEP = f"{MODELS_FOLDER}/_sweep"
"""Folder of what deletes old weights from the cache."""

LITELLM = f"{MODELS_FOLDER}/_litellm"
"""Folder of the proxy in front of all models."""

PROGRAMS = f"{CHECKS_FOLDER}/_programs"
"""Folder of what the jobs of all models run."""

Folders = dict[str, list[Manifest]]


class ChartLike(Protocol):
    """A chart of cdk8s, as far as it is asked here."""

    def to_json(self) -> list[Any]: ...


Part = Iterable[Manifest] | ChartLike
"""Objects as plain data, or a cdk8s chart of them."""


class RenderError(Exception):
    """Rendered objects break a rule; `findings` say which."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings


@dataclass(frozen=True)
class Composition:
    """The objects of an environment by folder, before patches and rules; a hook may change them."""

    plan: Plan
    folders: Folders
    """Folder below the environment's root, such as `platform` or `models/NAME`, to its objects."""

    @property
    def environment(self) -> Environment:
        return self.plan.environment

    def add(self, folder: str, part: Part) -> None:
        """Add the objects of `part` to `folder`, which need not be there yet."""
        self.folders.setdefault(folder, []).extend(_objects(part))

    def replace(self, folder: str, part: Part) -> None:
        """Let `folder` hold the objects of `part` alone.

        Raises:
            KeyError: nothing is in `folder` that could be replaced.
        """
        if folder not in self.folders:
            raise KeyError(f"no folder {folder}; there are {', '.join(sorted(self.folders))}")
        self.folders[folder] = _objects(part)


Hook = Callable[[Composition], None]
"""What an organisation does to a composition: `compose` of its `charts`."""


def environment_objects(plan: Plan, hook: Hook | None = None) -> Folders:
    """Folder below the environment's root to its objects: ours, after `hook`, with the models' patches.

    Raises:
        RenderError: a patch names a kind that its model does not render.
    """
    return _changed(plan, hook, default_objects(plan))


def checked_objects(plan: Plan, hook: Hook | None = None) -> Folders:
    """As `environment_objects`, and every object keeps the rules.

    Objects that the hook or a patch made are also checked against the API schema of the environment's
    Kubernetes version, if the schemas are installed; a test of ours does that for all others.

    Raises:
        RenderError: an object, most likely a patched one, breaks a rule.
    """
    folders = default_objects(plan)
    if hook is None and not plan.patched:
        findings = check_objects(_items(folders), plan.environment.routes)
    else:
        ours = {_text(item) for item in _items(folders)}
        folders = _changed(plan, hook, folders)
        findings = _foreign_findings(plan, folders, ours)
    if findings:
        raise RenderError(findings)
    return folders


def _foreign_findings(plan: Plan, folders: Folders, ours: Container[str]) -> list[Finding]:
    """Broken rules of objects of which others made those whose texts are not `ours`."""
    items = _items(folders)
    foreign = [item for item in items if _text(item) not in ours]
    findings = [*schema_findings(plan, foreign)] if api_schemas.installed() else []
    try:
        return [*findings, *check_objects(items, plan.environment.routes)]
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        # The rules trust the types of fields, which only the schema knows.
        return findings or [
            Finding(
                "K8S001",
                f"a patch or a chart sets a field to a value of the wrong type: {problem}",
                "install modelyard[crds], whose schemas name the field",
            )
        ]


def _items(folders: Folders) -> list[Manifest]:
    return [item for objects in folders.values() for item in objects]


def _text(item: Manifest) -> str:
    return json.dumps(item, default=str)


def _changed(plan: Plan, hook: Hook | None, folders: Folders) -> Folders:
    """`folders`, after the hook and the models' patches."""
    composition = Composition(plan, folders)
    if hook is not None:
        ours = {folder: {file_name(item) for item in folders.get(folder, [])} for folder in _DELIVERING}
        hook(composition)
        _deliver_again(composition, ours)
    return _patched(plan, composition.folders)


def _deliver_again(composition: Composition, ours: Mapping[str, Container[str]]) -> None:
    """Let the hook's new folders be delivered too, and none that it removed; what it changed stays
    changed."""
    jobs = fetch_jobs(composition.plan.models, composition.environment)
    for folder, fresh in _delivery(composition.plan, composition.folders, jobs).items():
        now = composition.folders.get(folder, [])
        kept = {file_name(item): item for item in now}
        added = [item for item in now if file_name(item) not in ours[folder]]
        composition.folders[folder] = [*(kept.get(file_name(item), item) for item in fresh), *added]


_DELIVERING = (DELIVERY, APPLICATIONS)


def _delivery(plan: Plan, folders: Folders, jobs: Mapping[WeightsSource, Manifest]) -> Folders:
    """What tells Flux or Argo CD which folders to apply, and after which others."""
    environment = plan.environment
    there = [folder for folder, objects in folders.items() if objects and folder not in _DELIVERING]
    if environment.delivery == "flux" and plan.runner == OURS:
        weights = {
            name: list(
                dict.fromkeys(_fetch_folder(jobs[s]) for each in members for s in fetched_sources(each))
            )
            for name, members in by_model(plan)
        }
        return {DELIVERY: [*kustomizations(plan, there, weights)]}
    if environment.git:
        return {APPLICATIONS: [*applications(environment, environment.git, there)]}
    return {}


def _fetch_folder(job: Manifest) -> str:
    return f"{WEIGHTS_FOLDER}/{job['metadata']['name']}"


def default_objects(plan: Plan) -> Folders:
    """What Modelyard composes by itself."""
    environment = plan.environment
    folders = {PLATFORM: [*platform(plan), *_gateways(environment)]}
    if environment.monitoring.enabled:
        folders[MONITORING] = [*platform_monitoring(plan)]
    if environment.delivery != "none":
        folders[ADDONS] = [*addons(plan)]
    jobs = fetch_jobs(plan.models, environment)
    for job in jobs.values():
        folders[_fetch_folder(job)] = [job]
    if environment.litellm:
        folders[LITELLM] = [*litellm_proxy(plan.models, environment, environment.litellm, plan.runner)]
    for name, members in by_model(plan):
        folders[f"{MODELS_FOLDER}/{name}"] = [
            item for each in members for item in model_objects(each, environment)
        ]
        if checks := [*_checks(members, environment)]:
            folders[f"{CHECKS_FOLDER}/{name}"] = checks
    if sweep := [*cache_sweep(environment, _items(folders))]:
        folders[SWEEP] = sweep
    if any(folder.startswith(f"{CHECKS_FOLDER}/") for folder in folders):
        folders[PROGRAMS] = [*client_programs(environment)]
    pulled = environment.routes
    folders = {folder: [pulled.redirected(item) for item in objects] for folder, objects in folders.items()}
    return folders | _delivery(plan, folders, jobs)


def by_model(plan: Plan) -> Iterator[tuple[str, list[ModelPlan]]]:
    """Name of a model to its plans: two where prefill and decode are apart."""
    for name, plans in groupby(plan.models, key=lambda planned: planned.model.name):
        yield name, list(plans)


def model_objects(plan: ModelPlan, environment: Environment) -> Iterator[Manifest]:
    """The server of one model, and its rules where somebody watches."""
    yield from model_server(plan, environment)
    if environment.monitoring.enabled and not plan.model.batch:
        yield model_rules(plan, environment)


def _checks(members: Sequence[ModelPlan], environment: Environment) -> Iterator[Manifest]:
    """A model without a replica answers nobody until somebody asks for more; a batch never does."""
    [answering] = [planned for planned in members if planned.role != "prefill"]
    if not answering.model.replicas.min or answering.model.batch:
        return
    if environment.checks.smoke:
        yield smoke_job(answering, environment)
    if environment.checks.bench:
        yield bench_job(answering, environment)


def _gateways(environment: Environment) -> Iterator[Manifest]:
    if environment.gateways.internal or environment.gateways.public:
        yield from model_gateways(environment)


def _objects(part: Part) -> list[Manifest]:
    return [dict(item) for item in (part if isinstance(part, Iterable) else part.to_json())]


class UnusableObject(Failure):
    """Something that a hook left in a folder cannot be written as an object's file."""


def check_usable(folders: Folders) -> None:
    """Every object has a file of its own.

    Raises:
        UnusableObject: one has no name, or the file of another one.
    """
    for folder, objects in folders.items():
        seen = set()
        for item in objects:
            metadata = item.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            stated = {"apiVersion": item.get("apiVersion"), "kind": item.get("kind"), "metadata.name": name}
            if missing := [
                field for field, value in stated.items() if not isinstance(value, str) or not value
            ]:
                raise UnusableObject(
                    f"{folder}: {stated['kind'] or 'an object'} {name or ''} has no {', '.join(missing)}"
                )
            if (file := file_name(item)) in seen:
                raise UnusableObject(
                    f"{folder}: {stated['kind']} {name} is there twice; use `replace`, or another name"
                )
            seen.add(file)


def _patched(plan: Plan, folders: Folders) -> Folders:
    findings = []
    result = dict(folders)
    for name, members in by_model(plan):
        folder = f"{MODELS_FOLDER}/{name}"
        if patches := members[0].model.patches:
            try:
                result[folder] = apply_patches(result.get(folder, []), patches)
            except LookupError as error:
                problem = Finding("K8S001", str(error), "name one of these kinds", subject=name)
                findings.append(replace(problem, field=("patches",)))
    if findings:
        raise RenderError(findings)
    return result
