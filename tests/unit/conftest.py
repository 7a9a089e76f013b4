"""Rules for every unit test: no socket is opened, and jsii is never loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelyard.cli.main import main
from tests.unit.given import Answer, Modelyard

_HERE = Path(__file__).parent
_IMPURE = {"aws_cdk", "cdk8s", "constructs", "jsii"}


@pytest.fixture(autouse=True)
def _no_network(socket_disabled: None) -> None:
    """pytest-socket turns every socket into an error."""


@pytest.fixture(autouse=True, scope="session")
def _no_jsii(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judged where unit tests run by themselves; other folders load jsii into the same process."""
    yield
    alone = all(item.path.is_relative_to(_HERE) for item in request.session.items)
    assert not (alone and _IMPURE & set(sys.modules)), (
        "a unit test imported jsii: it belongs into tests/synth"
    )


@pytest.fixture
def root() -> Path:
    """The repository."""
    return _HERE.parents[1]


@pytest.fixture
def modelyard(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Modelyard:
    """The command in this process, in the root of the repository."""
    for name in ("FORCE_COLOR", "MODELYARD_CRDS", "MODELYARD_ENV", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(root)

    def run(*args: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["modelyard", *args])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Answer(stop.value.code, captured.out, captured.err)

    return run
