"""The GitHub workflow as data."""

from __future__ import annotations

from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.promotion.conftest import ROOT

FILE = ROOT / ".github" / "workflows" / "deploy.yml"


def workflow() -> dict[str, Any]:
    # YAML 1.1 reads `on` as true.
    loaded: dict[Any, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {str(key): value for key, value in loaded.items()}


def jobs() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = workflow()["jobs"]
    return found


def commands(job: str) -> list[str]:
    return [step["run"] for step in jobs()[job]["steps"] if "run" in step]
