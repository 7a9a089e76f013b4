"""`modelyard model add` of a folder and of a bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto import mock_aws

from modelyard.checkpoints import Architecture
from modelyard.memory.loaded_model import draft_architecture
from modelyard.spec import load_catalogue
from tests.hub.fake_hub import FakeHub, Sparse, checkpoint_files
from tests.unit.given import Modelyard


def tiny_files(shards: int = 1) -> dict[str, Sparse]:
    """A model of two layers, small enough to be stored whole."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 512,
        "max_position_embeddings": 2048,
    }
    shapes = {
        "self_attn.q_proj": (64, 64),
        "self_attn.k_proj": (64, 64),
        "self_attn.v_proj": (64, 64),
        "self_attn.o_proj": (64, 64),
        "mlp.gate_proj": (128, 64),
        "mlp.up_proj": (128, 64),
        "mlp.down_proj": (64, 128),
        "input_layernorm": (64,),
        "post_attention_layernorm": (64,),
    }
    tensors = {
        "model.embed_tokens.weight": ("BF16", (512, 64)),
        "lm_head.weight": ("BF16", (512, 64)),
        "model.norm.weight": ("BF16", (64,)),
        **{
            f"model.layers.{n}.{name}.weight": ("BF16", shape)
            for n in (0, 1)
            for name, shape in shapes.items()
        },
    }
    return checkpoint_files(config, tensors, shards)


def whole(file: Sparse) -> bytes:
    return file.part(0, file.size)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """moto's S3 with the bucket acme-weights; no socket is opened."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="acme-weights")
        yield client


@pytest.mark.parametrize("shards", [1, 2])
def test_a_folder_is_recorded_under_the_uri_of_its_weights(
    modelyard: Modelyard, tmp_path: Path, shards: int
) -> None:
    (tmp_path / "chat").mkdir()
    for name, file in tiny_files(shards).items():
        (tmp_path / "chat" / name).write_bytes(whole(file))

    answer = modelyard("model", "add", "./chat", "--uri", "efs://chat-7b", "--accelerator", "l40s")

    assert answer.code == 0, answer.err
    record = json.loads(Path("models/checkpoints/efs--chat-7b.json").read_text(encoding="utf-8"))
    assert (record["uri"], "revision" in record) == ("efs://chat-7b", False)
    assert record["tensors"]["model.layers.{0..1}.mlp.up_proj.weight"] == ["BF16", [128, 64]]
    validated = modelyard("validate")
    assert validated.code == 0, validated.err


def test_a_folder_from_the_hub_keeps_its_commit(modelyard: Modelyard, tmp_path: Path) -> None:
    (tmp_path / "chat").mkdir()
    for name, file in tiny_files().items():
        (tmp_path / "chat" / name).write_bytes(whole(file))
    commit = "a" * 40

    answer = modelyard("model", "add", "chat", "--uri", "hf://acme/chat", "--revision", commit)

    assert answer.code == 0, answer.err
    record = json.loads(Path("models/checkpoints/acme--chat.json").read_text(encoding="utf-8"))
    assert record["revision"] == commit


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["./nowhere", "--uri", "efs://x"], "there is no folder './nowhere'"),
        (["acme/chat"], "hf://acme/chat is the one on the Hub"),
        (["."], "a folder needs --uri"),
        ([".", "--uri", "ftp://x"], "ftp://x"),
        (["efs://chat"], "give the folder, and --uri efs://chat"),
        (["gs://chat"], "is none of hf://ORG/NAME, s3://BUCKET/PREFIX and a folder"),
        ([".", "--uri", "efs://x", "--revision", "main"], "--revision goes with hf://"),
        ([".", "--uri", "hf://a/b", "--revision", "main"], "the 40-digit commit that it holds"),
        (["hf://acme"], "hf://acme"),
    ],
)
def test_a_source_that_cannot_be_is_refused_with_what_can(
    modelyard: Modelyard, words: list[str], said: str
) -> None:
    answer = modelyard("model", "add", *words)

    assert answer.code == 64
    assert said in answer.err


@pytest.mark.parametrize("shards", [1, 2])
def test_a_bucket_is_recorded_by_its_headers(modelyard: Modelyard, bucket: Any, shards: int) -> None:
    for name, file in tiny_files(shards).items():
        bucket.put_object(Bucket="acme-weights", Key=f"chat/7b/{name}", Body=whole(file))

    answer = modelyard("model", "add", "s3://acme-weights/chat/7b", "--name", "chat", "-o", "json")

    assert answer.code == 0, answer.err
    said = json.loads(answer.out)
    assert said["record"] == "models/checkpoints/s3--acme-weights--chat--7b.json"
    assert said["weightsBytes"] == sum(
        file.size - 8 - int.from_bytes(file.head[:8], "little")
        for name, file in tiny_files(shards).items()
        if name.endswith(".safetensors")
    )


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("s3://acme-weights/nothing", "s3://acme-weights/nothing is empty"),
        (
            "s3://acme-nowhere/chat",
            "s3://acme-nowhere/chat cannot be listed: s3:ListObjectsV2 answered NoSuchBucket",
        ),
    ],
)
def test_a_bucket_without_the_checkpoint_is_a_sentence(
    modelyard: Modelyard, bucket: Any, uri: str, words: str
) -> None:
    answer = modelyard("model", "add", uri)

    assert (answer.code, answer.out) == (1, "")
    assert words in answer.err


def test_a_record_that_somebody_broke_is_named_and_written_anew(
    the_hub: FakeHub, modelyard: Modelyard, tmp_path: Path
) -> None:
    (tmp_path / "chat").mkdir()
    for name, file in tiny_files().items():
        (tmp_path / "chat" / name).write_bytes(whole(file))
    add = ("model", "add", "chat", "--uri", "efs://chat", "--accelerator", "l40s")
    modelyard(*add)
    path = Path("models/checkpoints/efs--chat.json")
    right = path.read_text(encoding="utf-8")

    for wrong, words in (
        ("{", "YAML001 error: the record is not JSON"),
        ("[]", "YAML001 error: the record is not a JSON object"),
        (
            right.replace('"BF16"', '"BF15"'),
            "SPEC003 error: tensors: must be tensors as `modelyard model add` writes",
        ),
        (right.replace("{0..1}", "{1..0}"), "indices that do not ascend"),
        (right.replace('"gated": false', '"gatet": false'), "SPEC001 error: unknown key 'gatet'"),
        (
            right.replace("efs://chat", "efs://other"),
            "SPEC003 error: uri: the file is the record of efs://other",
        ),
    ):
        path.write_text(wrong, encoding="utf-8")
        said = modelyard("validate").err
        assert f"{path}:" in said
        assert words in said, said

    assert modelyard(*add).code == 0
    assert path.read_text(encoding="utf-8") == right


def test_a_yaml_file_among_the_records_is_a_finding_and_no_teams(modelyard: Modelyard) -> None:
    Path("models/checkpoints").mkdir(parents=True)
    text = "model: hf://Qwen/Qwen3-8B\naccelerator: l40s\nreplicas: 2\n"
    Path("models/chat.yaml").write_text(text, encoding="utf-8")
    Path("models/checkpoints/lost.yaml").write_text(text, encoding="utf-8")

    answer = modelyard("validate")

    assert "models/checkpoints/lost.yaml:1:1 SPEC005 error: nobody reads a model file here" in answer.err
    assert "1 model in lab" in answer.out


def test_a_teams_record_comes_before_the_one_that_all_share(modelyard: Modelyard, tmp_path: Path) -> None:
    (tmp_path / "chat").mkdir()
    for name, file in tiny_files().items():
        (tmp_path / "chat" / name).write_bytes(whole(file))
    add = ("model", "add", "chat", "--uri", "hf://acme/chat", "--revision")
    modelyard(*add, "a" * 40)
    Path("models/search").mkdir()
    text = "model: hf://acme/chat\naccelerator: l40s\nreplicas: 2\n"
    Path("models/search/chat.yaml").write_text(text, encoding="utf-8")

    shared, _ = load_catalogue(Path("models"))
    modelyard(*add, "b" * 40, "--models", "models/search")
    own, findings = load_catalogue(Path("models"))

    assert shared.models["chat"].model.revision == "a" * 40
    assert own.models["chat"].model.revision == "b" * 40
    assert findings == []


def test_draft_models_and_adapters_are_pinned_by_their_records(modelyard: Modelyard, tmp_path: Path) -> None:
    (tmp_path / "chat").mkdir()
    for name, file in tiny_files().items():
        (tmp_path / "chat" / name).write_bytes(whole(file))
    for number, name in enumerate(("draft", "tone")):
        uri, commit = f"hf://acme/{name}", str(number) * 40
        assert modelyard("model", "add", "chat", "--uri", uri, "--revision", commit).code == 0
    Path("models/chat.yaml").write_text(
        "model: hf://Qwen/Qwen3-8B\naccelerator: l40s\nreplicas: 2\n"
        "adapters: [{name: tone, uri: 'hf://acme/tone'}]\n"
        "speculativeDecoding: {method: draft, model: 'hf://acme/draft'}\n",
        encoding="utf-8",
    )

    catalogue, _ = load_catalogue(Path("models"))

    model = catalogue.models["chat"]
    assert [part.revision for part in model.downloaded] == ["main", "0" * 40, "1" * 40]
    draft = draft_architecture(model)
    assert isinstance(draft, Architecture)
    assert draft.stored is not None
