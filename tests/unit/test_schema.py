"""JSON Schema for editors: it accepts what the reader accepts and marks what the reader refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from modelyard.spec import load_environment
from modelyard.spec.schema import environment_schema, model_schema
from tests.unit.given import Modelyard, yaml_data

ROOT = Path(__file__).parents[2]
EVERYTHING = ROOT / "tests" / "fixtures" / "everything"
SERVING = ROOT / "tests" / "fixtures" / "serving"
PLATFORMS = ROOT / "tests" / "fixtures" / "platforms"
ROOTS = (ROOT, EVERYTHING, SERVING, PLATFORMS)
MODELS = sorted(path for root in ROOTS for path in (root / "models").glob("*.yaml"))
ENVIRONMENTS = sorted(path for root in ROOTS for path in (root / "environments").glob("*.yaml"))


MODEL_SCHEMA = model_schema()
ENVIRONMENT_SCHEMA = environment_schema()


def rejected(schema: dict[str, Any], data: dict[str, Any]) -> set[str]:
    """Paths of what `schema` rejects in `data`."""
    return {error.json_path for error in Draft202012Validator(schema).iter_errors(data)}


def test_schemas_are_written_again_and_a_file_of_somebody_else_is_not_lost(
    modelyard: Modelyard, tmp_path: Path
) -> None:
    assert modelyard("schema", "--write", str(tmp_path / "schemas")).code == 0
    assert modelyard("schema", "--write", str(tmp_path / "schemas")).code == 0
    mine = tmp_path / "schemas" / "environment.schema.json"
    mine.write_text('{"title": "mine"}', encoding="utf-8")
    model = tmp_path / "schemas" / "model.schema.json"
    model.unlink()

    answer = modelyard("schema", "--write", str(tmp_path / "schemas"))

    assert answer.code == 1
    assert f"nothing was written: {mine} was not written by modelyard" in answer.err
    assert mine.read_text(encoding="utf-8") == '{"title": "mine"}'
    assert not model.exists()


@pytest.mark.parametrize("schema", [MODEL_SCHEMA, ENVIRONMENT_SCHEMA], ids=["model", "environment"])
def test_the_schema_is_a_schema(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_model_file_is_accepted(path: Path) -> None:
    assert rejected(MODEL_SCHEMA, yaml_data(path)) == set()


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_every_environment_file_is_accepted(path: Path) -> None:
    assert rejected(ENVIRONMENT_SCHEMA, yaml_data(path)) == set()


MODEL: dict[str, Any] = {"model": "hf://Qwen/Qwen3-8B", "accelerator": "l40s", "replicas": 2}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"descripton": "x"}, "$"),
        ({"replicas": "two"}, "$.replicas"),
        ({"drain": "1 minute"}, "$.drain"),
        ({"startup": {"budget": "soon"}}, "$.startup.budget"),
        ({"engine": {"gpuMemoryUtilization": 0.99}}, "$.engine"),
        ({"adapters": [{"name": "legal"}]}, "$.adapters[0]"),
        ({"account": "123456789012"}, "$"),
    ],
)
def test_a_planted_mistake_in_a_model_is_marked(change: dict[str, Any], path: str) -> None:
    assert path in rejected(MODEL_SCHEMA, MODEL | change)


@pytest.mark.parametrize(
    "change",
    [{"drain": 90}, {"drain": "90s"}, {"startup": {"budget": "auto"}}, {"replicas": {"min": 1, "max": 2}}],
)
def test_every_spelling_of_a_value_is_accepted(change: dict[str, Any]) -> None:
    assert rejected(MODEL_SCHEMA, MODEL | change) == set()


def definitions_in(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Objects that a value of `schema` may be, `$ref`s followed through unions and lists."""
    options = [schema, *schema.get("anyOf", [])]
    named = [DEFINITIONS[ref.rpartition("/")[2]] for option in options if (ref := option.get("$ref"))]
    listed = [found for option in options if "items" in option for found in definitions_in(option["items"])]
    return [*(option for option in options if "properties" in option), *named, *listed]


def all_keys(schema: dict[str, Any], here: str = "") -> set[str]:
    """Paths of every key that `schema` knows; those below maps are the map's."""
    found = {f"{here}.{key}": inner for d in definitions_in(schema) for key, inner in d["properties"].items()}
    return set(found).union(*(all_keys(inner, path) for path, inner in found.items()))


def keys_in(schema: dict[str, Any], data: Any, here: str = "") -> set[str]:
    """Paths of the keys of `schema` that `data` has."""
    items = data if isinstance(data, list) else [data]
    found: set[str] = set()
    for item in items:
        for definition in definitions_in(schema) if isinstance(item, dict) else []:
            for key, inner in definition["properties"].items():
                if key in item:
                    found |= {f"{here}.{key}"} | keys_in(inner, item[key], f"{here}.{key}")
    return found


DEFINITIONS = MODEL_SCHEMA["$defs"] | ENVIRONMENT_SCHEMA["$defs"]


@pytest.mark.parametrize(
    ("schema", "files"),
    [(MODEL_SCHEMA, MODELS), (ENVIRONMENT_SCHEMA, ENVIRONMENTS)],
    ids=["model", "environment"],
)
def test_every_key_is_in_a_fixture(schema: dict[str, Any], files: list[Path]) -> None:
    """So that what is rendered from them has met every option."""
    written = set().union(*(keys_in(schema, yaml_data(path)) for path in files))

    assert all_keys(schema) - written == set()


def test_required_keys_are_required_and_the_name_is_not() -> None:
    assert set(MODEL_SCHEMA["required"]) == {"model", "accelerator", "replicas"}
    assert set(ENVIRONMENT_SCHEMA["required"]) == {"account", "region", "availabilityZones"}


def test_an_environment_cannot_override_an_engine() -> None:
    data = yaml_data(ROOT / "environments" / "prod.yaml") | {"overrides": {"qwen": {"engine": {}}}}

    assert rejected(ENVIRONMENT_SCHEMA, data) == {"$.overrides.qwen"}


def test_a_schema_for_one_environment_offers_its_pools_and_secrets() -> None:
    environment, _, _ = load_environment(ROOT / "environments" / "prod.yaml")
    schema = model_schema(environment)

    assert rejected(schema, MODEL | {"pool": "g6e", "access": {"apiKey": "hf-token"}}) == set()
    assert rejected(schema, MODEL | {"pool": "g7", "access": {"apiKey": "nope"}}) == {
        "$.pool",
        "$.access.apiKey",
    }
