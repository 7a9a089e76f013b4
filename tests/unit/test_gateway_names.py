"""The names under which the LiteLLM gateway knows a model, and what it asks the server for."""

from __future__ import annotations

from typing import Any

import promql_parser
import pytest

from modelyard.objects.serving.autoscaler import scaled_object
from modelyard.objects.traffic.litellm import proxy_config
from modelyard.planning import Plan
from tests.unit.given import a_model, a_plan, an_environment, codes

ADAPTER = {"name": "medical", "uri": "hf://acme/medical-lora"}
SMALL = "hf://Qwen/Qwen3-8B"


def planned(*models: dict[str, Any], litellm: bool = True) -> Plan:
    settings: dict[str, Any] = {"secrets": {"master": "lab/master"}, "litellm": {"masterKey": "master"}}
    environment = an_environment(**(settings if litellm else {}))
    return a_plan(*(a_model(**{"model": SMALL, **model}) for model in models), environment=environment)


def routes(plan: Plan) -> dict[str, str]:
    """Name at the gateway to name at the server."""
    listed = proxy_config(plan.models, "models")["model_list"]
    return {each["model_name"]: each["litellm_params"]["model"] for each in listed}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({}, {"qwen": "openai/qwen"}),
        (
            {"model": {"uri": SMALL, "servedNames": ["gpt-4o", "acme/chat"]}},
            {"qwen": "openai/gpt-4o", "gpt-4o": "openai/gpt-4o", "acme/chat": "openai/acme/chat"},
        ),
        ({"adapters": [ADAPTER]}, {"qwen": "openai/qwen", "medical": "openai/medical"}),
    ],
)
def test_every_name_is_routed_to_one_that_the_server_knows(
    model: dict[str, Any], expected: dict[str, str]
) -> None:
    assert routes(planned(model)) == expected


def test_two_models_with_one_name_are_refused_where_a_gateway_would_mix_them() -> None:
    shared = {"model": {"uri": SMALL, "servedNames": ["chat"]}}
    models = ({"name": "one", **shared}, {"name": "two", **shared})

    [found] = planned(*models).findings

    assert (found.code, found.subject, found.field) == ("NAME001", "two", ("model", "servedNames"))
    assert "'chat' to one or to two" in found.message
    assert codes(planned(*models, litellm=False).findings) == []


def test_a_name_of_another_model_is_refused_as_well() -> None:
    adapted = {"name": "two", "adapters": [{**ADAPTER, "name": "one"}]}

    [found] = planned({"name": "one"}, adapted).findings

    assert (found.code, found.subject, found.field) == ("NAME001", "two", ("adapters",))


def test_models_of_one_repository_do_not_clash() -> None:
    assert codes(planned({"name": "one"}, {"name": "two"}).findings) == []


@pytest.mark.parametrize("names", [[], ["chat"], ['a"b\\c', "x.y"]])
def test_requests_for_any_of_the_names_wake_a_model(names: list[str]) -> None:
    model: dict[str, Any] = {"replicas": {"min": 0, "max": 2}, "scaling": {"activator": "gateway"}}
    if names:
        model["model"] = {"uri": SMALL, "servedNames": names}
    plan = planned(model)

    scaler = scaled_object(plan.models[0], plan.environment)
    query = scaler["spec"]["triggers"][-1]["metadata"]["query"]

    promql_parser.parse(query)
    [asked] = [part for part in query.split("{")[1].split("}")[0].split(", ") if "requested" in part]
    assert (
        asked
        == {
            0: 'requested_model="qwen"',
            1: 'requested_model=~"qwen|chat"',
            2: 'requested_model=~"qwen|a\\"b\\\\\\\\c|x\\\\.y"',
        }[len(names)]
    )
