"""A healthy account, an environment for it, and the command run in this process. No socket is opened."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto import mock_aws

from modelyard.cli.main import main
from tests.account.fake_account import ACCOUNT, FakeAccount, healthy
from tests.unit.given import Answer

REGION = "ap-northeast-1"
"""Where moto's snapshot of EC2 has p5.48xlarge in zones a and c, and not in d."""

Given = dict[str, Any]


@dataclass(frozen=True)
class Project:
    """A folder with models and environments, and the command run in it."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def environment(self, **changes: Any) -> None:
        """Write `environments/lab.yaml`, with `changes` over the one that is right."""
        lines = {
            "account": ACCOUNT,
            "region": REGION,
            "availabilityZones": [f"{REGION}a", f"{REGION}c"],
            "pools": {"p5": {"accelerator": "h100", "instanceTypes": ["p5.48xlarge"], "limit": 16}},
            "secrets": {"hf-token": "lab/hf-token", "clients": "lab/clients"},
        }
        path = self.folder / "environments" / "lab.yaml"
        path.write_text(json.dumps(lines | changes), encoding="utf-8")  # JSON is YAML

    def model(self, **changes: Any) -> None:
        lines = {"model": "hf://Qwen/Qwen3-32B-FP8", "accelerator": "h100", "replicas": 1}
        (self.folder / "models" / "qwen.yaml").write_text(json.dumps(lines | changes), encoding="utf-8")

    def run(self, *args: str) -> Answer:
        self.monkeypatch.setattr(sys, "argv", ["modelyard", *args])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = self.capsys.readouterr()
        return Answer(stop.value.code, captured.out, captured.err)

    def doctor(self) -> dict[str, Any]:
        """The document of `modelyard doctor`."""
        document: dict[str, Any] = json.loads(self.run("doctor", "--env", "lab", "--output", "json").out)
        return document

    def results(self, check: str) -> dict[str, dict[str, Any]]:
        """What one check says, by subject."""
        return {each["subject"]: each for each in self.doctor()["results"] if each["check"] == check}


@pytest.fixture(autouse=True)
def _no_network(socket_disabled: None) -> None:
    """moto answers before a socket is opened; pytest-socket turns every other into an error."""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAccount]:
    """The account that boto3 meets. Everything in it is as it should be."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv(
        "MOTO_EC2_LOAD_DEFAULT_AMIS", "false"
    )  # hundreds of them for each test, and nobody asks
    with mock_aws():
        account = FakeAccount()
        healthy(account, REGION)
        monkeypatch.setattr(boto3, "Session", account.session)
        yield account


@pytest.fixture
def project(
    fake: FakeAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    """An environment that the account is right for: both secrets hold a value."""
    for name in ("models", "environments"):
        (tmp_path / name).mkdir()
    for name in ("MODELYARD_CRDS", "MODELYARD_ENV", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    made = Project(tmp_path, capsys, monkeypatch)
    made.environment()
    made.model()
    client = fake.session(region_name=REGION).client("secretsmanager")
    for secret in ("lab/hf-token", "lab/clients"):
        client.create_secret(Name=secret, SecretString="planted-value-1")
    fake.asked.clear()
    return made
