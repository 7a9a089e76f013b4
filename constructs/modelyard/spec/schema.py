"""JSON Schemas of the file formats, from the classes that read them."""

from __future__ import annotations

from typing import Any

from modelyard.spec.document import Document
from modelyard.spec.environment import Environment
from modelyard.spec.model import Model
from modelyard.spec.pipeline import Pipeline
from modelyard.spec.settings import ProjectSettings

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def model_schema(environment: Environment | None = None) -> dict[str, Any]:
    """Schema of `models/*.yaml`; with `environment`, only its pools and secrets are allowed."""
    schema = _schema(Model, "A served model")
    if environment:
        schema["properties"]["pool"] = {**schema["properties"]["pool"], "enum": [*environment.pools, None]}
        for definition, field in (("Weights", "auth"), ("Access", "apiKey")):
            properties = schema["$defs"][definition]["properties"]
            properties[field] = {**properties[field], "enum": [*environment.secrets, None]}
    return schema


def environment_schema() -> dict[str, Any]:
    """Schema of `environments/*.yaml`."""
    return _schema(Environment, "An environment")


def pipeline_schema() -> dict[str, Any]:
    """Schema of `pipeline.yaml`."""
    return _schema(Pipeline, "A pipeline")


def project_schema() -> dict[str, Any]:
    """Schema of `modelyard.yaml`."""
    return _schema(ProjectSettings, "Settings of a project")


def _schema(document: type[Document], title: str) -> dict[str, Any]:
    schema: dict[str, Any] = _on_one_line(document.model_json_schema(by_alias=True, mode="validation"))
    # The default name is the file name.
    schema["required"] = [name for name in schema.get("required", ()) if name != "name"]
    return {"$schema": _DRAFT, **schema, "title": title}


def _on_one_line(schema: Any) -> Any:
    """Descriptions on one line: editors wrap them."""
    if isinstance(schema, list):
        return [_on_one_line(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: " ".join(value.split())
        if name == "description" and isinstance(value, str)
        else _on_one_line(value)
        for name, value in schema.items()
    }
