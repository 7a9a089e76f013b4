"""The commands before the first deploy, run in a fresh checkout as CodeBuild and GitHub run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from infra import promotion
from tests.promotion.checkout import check_out
from tests.promotion.workflow import commands, jobs

pytestmark = pytest.mark.story

# Less of the same commands. Everything is what this suite, `make check` and `make controls` run by
# themselves; running it once more inside of itself would prove nothing.
SHORT = {
    "TESTS": "tests/unit/test_findings.py",
    "TYPES": "constructs/modelyard/findings",
    "APPS": "local",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Git would check out, with what `make install` has made of the same pins."""
    return check_out(tmp_path_factory.mktemp("made") / "checkout")


def test_a_checkout_is_not_a_git_repository(checkout: Path) -> None:
    assert not (checkout / ".git").exists()
    assert (checkout / ".github" / "workflows" / "deploy.yml").exists()
    assert not list((checkout).rglob("cdk.out"))


def test_the_linter_leaves_alone_what_the_commands_make(checkout: Path) -> None:
    for made in ("cdk.out/asset.1/index.py", ".venv-scanners-real/lib/module.py"):
        (checkout / made).parent.mkdir(parents=True)
        (checkout / made).write_text("import os,sys\n")
    try:
        result = run(".venv/bin/ruff check -q .", checkout)
    finally:
        shutil.rmtree(checkout / "cdk.out")
        shutil.rmtree(checkout / ".venv-scanners-real")

    assert result.returncode == 0, result.stdout


def run(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """As a runner does: bash that stops at the first error, no credentials, no colours."""
    inherited = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("AWS_", "CDK_", "PYTEST_", "JSII_", "MAKE", "MODELYARD_"))
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env={**inherited, "CI": "true", "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def every_command() -> set[str]:
    return {command for job in jobs() for command in commands(job)}


def test_these_tests_and_those_of_the_embedded_aws_run_every_command() -> None:
    """Deploy and smoke are run for dev by tests/e2e/test_promotion_commands.py; other environments are an
    argument."""
    run_here = {*promotion.CHECKS, promotion.SYNTH}
    run_there = {
        command(name)
        for name in ("dev", "staging", "prod")
        for command in (promotion.deploy, promotion.smoke)
    }

    assert every_command() == run_here | run_there


@pytest.mark.parametrize("command", [*promotion.CHECKS, promotion.SYNTH])
def test_the_command_passes_in_a_fresh_checkout(command: str, checkout: Path) -> None:
    result = run(command, checkout, **SHORT)

    assert result.returncode == 0, result.stdout + result.stderr
    if command == promotion.SYNTH:
        assert (checkout / "cdk.out" / "Pipeline.template.json").exists()
        assert (checkout / "dist" / "prod" / "kustomization.yaml").exists()


def test_a_change_that_breaks_a_test_stops_there(checkout: Path) -> None:
    planted = checkout / "tests" / "unit" / "test_planted.py"
    planted.write_text("def test_that_it_is_noticed() -> None:\n    assert False\n")
    try:
        result = run(promotion.CHECKS[0], checkout, TESTS=str(planted))
    finally:
        planted.unlink()

    assert result.returncode != 0
    assert "1 failed" in result.stdout


def test_a_change_that_opens_the_cluster_stops_at_the_controls_and_at_the_synthesis(checkout: Path) -> None:
    source = checkout / "constructs" / "modelyard" / "aws" / "cluster.py"
    text = source.read_text(encoding="utf-8")
    assert "else eks.EndpointAccess.PRIVATE" in text
    source.write_text(
        text.replace("else eks.EndpointAccess.PRIVATE", "else eks.EndpointAccess.PUBLIC_AND_PRIVATE")
    )
    # The installed library is this checkout's; the copy has to come first.
    path = f"{checkout / 'constructs'}{os.pathsep}{checkout}"
    try:
        controls = run(f".venv/bin/python -m infra.controls {SHORT['APPS']}", checkout, PYTHONPATH=path)
        synth = run(
            ".venv/bin/cdk synth -q -c pipeline=true -c controls=true",
            checkout,
            PYTHONPATH=path,
            PATH=f"{checkout / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        )
    finally:
        source.write_text(text)

    assert controls.returncode == 1, controls.stdout + controls.stderr
    assert "template-rules: eks-endpoint-open at Cluster/Cluster/Cluster/Resource" in controls.stdout
    assert "4 findings open" not in controls.stdout
    assert synth.returncode != 0
    assert "modelyard::eks-endpoint-open" in synth.stdout + synth.stderr


def synth_pipeline(checkout: Path) -> subprocess.CompletedProcess[str]:
    path = f"{checkout / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return run("cdk synth -q --no-notices -c pipeline=true --output planted.out", checkout, PATH=path)


def test_a_mistake_in_the_pipelines_file_is_a_finding_and_nothing_is_synthesised(checkout: Path) -> None:
    file = checkout / "pipeline.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("  - staging\n", "  - stagign\n").replace("branch:", "brunch:"))
    try:
        unknown_key = synth_pipeline(checkout)
        file.write_text(text.replace("  - staging\n", "  - stagign\n"))
        unknown_stage = synth_pipeline(checkout)
    finally:
        file.write_text(text)

    assert unknown_key.returncode != 0
    assert "pipeline.yaml:3:1 SPEC001" in unknown_key.stderr
    assert "did you mean 'branch'?" in unknown_key.stderr
    assert unknown_stage.returncode != 0
    assert "no environment 'stagign'" in unknown_stage.stderr
    assert not (checkout / "planted.out" / "Pipeline.template.json").exists()


def test_a_model_that_does_not_fit_in_one_environment_stops_all_of_them(checkout: Path) -> None:
    model = checkout / "models" / "planted.yaml"
    model.write_text("model: hf://Qwen/Qwen3-32B\naccelerator: l40s\nreplicas: 1\n", encoding="utf-8")
    try:
        result = synth_pipeline(checkout)
    finally:
        model.unlink()

    assert result.returncode != 0
    assert "prod: nothing was synthesised" in result.stderr
    assert not (checkout / "planted.out" / "Pipeline.template.json").exists()
