"""`modelyard size`: where a model can run, and at what cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modelyard.checkpoints import architectures
from modelyard.hardware import Prices, accelerators, instance_types
from modelyard.planning.sizing import Sizing, size_model
from tests.unit.given import REGION, Modelyard, a_model, a_plan, an_environment

LLAMA = "meta-llama/Llama-3.3-70B-Instruct"


def sized(**changes: Any) -> Sizing:
    return size_model(a_model(**changes), Prices(REGION))


def documents(modelyard: Modelyard, *args: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(modelyard("size", *args, "--output", "json").out)
    return document


def test_every_accelerator_is_an_option_or_rejected_with_a_reason() -> None:
    sizing = sized(model=f"hf://{LLAMA}")

    held = {size.serving.accelerator.name for size in sizing.sizes}
    refused = {no.accelerator.name for no in sizing.rejected}
    assert held | refused == set(accelerators())
    assert not held & refused
    assert all(no.reason for no in sizing.rejected)
    assert {"h100", "h200", "l40s", "trn2"} <= held


def test_options_are_sorted_by_price_and_priceless_ones_come_last() -> None:
    prices = [size.share_price for size in sized().sizes]
    known = [price for price in prices if price is not None]

    assert known == sorted(known)
    assert prices[: len(known)] == known
    assert None in prices


def test_a_share_of_an_instance_costs_its_share() -> None:
    two = next(s for s in sized(model=f"hf://{LLAMA}").sizes if s.label == "h100:4")

    assert two.instance is not None
    assert two.instance.name == "p5.48xlarge"
    assert two.instance_price == two.instance.shipped_price(REGION).usd_per_hour
    assert two.instance_price is not None
    assert two.share_price == pytest.approx(two.instance_price / 2)


def test_every_option_holds_the_length_that_is_asked_for() -> None:
    sizing = sized(engine={"maxModelLen": 32768, "concurrency": 4})

    assert sizing.sizes
    for size in sizing.sizes:
        assert size.serving.max_model_len == 32768 <= size.longest
        assert size.serving.ledger.concurrency(32768) >= 4
    assert "l40s:1" not in {size.label for size in sizing.sizes}


def test_the_longest_length_fits_and_a_block_more_does_not() -> None:
    for size in sized().sizes:
        ledger = size.serving.ledger
        assert ledger.holds(size.longest)
        if size.longest < size.serving.arch.max_position:
            assert not ledger.holds(size.longest + ledger.layout.block_size)


def test_the_plan_finds_what_size_promises() -> None:
    """Same serving, same instance type, where a pool offers the accelerator."""
    size = next(s for s in sized().sizes if s.label == "l40s:1")
    [planned] = a_plan(a_model(), environment=an_environment()).models

    assert planned.serving == size.serving
    assert size.instance is not None
    assert planned.placement.cheapest.name == size.instance.name


def test_an_instance_admits_the_pod_and_is_sold_in_the_region() -> None:
    for region in ("us-east-1", "eu-central-1"):
        for size in size_model(a_model(), Prices(region)).sizes:
            if size.instance is not None:
                assert region in size.instance.offered_regions
                assert size.instance.accelerator_count >= size.serving.count
                assert size.instance.unsupported is None


def test_the_fewest_of_each_kind_are_the_smallest() -> None:
    sizing = sized()
    labels = [size.serving.accelerator.name for size in sizing.smallest]

    assert len(labels) == len(set(labels))
    assert set(labels) == {size.serving.accelerator.name for size in sizing.sizes}


def test_ledgers_are_the_memory_exactly(modelyard: Modelyard) -> None:
    for model in ("qwen3-32b-fp8", LLAMA, "qwen3-8b-trn2"):
        for option in documents(modelyard, model)["options"]:
            memory = option["memoryBytes"]
            total = memory.pop("total")
            assert sum(memory.values()) == total
            kind = accelerators()[option["accelerator"]]
            assert total * kind.cores == pytest.approx(kind.usable.in_bytes, abs=kind.cores)


def test_a_model_file_has_its_own_settings(modelyard: Modelyard) -> None:
    by_name, by_id = (
        documents(modelyard, "llama-3-1-8b"),
        documents(modelyard, "meta-llama/Llama-3.1-8B-Instruct"),
    )

    assert {option["maxModelLen"] for option in by_name["options"]} == {32768}
    assert {option["maxModelLen"] for option in by_id["options"]} != {32768}


def test_a_config_is_sized_like_the_model_that_it_is_of(modelyard: Modelyard, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(architectures().config(LLAMA)))

    by_id = documents(modelyard, LLAMA)
    for path in (tmp_path, tmp_path / "config.json"):
        assert documents(modelyard, str(path))["options"] == by_id["options"]


def test_the_region_decides_prices(modelyard: Modelyard) -> None:
    usual = documents(modelyard, LLAMA)
    far = documents(modelyard, LLAMA, "--region", "eu-central-1")
    of_environment = documents(modelyard, LLAMA, "--env", "prod")

    assert usual["region"] == "us-east-2"
    assert far["region"] == "eu-central-1"
    assert of_environment["region"] == "us-east-2"
    assert far["options"] != usual["options"]
    for option in far["options"]:
        if option["instanceUsdPerHour"] is not None:
            price = instance_types()[option["instanceType"]].shipped_price("eu-central-1")
            assert option["instanceUsdPerHour"] == price.usd_per_hour


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["qwen3-32b-fp8"], 0),
        (["qwen/qwen3-8b", "--length", "8192", "--concurrency", "2"], 0),
        (["qwen3-32b-fp8", "--all"], 0),
        ([LLAMA, "--length", "1000000"], 1),
        ([LLAMA, "--concurrency", "1000000"], 1),
        ([], 64),
        (["no-such-model"], 64),
        (["docs"], 64),
        (["qwen3-32b-fp8", "--env", "nowhere"], 64),
        (["qwen3-32b-fp8", "--region", "mars-1"], 64),
        (["qwen3-32b-fp8", "--length", "1"], 64),
        (["qwen3-32b-fp8", "--gpu-memory-utilization", "1"], 64),
    ],
    ids=str,
)
def test_the_exit_code_says_whether_anything_holds_it(
    modelyard: Modelyard, args: list[str], code: int
) -> None:
    answer = modelyard("size", *args)

    assert answer.code == code
    assert "Traceback" not in answer.err


def test_a_config_that_cannot_be_read_is_a_finding(modelyard: Modelyard, tmp_path: Path) -> None:
    for text, code in (("{", "YAML001"), ("[]", "YAML001"), ("{}", "MODEL002")):
        (tmp_path / "config.json").write_text(text)
        assert code in modelyard("size", str(tmp_path)).err
        assert documents(modelyard, str(tmp_path))["findings"][0]["code"] == code


def test_people_see_bars_with_a_legend_and_the_reasons_below(modelyard: Modelyard) -> None:
    answer = modelyard("size", "qwen3-32b-fp8")

    assert "l40s:1" in answer.out
    assert "####" in answer.out
    assert "# weights" in answer.out
    assert "ENG001 engine vllm-neuron does not run on inf2" in answer.out
    assert "\x1b" not in answer.out
    assert max(map(len, answer.out.splitlines()[:15])) <= 150


@pytest.mark.parametrize(
    "args", [["plan", "--env", "prod"], ["explain", "qwen3-32b-fp8", "--env", "prod"]], ids=str
)
def test_plan_and_explain_draw_the_ledger(modelyard: Modelyard, args: list[str]) -> None:
    answer = modelyard(*args)

    assert "# weights" in answer.out
    assert "####" in answer.out
