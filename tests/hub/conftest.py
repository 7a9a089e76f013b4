"""A project without models, and a Hub in this process that huggingface_hub asks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from modelyard.cli.main import main
from tests.hub.fake_hub import FakeHub, hub
from tests.unit.given import Answer, Modelyard

ENVIRONMENT = """
account: "123456789012"
region: us-east-2
availabilityZones: [us-east-2a, us-east-2b]
pools:
  h100: {accelerator: h100, limit: 64}
  l40s: {accelerator: l40s, limit: 64}
secrets: {hf-token: lab/hf-token}
"""


@pytest.fixture(scope="package")
def served() -> Iterator[FakeHub]:
    with hub() as fake:
        yield fake


@pytest.fixture
def the_hub(served: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    served.repositories.clear()
    served.asked.clear()
    served.failing, served.ignores_ranges = 0, False
    monkeypatch.setattr(constants, "ENDPOINT", served.address)
    # The template is made of the endpoint when huggingface_hub is imported.
    monkeypatch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        f"{served.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "MODELYARD_ENV", "MODELYARD_CRDS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    return served


@pytest.fixture
def modelyard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Modelyard:
    """The command in this process, in an empty project with an environment `lab`."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "lab.yaml").write_text(ENVIRONMENT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["modelyard", *args])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Answer(stop.value.code, captured.out, captured.err)

    return run
