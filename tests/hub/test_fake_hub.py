"""The Hub of these tests answers huggingface_hub's own functions as the real one does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import HfApi, errors, snapshot_download

from modelyard.checkpoints import architectures
from modelyard.checkpoints.tensors import fold
from tests.hub.checkpoint_tensors import tensors_of
from tests.hub.fake_hub import TOKEN, FakeHub, Repository, checkpoint_files
from tests.hub.repositories import COMMIT, LATER, SMALL, small
from tests.unit.given import Modelyard


@pytest.mark.parametrize("shards", [1, 3])
def test_huggingface_hub_reads_the_same_tensors_as_we_record(
    the_hub: FakeHub, modelyard: Modelyard, shards: int
) -> None:
    files = checkpoint_files(architectures().config(SMALL), tensors_of(architectures()[SMALL]), shards)
    the_hub.repositories["acme/small"] = Repository(files)
    modelyard("model", "add", "hf://acme/small")

    found = HfApi(endpoint=the_hub.address).get_safetensors_metadata("acme/small")

    theirs = {
        name: (tensor.dtype, tuple(tensor.shape))
        for file in found.files_metadata.values()
        for name, tensor in file.tensors.items()
    }
    record = json.loads(Path("models/checkpoints/acme--small.json").read_text(encoding="utf-8"))
    assert record["tensors"] == {each.name: [each.kind, list(each.shape)] for each in fold(theirs)}


def test_it_hands_out_snapshots_at_a_revision(the_hub: FakeHub, tmp_path: Path) -> None:
    the_hub.repositories["acme/small"] = small(refs={"main": COMMIT, "refs/pr/1": LATER})

    folder = snapshot_download(
        "acme/small", revision="refs/pr/1", allow_patterns=["*.json"], endpoint=the_hub.address
    )

    assert Path(folder).name == LATER
    assert json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))["vocab_size"] == 151936


def test_it_refuses_in_the_terms_of_the_real_one(the_hub: FakeHub) -> None:
    the_hub.repositories["acme/gated"] = small(gated=True)
    anonymous, known = (HfApi(endpoint=the_hub.address, token=token) for token in (False, TOKEN))

    with pytest.raises(errors.RepositoryNotFoundError):
        anonymous.model_info("acme/nowhere")
    with pytest.raises(errors.RevisionNotFoundError):
        anonymous.model_info("acme/gated", revision="v9")
    with pytest.raises(errors.GatedRepoError):
        anonymous.hf_hub_download("acme/gated", "config.json")
    with pytest.raises(errors.EntryNotFoundError):
        known.hf_hub_download("acme/gated", "nothing.json")
    assert known.model_info("acme/gated").gated == "manual"


def test_a_pull_request_can_be_recorded(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small(refs={"main": COMMIT, "refs/pr/1": LATER})

    answer = modelyard("model", "add", "hf://acme/small", "--revision", "refs/pr/1", "-o", "json")

    assert json.loads(answer.out)["revision"] == LATER
