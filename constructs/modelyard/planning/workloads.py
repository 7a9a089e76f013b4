"""Workloads: sets of identical replicas. One per model with overrides and office hours applied, or two
(prefill and decode) if disaggregated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from modelyard.engines.settings import KvRole
from modelyard.findings import Finding
from modelyard.hardware import Prices
from modelyard.planning.choice import Choice, choose
from modelyard.spec.environment import Environment, Override
from modelyard.spec.governance import OfficeHours
from modelyard.spec.loading import Catalogue
from modelyard.spec.model import Model
from modelyard.spec.operation import Hours


@dataclass(frozen=True)
class Workload:
    """Identical replicas of a model, their role in a request, and their placement: `choice`, or `refusals`
    that say why there is none.

    `name`: the model's name; `NAME-prefill` for prefill replicas.
    """

    name: str
    model: Model
    role: KvRole
    choice: Choice | None
    refusals: tuple[Finding, ...] = ()


def workloads(catalogue: Catalogue, environment: Environment, prices: Prices) -> tuple[Workload, ...]:
    """Every workload of the catalogue's models in `environment`, by name."""
    models = {
        name: _overridden(model, environment.overrides.get(name)) for name, model in catalogue.models.items()
    }
    found = []
    for name, model, role in sorted(_parts(models), key=lambda part: part[0]):
        replicas = in_office_hours(model, environment.office_hours)
        chosen = choose(replicas, environment, prices)
        if isinstance(chosen, Choice):
            found.append(Workload(name, replicas, role, chosen))
        else:
            found.append(Workload(name, replicas, role, None, tuple(chosen)))
    return tuple(found)


def in_office_hours(model: Model, hours: OfficeHours | None) -> Model:
    """`model` scaled to zero outside of `hours`; batch jobs are unaffected."""
    if hours is None or model.batch:
        return model
    kept = Hours(
        start=hours.start, end=hours.end, timezone=hours.timezone, replicas=max(1, model.replicas.min)
    )
    scaling = model.scaling.model_copy(update={"schedule": (*model.scaling.schedule, kept)})
    replicas = model.replicas.model_copy(update={"min": 0})
    return model.model_copy(update={"replicas": replicas, "scaling": scaling})


def _parts(models: Mapping[str, Model]) -> Iterator[tuple[str, Model, KvRole]]:
    """Name, model with its replicas, and role of each workload."""
    for name, model in models.items():
        if model.disaggregation is None:
            yield name, model, "both"
            continue
        yield name, model, "decode"
        prefill = model.model_copy(update={"replicas": model.disaggregation.prefill})
        yield f"{name}-prefill", prefill, "prefill"


def _overridden(model: Model, override: Override | None) -> Model:
    if override is None:
        return model
    changes = {
        name: value for name in Override.model_fields if (value := getattr(override, name)) is not None
    }
    return model.model_copy(update=changes)
