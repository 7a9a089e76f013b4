"""`modelyard model add hf://…`: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from huggingface_hub import constants

from modelyard.checkpoints import architectures
from modelyard.checkpoints.tensor_types import tensor_bytes
from modelyard.spec import load_model
from tests.hub.checkpoint_tensors import tensors_of
from tests.hub.fake_hub import TOKEN, FakeHub, Repository, Sparse, checkpoint_files, text_file
from tests.hub.gguf_file import llama_file
from tests.hub.repositories import COMMIT, LATER, SMALL, small, small_files
from tests.unit.given import Modelyard

RECORD = Path("models/checkpoints/acme--small.json")


def test_the_record_is_pinned_folded_and_says_where_it_is_from(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small(
        card={"license": "apache-2.0", "base_model": ["Qwen/Qwen3-0.6B-Base"]}
    )

    answer = modelyard("model", "add", "hf://acme/small")

    assert answer.code == 0, answer.err
    assert f"wrote {RECORD}" in answer.out
    assert "0.60 billion parameters" in answer.out
    assert "apache-2.0" in answer.out
    assert "next: modelyard size hf://acme/small" in answer.out
    text = RECORD.read_text(encoding="utf-8")
    record = json.loads(text)
    assert record["revision"] == COMMIT
    assert record["ref"] == "main"
    assert record["baseModel"] == ["Qwen/Qwen3-0.6B-Base"]
    assert record["tensors"]["model.layers.{0..27}.self_attn.q_proj.weight"] == ["BF16", [2048, 1024]]
    assert '    "model.layers.{0..27}.self_attn.q_proj.weight": ["BF16", [2048, 1024]],\n' in text
    assert len(text) < 5_000
    assert not Path("models/small.yaml").exists()


def test_only_headers_are_downloaded(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small()

    modelyard("model", "add", "hf://acme/small")

    weights = [span for verb, path, span in the_hub.asked if verb == "GET" and path.endswith(".safetensors")]
    assert weights == ["bytes=0-131071"]


def test_a_server_that_ignores_ranges_sends_no_whole_file(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small(
        files={**small_files(), "model.safetensors": Sparse(struct.pack("<Q", 1 << 20) + b" " * 99, 2 << 20)}
    )
    the_hub.ignores_ranges = True

    answer = modelyard("model", "add", "hf://acme/small")

    assert answer.code == 1
    assert "the server ignores ranges" in answer.err


def test_a_name_or_an_accelerator_writes_three_lines_that_are_valid(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small()

    answer = modelyard("model", "add", "hf://acme/small", "--name", "chat", "--accelerator", "l40s")

    assert "wrote models/chat.yaml" in answer.out
    assert "next: modelyard explain chat --env ENV" in answer.out
    text = Path("models/chat.yaml").read_text(encoding="utf-8")
    assert text == "model: hf://acme/small\naccelerator: l40s\nreplicas: 2\n"
    assert modelyard("validate").code == 0


def test_a_model_file_that_is_there_is_left_alone(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small()
    Path("models").mkdir()
    Path("models/small.yml").write_text("mine\n", encoding="utf-8")

    answer = modelyard("model", "add", "hf://acme/small", "--accelerator", "l40s")

    assert "left alone, it was there: models/small.yml" in answer.out
    assert Path("models/small.yml").read_text(encoding="utf-8") == "mine\n"
    assert not Path("models/small.yaml").exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--accelerator", "l40"], "accelerator"),
        (["--name", "Chat Bot"], "name"),
        (["--uri", "efs://x"], "--uri goes with a folder"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_asked(
    the_hub: FakeHub, modelyard: Modelyard, option: list[str], words: str
) -> None:
    answer = modelyard("model", "add", "hf://acme/small", *option)

    assert answer.code == 64
    assert words in answer.err
    assert the_hub.asked == []
    assert not Path("models").exists()


def test_a_refresh_says_what_changed_and_one_without_changes_writes_nothing(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small()
    modelyard("model", "add", "hf://acme/small")
    before = RECORD.read_text(encoding="utf-8").replace(json.loads(RECORD.read_text())["date"], "2026-01-01")
    RECORD.write_text(before, encoding="utf-8")

    same = modelyard("model", "add", "hf://acme/small")

    assert f"{RECORD} is up to date" in same.out
    assert RECORD.read_text(encoding="utf-8") == before
    the_hub.repositories["acme/small"] = small(
        files=small_files(max_position_embeddings=65536), refs={"main": LATER}, card={"license": "mit"}
    )
    other = modelyard("model", "add", "hf://acme/small")
    assert f"revision: {COMMIT} -> {LATER}" in other.out
    assert "license: apache-2.0 -> mit" in other.out
    assert "config.max_position_embeddings: 40960 -> 65536" in other.out
    assert json.loads(RECORD.read_text(encoding="utf-8"))["date"] != "2026-01-01"


def test_a_revision_is_pinned_and_serves_models_that_state_none_or_its_name(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small(refs={"main": COMMIT, "v1": LATER})
    modelyard("model", "add", "hf://acme/small", "--revision", "v1", "--accelerator", "l40s")
    path = Path("models/small.yaml")

    for stated, served, codes in (
        ("", LATER, []),
        (", revision: v1", LATER, []),
        (f", revision: {LATER}", LATER, []),
        (", revision: main", "main", ["MODEL006"]),
    ):
        path.write_text(
            f"model: {{uri: 'hf://acme/small'{stated}}}\naccelerator: l40s\nreplicas: 2\n", encoding="utf-8"
        )
        model, _, findings = load_model(path)
        assert model is not None
        assert (model.model.revision, [finding.code for finding in findings]) == (served, codes)


def test_the_recorded_commit_is_what_the_download_job_fetches(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small()
    modelyard("model", "add", "hf://acme/small", "--accelerator", "l40s")

    assert modelyard("render", "--env", "lab", "--out", "dist").code == 0

    rendered = "".join(path.read_text(encoding="utf-8") for path in Path("dist").rglob("*.yaml"))
    assert f"hf/acme/small/{COMMIT}" in rendered
    assert "hf/acme/small/main" not in rendered


@pytest.mark.parametrize(
    ("token", "admits", "words"),
    [
        (None, True, "acme/small is gated: accept its licence on its page, and set HF_TOKEN"),
        (TOKEN, False, "acme/small is gated: the account of HF_TOKEN has to accept its licence"),
        ("hf_" + "b" * 34, True, "the Hub refuses the token for acme/small"),
    ],
    ids=["no token", "not admitted", "wrong token"],
)
def test_what_a_gate_refuses_ends_with_the_way_in_and_writes_nothing(
    the_hub: FakeHub,
    modelyard: Modelyard,
    monkeypatch: pytest.MonkeyPatch,
    token: str | None,
    admits: bool,
    words: str,
) -> None:
    the_hub.repositories["acme/small"] = small(gated=True, admits=admits)
    if token:
        monkeypatch.setenv("HF_TOKEN", token)

    answer = modelyard("model", "add", "hf://acme/small")

    assert (answer.code, answer.out) == (1, "")
    assert words in answer.err
    assert not token or token not in answer.err
    assert not RECORD.exists()


def test_a_token_opens_the_gate_and_the_model_needs_its_secret(
    the_hub: FakeHub, modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_hub.repositories["acme/small"] = small(gated=True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    answer = modelyard("model", "add", "hf://acme/small", "--accelerator", "l40s")

    assert answer.code == 0, answer.err
    assert "needs an accepted licence and a token" in answer.out
    assert TOKEN not in RECORD.read_text(encoding="utf-8")
    Path("environments/lab.yaml").write_text(
        Path("environments/lab.yaml")
        .read_text(encoding="utf-8")
        .replace("secrets: {hf-token: lab/hf-token}", ""),
        encoding="utf-8",
    )
    assert "hf-token" in modelyard("validate").err


def test_an_unknown_repository_or_revision_is_named_with_the_nearest(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small()

    nowhere = modelyard("model", "add", "hf://Qwen/Qwen3-8")
    never = modelyard("model", "add", "hf://acme/small", "--revision", "v9")

    assert "the Hub has no Qwen/Qwen3-8, or not for you: did you mean 'Qwen/Qwen3-8B'?" in nowhere.err
    assert "acme/small has no revision v9" in never.err


@pytest.mark.parametrize("offline", [True, False], ids=["offline by choice", "no connection"])
def test_without_the_hub_nothing_is_written(
    the_hub: FakeHub, modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch, offline: bool
) -> None:
    if offline:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        the_hub.failing = 503

    answer = modelyard("model", "add", "hf://acme/small", "--accelerator", "l40s")

    assert answer.code == 1
    assert "the Hub cannot be reached (or HF_HUB_OFFLINE is set)" in answer.err
    assert not Path("models").exists()


def test_a_class_that_is_not_known_is_refused_with_the_engines_that_serve_it_and_the_way_out(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small(files=small_files(architectures=["JambaForCausalLM"]))

    answer = modelyard("model", "add", "hf://acme/small")

    assert answer.code == 1
    assert "nothing was written: config.json: architectures names JambaForCausalLM" in answer.err
    assert "vllm 0.33.0" in answer.err
    assert "--architecture ID" in answer.err
    assert not RECORD.exists()
    assert modelyard("model", "add", "hf://acme/small", "--architecture", "Qwen/Qwen3-0.6B").code == 0


def test_a_tied_output_layer_that_is_stored_as_well_is_no_difference(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    tensors = tensors_of(architectures()[SMALL])
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    the_hub.repositories["acme/small"] = small(files=checkpoint_files(architectures().config(SMALL), tensors))

    assert modelyard("model", "add", "hf://acme/small").err == ""


def test_another_count_of_parameters_than_the_configs_is_a_warning(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small(files=small_files(intermediate_size=1536))

    answer = modelyard("model", "add", "hf://acme/small")

    assert answer.code == 0
    assert "MODEL003 warning" in answer.err
    assert "weights are exact by the tensors" in answer.err


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("config.json", text_file(b"{"), "the config.json of acme/small is not JSON"),
        ("config.json", text_file([1]), "is not a JSON object"),
        ("config.json", Sparse(b"{", 1 << 40), "are the most"),
        ("generation_config.json", Sparse(b"{", 5 << 20), "has more than 4 MiB"),
        ("model.safetensors", text_file(b"<html>"), "it is no safetensors file"),
        ("model.safetensors", Sparse(struct.pack("<Q", 1 << 60), 1 << 40), "it is no safetensors file"),
        ("model.safetensors", Sparse(struct.pack("<Q", 4) + b"{a:1", 99), "the header is not JSON"),
        ("model.safetensors.index.json", text_file({"weight_map": {"a": "../b"}}), "which is not there"),
        ("model.safetensors.index.json", text_file({"weight_map": 3}), "has no weight_map"),
    ],
)
def test_answers_that_no_repository_gives_are_refused_in_one_line(
    the_hub: FakeHub, modelyard: Modelyard, file: str, content: Sparse, words: str
) -> None:
    the_hub.repositories["acme/small"] = small(files={**small_files(), file: content})

    answer = modelyard("model", "add", "hf://acme/small")

    assert (answer.code, answer.out) == (1, "")
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert not RECORD.exists()


def test_a_config_whose_record_nobody_could_read_is_refused(the_hub: FakeHub, modelyard: Modelyard) -> None:
    deep: object = 0
    for _ in range(63):
        deep = [deep]
    the_hub.repositories["acme/small"] = small(files=small_files(nested=deep))

    answer = modelyard("model", "add", "hf://acme/small")

    assert "nothing was written: the record of hf://acme/small is beyond a limit" in answer.err
    assert not RECORD.exists()


def test_a_secret_in_a_config_does_not_get_into_the_record(the_hub: FakeHub, modelyard: Modelyard) -> None:
    secret = "hf_" + "QkZwRmTtYxUvNbLcJhGdSaPoIuYtReWqZx"[:34]
    the_hub.repositories["acme/small"] = small(files=small_files(hub_token=secret))

    answer = modelyard("model", "add", "hf://acme/small")

    assert answer.code == 0, answer.err
    assert secret not in RECORD.read_text(encoding="utf-8")


def test_a_gguf_file_is_as_large_as_its_tensors_and_its_metadata_is_the_config(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    # llama-quantize's mixture of Q4_K_M: half of the value and down projections in Q6_K.
    file = llama_file({"*": "Q4_K", "output": "Q6_K", "ffn_down": "Q5_K", "attn_v": "Q5_K"})
    the_hub.repositories["acme/llama-GGUF"] = Repository(
        {"llama-Q4_K_M.gguf": file, "README.md": text_file(b"")}
    )

    answer = modelyard(
        "model", "add", "hf://acme/llama-GGUF", "--name", "llama", "--accelerator", "l40s", "-o", "json"
    )

    assert answer.code == 0, answer.err
    said = json.loads(answer.out)
    assert said["architecture"] == "LlamaForCausalLM"
    assert said["parameters"] == 8_030_261_248
    assert said["engines"] == ["llama-server b11434"]
    tensors = said["fileBytes"]["llama-Q4_K_M.gguf"]
    assert 0 < file.size - tensors < 20_000
    plan = json.loads(modelyard("plan", "--env", "lab", "-o", "json").out)
    (model,) = plan["models"]
    on_cpu = tensor_bytes("Q4_K", (128256, 4096))  # llama-server keeps the embeddings there
    assert model["memoryGiB"]["weights"] == pytest.approx((tensors - on_cpu) / 2**30, abs=0.01)


def test_a_repository_of_several_gguf_files_asks_which(the_hub: FakeHub, modelyard: Modelyard) -> None:
    files = {f"llama-{kind}.gguf": llama_file({"*": kind}) for kind in ("Q4_K", "Q8_0")}
    the_hub.repositories["acme/llama-GGUF"] = Repository(files)

    which = modelyard("model", "add", "hf://acme/llama-GGUF")
    wrong = modelyard("model", "add", "hf://acme/llama-GGUF", "--file", "llama-Q8.gguf")

    assert "has 2 GGUF files: name one with --file, such as llama-Q4_K.gguf" in which.err
    assert "did you mean 'llama-Q8_0.gguf'?" in wrong.err
    assert modelyard("model", "add", "hf://acme/llama-GGUF", "--file", "llama-Q8_0.gguf").code == 0
    assert modelyard("model", "add", "hf://acme/llama-GGUF", "--file", "llama-Q4_K.gguf").code == 0
    record = json.loads(Path("models/checkpoints/acme--llama-GGUF.json").read_text(encoding="utf-8"))
    assert sorted(record["files"]) == ["llama-Q4_K.gguf", "llama-Q8_0.gguf"]


def test_all_parts_of_a_split_model_count(the_hub: FakeHub, modelyard: Modelyard) -> None:
    part = llama_file({"*": "Q8_0"})
    names = [f"big-{number:05d}-of-00002.gguf" for number in (1, 2)]
    the_hub.repositories["acme/big-GGUF"] = Repository(dict.fromkeys(names, part))

    assert modelyard("model", "add", "hf://acme/big-GGUF").code == 0
    del the_hub.repositories["acme/big-GGUF"].files[names[1]]
    again = modelyard("model", "add", "hf://acme/big-GGUF")

    assert f"has no {names[1]}, a part of {names[0]}" in again.err


def test_metadata_that_says_too_little_asks_for_a_model_with_the_same_layout(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/odd-GGUF"] = Repository(
        {"odd.gguf": llama_file({"*": "Q8_0"}, described=False)}
    )

    answer = modelyard("model", "add", "hf://acme/odd-GGUF")

    assert "the metadata of a mamba GGUF file does not describe it whole" in answer.err
    assert "--architecture ID" in answer.err
    known = ["--architecture", "meta-llama/Llama-3.1-8B-Instruct"]
    assert modelyard("model", "add", "hf://acme/odd-GGUF", *known).code == 0


def test_the_config_of_a_known_base_model_stands_in_for_a_gguf_files(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/odd-GGUF"] = Repository(
        {"odd.gguf": llama_file({"*": "Q8_0"}, described=False)},
        card={"base_model": "meta-llama/Llama-3.1-8B-Instruct"},
    )

    assert modelyard("model", "add", "hf://acme/odd-GGUF").code == 0
