"""Open a project: from its files (models, environments, prices, charts) to plans and objects.

Used by the command line, `app.py` and users of the library.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from modelyard.findings import Finding, Location
from modelyard.hardware.prices import Prices, prices_path, read_prices
from modelyard.planning import Plan, plan
from modelyard.reading import PRICES, read_file, suggestion
from modelyard.secret_values import shown
from modelyard.spec import Catalogue, Environment, load_catalogue, load_environment
from modelyard.spec.folders import environment_files
from modelyard.spec.yaml_source import YamlSource

MODELS = Path("models")
ENVIRONMENTS = Path("environments")


@dataclass(frozen=True)
class Project:
    """A catalogue with an environment, or with the findings that say why there is none."""

    catalogue: Catalogue
    environment: Environment | None
    findings: tuple[Finding, ...]
    source: YamlSource | None = None
    prices: Prices | None = None
    """Prices of the environment's region; None: the shipped ones."""

    def plan(self) -> Plan | None:
        """The plan; None if the environment cannot be read."""
        if self.environment is None:
            return None
        return plan(self.catalogue, self.environment, self.findings, self.source, self.prices)

    def located(self, findings: Iterable[Finding]) -> list[Finding]:
        """`findings` with their locations in the model files or in the environment's."""
        here = f"environment {self.environment.name}" if self.environment and self.source else ""
        return [
            f.at(self.source.locate(f.field))
            if self.source and here == f.subject
            else f.at(self.catalogue.locate(f.subject, f.field))
            for f in findings
        ]


def load_project(
    environment: str = "local", models: Path = MODELS, environments: Path = ENVIRONMENTS
) -> Project:
    """Read `environment` and all models; problems become findings."""
    return open_environment(*load_catalogue(models), environments, environment)


def open_environment(
    catalogue: Catalogue, findings: Iterable[Finding], environments: Path, name: str
) -> Project:
    """Open environment `name` with models that are already loaded, and their `findings`."""
    path = environment_path(environments, name)
    if isinstance(path, Finding):
        return Project(catalogue, None, (*findings, path))
    environment, source, problems = load_environment(path)
    if environment is None:
        return Project(catalogue, None, (*findings, *problems), source)
    prices = region_prices(environments, environment.region)
    if isinstance(prices, Finding):
        return Project(catalogue, None, (*findings, *problems, prices), source)
    return Project(catalogue, environment, (*findings, *problems), source, prices)


def environment_path(folder: Path, name: str) -> Path | Finding:
    """The file of environment `name`, or a finding that lists the existing environments."""
    files = environment_files(folder)
    found = files.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        both = " and ".join(path.name for path in found)
        return Finding(
            "SPEC004",
            f"environment '{name}' stands in {both}",
            "delete or rename one of them",
            Location(str(found[0])),
        )
    return Finding(
        "ENV002",
        f"no environment {shown(name)}",
        suggestion(name, files) + f"use one of {', '.join(sorted(files))}"
        if files
        else f"create {folder / f'{name}.yaml'}",
        Location(str(folder)),
    )


def region_prices(environments: Path, region: str) -> Prices | Finding:
    """The prices of `region`: from the file beside the environments, else the shipped ones."""
    path = prices_path(environments, region)
    if not path.exists():
        return Prices(region)
    text = read_file(path, PRICES)
    if isinstance(text, Finding):
        return text
    try:
        return Prices(region, read_prices(text, region))
    except ValueError as problem:
        return Finding(
            "SPEC003",
            f"no prices of {region} can be read: {problem}",
            f"write it anew: modelyard catalog refresh --region {region}; or delete it, and the shipped prices count",
            Location(str(path)),
        )
