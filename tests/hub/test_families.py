"""`modelyard model add` for a model of every architecture family."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modelyard.checkpoints import Architecture, architectures
from modelyard.memory.loaded_model import known_architecture
from modelyard.memory.weights import checkpoint_size, weights_per_accelerator
from modelyard.spec import load_model
from modelyard.spec.checkpoint_files import read_record
from tests.hub.checkpoint_tensors import tensors_of
from tests.hub.fake_hub import FakeHub, Repository, checkpoint_files
from tests.hub.repositories import COMMIT
from tests.unit.given import Modelyard


def one_of_each_family() -> list[str]:
    """The smallest bundled model of each class."""
    smallest: dict[str, str] = {}
    table = architectures()
    for name in table.repositories():
        kind = str(table.config(name)["architectures"][0])
        best = smallest.setdefault(kind, name)
        if checkpoint_size(table[name]) < checkpoint_size(table[best]):
            smallest[kind] = name
    return sorted(smallest.values())


@pytest.mark.parametrize("name", one_of_each_family())
def test_a_model_of_each_family_is_recorded_and_then_known_offline_to_the_byte(
    name: str, the_hub: FakeHub, modelyard: Modelyard, tmp_path: Path
) -> None:
    arch = architectures()[name]
    tensors = tensors_of(arch)
    the_hub.repositories["acme/model"] = Repository(
        checkpoint_files(architectures().config(name), tensors, shards=3)
    )

    added = modelyard("model", "add", "hf://acme/model", "--accelerator", "h100:8", "-o", "json")

    assert added.code == 0, added.err
    said = json.loads(added.out)
    assert said["recordIs"] == "new"
    record, _ = read_record(Path(said["record"]))
    assert record is not None
    stored = sum(each.bytes for each in record.tensor_list)
    assert said["weightsBytes"] == stored
    the_hub.failing = 500
    model, _, findings = load_model(tmp_path / "models" / "model.yaml")
    assert findings == []
    assert model is not None
    assert model.model.revision == COMMIT
    known = known_architecture(model)
    assert isinstance(known, Architecture)
    assert checkpoint_size(known).in_bytes == stored
    exact = weights_per_accelerator(known, drafts=True).in_bytes - arch.rope_bytes
    formula = weights_per_accelerator(arch, drafts=True).in_bytes - arch.rope_bytes
    assert exact == pytest.approx(formula, rel=0.001)
    validated = modelyard("validate", "-o", "json")
    codes = {finding["code"] for finding in json.loads(validated.out)["findings"]}
    assert not codes & {"MODEL001", "MODEL002", "MODEL003", "MODEL006", "YAML001", "SPEC003"}
