"""Environments differ only where their files may differ: production gets what passed in staging.

Each environment is built with production's values for everything on the closed list below. The result, every
Kubernetes object and every AWS resource, must then equal production's, except for the environment's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.objects.composition import environment_objects
from modelyard.planning import plan
from modelyard.spec import Environment, load_catalogue
from tests.promotion.conftest import ROOT, SHIPPED
from tests.synthesised import empty_tree, synthesise_into

CLOSED = (
    "account",
    "region",
    "availability_zones",
    "policy",
    "removal",
    "permissions_boundary",
    "publishers",
    "network",
    "teams",
    "pools",
    "secrets",
    "gateways",
    "cost",
    "office_hours",
    "quotas",
    "tags",
    "acknowledge",
    "overrides",  # replicas, scaling, pool, access, availability: the model's own closed list
)
"""Fields of an environment file that may differ."""
CLOSED_LOCALLY = ("cache", "monitoring", "registry")
"""Nothing is promoted to or from the embedded AWS, which shows options that the others leave at their
default."""
CLOSED_OF_THE_CLUSTER = (
    "name",
    "admins",
    "viewers",
    "system_nodes",
    "log_retention_days",
    "public_access_cidrs",
)

CLOSED_OF_MONITORING = ("receivers",)
"""Who is paged for production is not paged for dev."""

Made = dict[str, Any]


def with_values_of(other: Environment, environment: Environment) -> Environment:
    """`environment` with everything on the closed list as in `other`."""
    cluster = {name: getattr(other.cluster, name) for name in CLOSED_OF_THE_CLUSTER}
    monitoring = {name: getattr(other.monitoring, name) for name in CLOSED_OF_MONITORING}
    return environment.model_copy(
        update={
            "monitoring": environment.monitoring.model_copy(update=monitoring),
            **{name: getattr(other, name) for name in CLOSED},
            **{name: getattr(other, name) for name in CLOSED_LOCALLY if environment.name == "local"},
            "cluster": environment.cluster.model_copy(update=cluster),
        }
    )


def without_name(text: str, environment: Environment) -> str:
    """`text` with the environment's name, and what is derived from it, called the same everywhere."""
    text = text.replace(environment.cluster_name, "CLUSTER")
    text = text.replace(f"/modelyard/{environment.name}/", "/modelyard/NAME/")
    text = re.sub(rf"(?<![\w.:/-]){environment.name}(?![\w.:/-])", "NAME", text)
    # Names of immutable objects end with a hash of all that they hold, the name of the environment included,
    # and a dashboard with a name that is too long for Grafana is called by a hash of it.
    return re.sub(r"-([0-9a-f]{8}|[0-9a-f]{16})\b", "-HASH", text)


def objects(environment: Environment) -> Made:
    catalogue, findings = load_catalogue(ROOT / "models")
    assert findings == []
    return {
        without_name(f"{folder} {item['kind']} {item['metadata']['name']}", environment): json.loads(
            without_name(json.dumps(item), environment)
        )
        for folder, items in environment_objects(plan(catalogue, environment)).items()
        for item in items
    }


def resources(environment: Environment, folder: Path) -> Made:
    synthesise_into(folder / "out", environment, empty_tree(folder / "tree"))
    made: Made = {}
    for file in sorted((folder / "out").glob("*.template.json")):
        text = file.read_text(encoding="utf-8")
        for name, parameter in json.loads(text).get("Parameters", {}).items():
            # Logical ids of parameters hold their path, and a hash of it.
            text = text.replace(name, f"Parameter {parameter['Default']}")
        template = json.loads(without_name(text, environment))
        for section, members in template.items():
            pairs = members.items() if isinstance(members, dict) else [("", members)]
            made |= {f"{file.stem} {section} {name}": body for name, body in pairs}
    return made


def differences(here: Made, there: Made) -> list[str]:
    return sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))


def shipped(name: str) -> Environment:
    from infra.controls.survey import read_environment

    return read_environment(ROOT, name)


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Made:
    environment = shipped("prod")
    return objects(environment) | resources(environment, tmp_path_factory.mktemp("prod"))


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "prod"])
def test_what_is_not_on_the_list_is_as_in_production(name: str, production: Made, tmp_path: Path) -> None:
    as_production = with_values_of(shipped("prod"), shipped(name))
    made = objects(as_production) | resources(as_production, tmp_path)

    assert len(made) > 250
    assert differences(made, production) == []


DEVIATIONS: list[tuple[str, Callable[[Environment], Environment]]] = [
    ("checks", lambda e: e.model_copy(update={"checks": e.checks.model_copy(update={"smoke": False})})),
    ("namespace", lambda e: e.model_copy(update={"namespace": "inference"})),
    (
        "Kubernetes version",
        lambda e: e.model_copy(update={"cluster": e.cluster.model_copy(update={"version": "1.35"})}),
    ),
    (
        "monitoring",
        lambda e: e.model_copy(update={"monitoring": e.monitoring.model_copy(update={"install": False})}),
    ),
]


@pytest.mark.parametrize(("what", "deviate"), DEVIATIONS, ids=[what for what, _ in DEVIATIONS])
def test_a_file_that_deviates_elsewhere_is_noticed(
    what: str, deviate: Callable[[Environment], Environment], production: Made, tmp_path: Path
) -> None:
    planted = with_values_of(shipped("prod"), deviate(shipped("staging")))
    made = objects(planted) | resources(planted, tmp_path)

    assert differences(made, production) != []


def test_code_that_asks_for_the_name_is_noticed(
    production: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mistake that no file shows: `if environment.name == "dev"`."""
    from modelyard.aws.network import InferenceNetwork

    made_as_written = InferenceNetwork.__init__

    def cheaper_in_dev(self: InferenceNetwork, *arguments: Any, **options: Any) -> None:
        if options["cluster_name"] == "modelyard-dev":
            options["endpoints"] = "none"
        made_as_written(self, *arguments, **options)

    monkeypatch.setattr(InferenceNetwork, "__init__", cheaper_in_dev)
    as_production = with_values_of(shipped("prod"), shipped("dev"))
    made = objects(as_production) | resources(as_production, tmp_path)

    assert any("VPCEndpoint" in name or "Endpoints" in name for name in differences(made, production))
