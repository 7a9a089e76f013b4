"""Options that the shipped environments do not use pass every checker too: tests/fixtures/platforms."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.controls.conftest import ROOT
from tests.controls.test_shipped_apps import errors_of_cfn_lint

if TYPE_CHECKING:
    from infra.controls.survey import Survey

pytestmark = pytest.mark.story

FIXTURES = ROOT / "tests" / "fixtures" / "platforms" / "environments"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.yaml"))


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Survey]:
    from infra.controls.survey import CHECKOV, assemble, survey

    root: Path = tmp_path_factory.mktemp("root")
    shutil.copytree(FIXTURES, root / "environments")
    for name in ("pipeline.yaml", "cdk.json"):
        shutil.copy(ROOT / name, root)
    apps = [assemble(root, name, root / "out" / name) for name in NAMES]
    surveys = survey(apps, checkov=ROOT / CHECKOV, workspace=root / "checkov")
    return {each.name: each for each in surveys}


@pytest.mark.parametrize("name", NAMES)
def test_no_finding_is_open(name: str, optional: dict[str, Survey]) -> None:
    assert [str(each) for each in optional[name].verdict.open] == []


@pytest.mark.parametrize("name", NAMES)
def test_cfn_lint_finds_no_error(name: str, optional: dict[str, Survey]) -> None:
    """Not even one that is accepted."""
    assert errors_of_cfn_lint(optional[name]) == []


def test_no_acknowledgement_of_an_option_is_stale(optional: dict[str, Survey]) -> None:
    from infra.controls.options import OPTIONS
    from infra.controls.survey import stale

    assert stale(optional.values(), OPTIONS) == []


def test_a_bucket_that_the_environment_does_not_name_is_not_covered(optional: dict[str, Survey]) -> None:
    from dataclasses import replace

    from infra.controls.acknowledgements import judge

    auto = optional["auto"]
    unnamed = judge(auto.violations, replace(auto.place, buckets=("another",))).open

    assert [each.rule for each in unnamed] == ["AwsSolutions-IAM5[Resource::arn:aws:s3:::acme-weights/*]"]
