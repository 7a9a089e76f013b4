"""`model.config`: the config.json of a checkpoint that is in no table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelyard.checkpoints import architectures
from modelyard.findings import Finding
from modelyard.memory.loaded_model import known_architecture
from modelyard.spec.loading import load_model

FILE = "model: {uri: efs://acme/assistant, config: acme.json}\naccelerator: l40s\nreplicas: 2\n"


def written(folder: Path, config: str | None) -> Path:
    path = folder / "assistant.yaml"
    path.write_text(FILE)
    if config is not None:
        (folder / "acme.json").write_text(config)
    return path


def test_a_config_beside_the_model_file_is_enough(tmp_path: Path) -> None:
    config = architectures().config("Qwen/Qwen3-14B")
    model, _, findings = load_model(written(tmp_path, json.dumps(config)))

    assert not findings
    assert model is not None
    arch = known_architecture(model)
    assert not isinstance(arch, Finding)
    assert (arch.layers, arch.hidden, arch.model_id) == (40, 5120, "acme/assistant")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, "No such file"),
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_config_that_cannot_be_read_is_named_with_its_place(
    tmp_path: Path, config: str | None, words: str
) -> None:
    _, _, findings = load_model(written(tmp_path, config))

    assert [finding.code for finding in findings] == ["SPEC003"]
    assert "acme.json" in findings[0].message
    assert words in findings[0].message
    assert findings[0].location is not None
    assert (findings[0].location.line, findings[0].location.column) == (1, 44)


def test_a_config_without_a_size_names_the_field(tmp_path: Path) -> None:
    config = {k: v for k, v in architectures().config("Qwen/Qwen3-14B").items() if k != "num_hidden_layers"}
    model, _, _ = load_model(written(tmp_path, json.dumps(config)))

    assert model is not None
    found = known_architecture(model)
    assert isinstance(found, Finding)
    assert found.code == "MODEL002"
    assert "num_hidden_layers" in found.message


def test_two_sources_of_facts_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "{}")
    path.write_text(FILE.replace("config: acme.json", "config: acme.json, architecture: Qwen/Qwen3-8B"))
    _, _, findings = load_model(path)

    assert any("one of architecture and config" in finding.message for finding in findings)
