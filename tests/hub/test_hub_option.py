"""`--hub` of validate, plan, explain and size: facts for one run, and nothing written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.hub.fake_hub import FakeHub, Repository
from tests.hub.gguf_file import llama_file
from tests.hub.repositories import COMMIT, LATER, small, small_files
from tests.unit.given import Modelyard


def given(name: str, model: str) -> None:
    Path("models").mkdir(exist_ok=True)
    Path(f"models/{name}.yaml").write_text(
        f"model: {model}\naccelerator: l40s\nreplicas: 2\n", encoding="utf-8"
    )


def files() -> Iterable[str]:
    return sorted(str(path) for path in Path("models").rglob("*"))


@pytest.mark.parametrize(
    "command", [["validate"], ["plan", "--env", "lab"], ["explain", "chat", "--env", "lab"], ["size", "chat"]]
)
def test_a_model_without_facts_is_asked_for_and_the_output_says_how_to_keep_it(
    the_hub: FakeHub, modelyard: Modelyard, command: list[str]
) -> None:
    the_hub.repositories["acme/small"] = small()
    given("chat", "hf://acme/small")
    assert "MODEL001" in modelyard(*command).err

    answer = modelyard(*command, "--hub")

    assert answer.code == 0, answer.err
    kept = "for this run; to keep it: modelyard model add hf://acme/small\n"
    assert f"--hub: hf://acme/small at {COMMIT[:12]}, {kept}" in answer.err
    assert "MODEL001" not in answer.err
    assert files() == ["models/chat.yaml"]


def test_the_stated_revision_and_file_are_asked_for(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small(refs={"main": COMMIT, "v1": LATER})
    the_hub.repositories["acme/llama-GGUF"] = Repository({"a.gguf": llama_file({"*": "Q8_0"})})
    given("chat", "{uri: 'hf://acme/small', revision: v1}")
    given("llama", "{uri: 'hf://acme/llama-GGUF', file: a.gguf}")

    answer = modelyard("plan", "--env", "lab", "--hub")

    assert f"hf://acme/small at {LATER[:12]}" in answer.err
    assert "modelyard model add hf://acme/small --revision v1" in answer.err
    assert "modelyard model add hf://acme/llama-GGUF --file a.gguf" in answer.err


def test_a_model_of_the_table_or_with_a_record_is_not_asked_for(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small()
    modelyard("model", "add", "hf://acme/small", "--accelerator", "l40s")
    given("chat", "hf://Qwen/Qwen3-8B")
    the_hub.asked.clear()

    assert modelyard("validate", "--hub").code == 0

    assert the_hub.asked == []


def test_what_the_hub_does_not_have_stays_a_finding_of_its_model_alone(
    the_hub: FakeHub, modelyard: Modelyard
) -> None:
    the_hub.repositories["acme/small"] = small()
    given("chat", "hf://acme/small")
    given("lost", "hf://acme/lost")

    answer = modelyard("validate", "--hub", "-o", "json")

    assert "--hub: hf://acme/lost: the Hub has no acme/lost" in answer.err
    findings = json.loads(answer.out)["findings"]
    assert [(each["subject"], each["code"]) for each in findings if each["severity"] == "error"] == [
        ("lost", "MODEL001")
    ]


def test_a_draft_model_is_asked_for_too(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small()
    given("chat", "hf://Qwen/Qwen3-8B")
    with Path("models/chat.yaml").open("a", encoding="utf-8") as file:
        file.write("speculativeDecoding: {method: draft, model: 'hf://acme/small'}\n")

    answer = modelyard("validate", "--hub")

    assert "--hub: hf://acme/small at" in answer.err
    assert "MODEL001" not in answer.err


def test_size_takes_a_repository_a_record_or_an_id(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small()

    assert modelyard("size", "acme/small").code == 64
    asked = modelyard("size", "acme/small", "--hub", "-o", "json")
    modelyard("model", "add", "hf://acme/small")
    the_hub.failing = 500
    recorded = modelyard("size", "acme/small", "-o", "json")

    assert json.loads(asked.out)["options"] == json.loads(recorded.out)["options"]
    assert modelyard("size", "hf://acme/small").code == 0


def test_two_models_of_one_repository_ask_once(the_hub: FakeHub, modelyard: Modelyard) -> None:
    the_hub.repositories["acme/small"] = small(files=small_files())
    given("chat", "hf://acme/small")
    given("code", "hf://acme/small")

    modelyard("validate", "--hub")

    assert sum("/api/models/" in path for _, path, _ in the_hub.asked) == 1
