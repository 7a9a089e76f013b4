"""`modelyard endpoint`: the ways to a model, and first requests that work as they are printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modelyard.cli.endpoint import endpoint
from modelyard.cli.workspace import Output
from tests.contract.fake_openai import DIMENSION, KEY, serving
from tests.endpoint_examples import answers
from tests.unit.given import a_model, a_plan, an_environment

GATEWAY = {"domain": "models.example.com", "certificate": "tls", "cidrs": ["10.0.0.0/8"]}
ENVIRONMENT: dict[str, Any] = {
    "account": "123456789012",
    "region": "us-east-2",
    "availabilityZones": ["us-east-2a", "us-east-2b"],
    "pools": {"g6e": {"accelerator": "l40s", "limit": 64}},
    "secrets": {name: f"lab/{name}" for name in ("tls", "clients", "master")},
    "gateways": {"internal": GATEWAY},
    "litellm": {"masterKey": "master", "exposure": "internal"},
}
MODEL: dict[str, Any] = {"model": "hf://Qwen/Qwen3-8B", "accelerator": "l40s", "replicas": 2}


@pytest.fixture
def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What the command prints of a model with some changes, in an environment with some."""

    def run(model: dict[str, Any], environment: dict[str, Any], **options: Any) -> str:
        for folder, name, lines in (
            ("models", "tiny", MODEL | model),
            ("environments", "lab", ENVIRONMENT | environment),
        ):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.yaml").write_text(json.dumps(lines), encoding="utf-8")
        endpoint("tiny", "lab", models=tmp_path / "models", environments=tmp_path / "environments", **options)
        return capsys.readouterr().out

    return run


def document(shown: Any, model: dict[str, Any], environment: dict[str, Any], **options: Any) -> Any:
    return json.loads(shown(model, environment, output=Output.json, **options))


@pytest.mark.parametrize(
    ("task", "uri"),
    [
        ("generate", "hf://Qwen/Qwen3-8B"),
        ("embed", "hf://Qwen/Qwen3-8B"),
        ("rerank", "hf://BAAI/bge-reranker-v2-m3"),
    ],
)
@pytest.mark.parametrize("key", [None, KEY])
def test_the_examples_work_as_they_are_printed(task: str, uri: str, key: str | None) -> None:
    environment = an_environment(secrets={"clients": "lab/clients"})
    model = a_model(name="tiny", model=uri, task=task, access={"apiKey": "clients"} if key else {})
    [plan] = a_plan(model, environment=environment).models

    with serving(key=key) as server:
        by_curl, by_python = answers(plan, environment, server.url, key)

    (path, asked), (same_path, by_client) = server.asked
    assert path == same_path
    assert asked.items() <= by_client.items()  # the client asks for vectors in base64
    found = json.loads(by_curl)
    if task == "generate":
        assert by_python.strip() == found["choices"][0]["message"]["content"].strip()
    elif task == "embed":
        assert by_python.split() == [str(len(found["data"])), str(DIMENSION)]
    else:
        assert by_python.strip() == str(found["results"])


def test_every_way_in_is_listed_with_its_key_and_callers(shown: Any) -> None:
    model = {
        "access": {
            "exposure": "internal",
            "apiKey": "clients",
            "allowFrom": [{"namespace": "shop", "podLabels": {"app": "web"}}],
        }
    }

    found = document(shown, model, {})

    assert [(each["way"], each["url"], each["secret"], each["callers"]) for each in found["addresses"]] == [
        ("cluster", "http://tiny.models/v1", "clients", "pods of namespace shop with app=web"),
        ("forward", "http://127.0.0.1:8000/v1", "clients", "people who may forward ports of the cluster"),
        ("gateway", "https://tiny.models.example.com/v1", "clients", "networks 10.0.0.0/8"),
        ("litellm", "http://litellm.models/v1", "master", "pods of namespace models"),
        ("litellm", "https://llm.models.example.com/v1", "master", "networks 10.0.0.0/8"),
    ]
    assert "https://tiny.models.example.com/v1/chat" in found["examples"]["curl"]
    [before] = found["examples"]["before"]
    assert before.startswith(
        'export MODELYARD_API_KEY="$(aws secretsmanager get-secret-value --region us-east-2 '
    )
    assert "--secret-id lab/clients " in before


def test_the_way_of_the_examples_can_be_chosen(shown: Any) -> None:
    plain: dict[str, Any] = {"gateways": {}, "litellm": None}

    assert "http://127.0.0.1:8000/v1" in document(shown, {}, plain)["examples"]["curl"]
    assert "http://tiny.models/v1" in document(shown, {}, plain, way="cluster")["examples"]["curl"]
    with pytest.raises(Exception, match="--from gateway is no way to this model; it has cluster, forward"):
        shown({}, plain, way="gateway")


def test_through_litellm_a_model_has_its_own_name(shown: Any) -> None:
    """At the server, `servedNames` are the only names."""
    model = {"model": {"uri": "hf://Qwen/Qwen3-8B", "servedNames": ["gpt-4o"]}}

    found = document(shown, model, {}, way="litellm")

    assert {each["way"]: each["model"] for each in found["addresses"]} == {
        "cluster": "gpt-4o",
        "forward": "gpt-4o",
        "litellm": "tiny",
    }
    assert 'model="tiny"' in found["examples"]["python"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            {"replicas": {"min": 0, "max": 2}, "scaling": {"activator": "gateway"}},
            "A request through LiteLLM then fails with status 500 (Connection error) and starts a replica",
        ),
        (
            {
                "replicas": {"min": 0, "max": 2},
                "scaling": {
                    "schedule": [
                        {"start": "0 7 * * *", "end": "0 19 * * *", "timezone": "Etc/UTC", "replicas": 1}
                    ]
                },
            },
            "Without replicas outside the hours of scaling.schedule: connections are then refused.",
        ),
    ],
)
def test_callers_of_a_model_without_replicas_learn_what_they_get(
    shown: Any, model: dict[str, Any], said: str
) -> None:
    assert said in shown(model, {})
    assert "Connection" not in shown({}, {})


def test_a_batch_has_no_endpoint(shown: Any) -> None:
    batch = {"input": "efs://batches/in.jsonl", "output": "efs://batches/out.jsonl"}

    with pytest.raises(Exception, match="tiny is a batch and has no endpoint: it reads efs://batches/in"):
        shown({"replicas": 1, "batch": batch}, {})


def test_people_see_names_and_commands(shown: Any) -> None:
    text = shown({"adapters": [{"name": "legal", "uri": "hf://acme/legal"}]}, {"litellm": None})

    assert text.startswith("tiny in lab: chat completions, ")
    assert "Other names that the server knows: Qwen/Qwen3-8B, legal." in text
    assert "kubectl -n models port-forward service/tiny 8000:80 &\n" in text
