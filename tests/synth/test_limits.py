"""CloudFormation's limits for a large platform: 300 models, 20 pools, every option that adds resources."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.planning import plan
from modelyard.spec import Catalogue, Environment, Model
from tests.synth.conftest import ROOT, Synthesis, environment_file

MODELS = 300
POOLS = 20
RESOURCES = 500
BYTES = 1_000_000
KINDS = ("l4", "a10g", "l40s", "a100", "h100", "h200", "t4", "trn2", "none", "b200")


def grown() -> dict[str, Any]:
    """The environment with the most resources: twenty pools that pay for a reservation each, and as many
    teams."""
    data = environment_file("existing", ROOT / "tests" / "fixtures" / "platforms" / "environments")
    data["network"] = {"natGateways": 3, "podCidr": "100.64.0.0/16"}
    data["availabilityZones"] = ["us-east-2a", "us-east-2b", "us-east-2c"]
    data["cache"] = {"weightsBucket": True, "readBuckets": [f"acme-weights-{n}" for n in range(20)]}
    data["officeHours"] = None
    data["pools"] = {
        f"pool-{number}": {
            "accelerator": KINDS[number % len(KINDS)],
            "capacity": ["reserved", "on-demand"],
            "reservations": [f"cr-{number:017x}"],
            "limit": 4096,
        }
        for number in range(POOLS)
    }
    data["teams"] = {
        f"team-{number}": {"principals": [f"arn:aws:iam::123456789012:role/team-{number}"]}
        for number in range(POOLS)
    }
    data["secrets"] = {f"secret-{number}": f"grown/secret-{number}" for number in range(100)}
    return data


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rendered tree of 300 models."""
    from modelyard.objects.rendering import render

    environment = Environment.model_validate(grown())
    catalogue = Catalogue(
        {
            f"model-{number}": Model.model_validate(
                {
                    "name": f"model-{number}",
                    "model": "hf://Qwen/Qwen3-8B",
                    "accelerator": "l40s",
                    "replicas": {"min": 1, "max": 4},
                    "pool": f"pool-{2 + 10 * (number % 2)}",
                    "owner": {"team": f"team-{number % POOLS}"},
                }
            )
            for number in range(MODELS)
        }
    )
    planned = plan(catalogue, environment)
    assert planned.deployable, planned.findings
    assert len(planned.models) == MODELS
    folder = tmp_path_factory.mktemp("grown")
    render(planned, folder)
    return folder


def without_hashes(template: dict[str, Any]) -> str:
    """A template but for the hashes of its assets, and of the tree that it delivers."""
    return re.sub(r"[0-9a-f]{64}", "HASH", json.dumps(template, sort_keys=True))


def test_every_stack_stays_within_the_limits(tree: Path, synthesise: Callable[..., Synthesis]) -> None:
    large = synthesise("grown", grown(), tree)

    sizes = {
        stack: (len(template["Resources"]), len(json.dumps(template).encode()))
        for stack, template in large.templates.items()
    }
    assert len(sizes) == 8
    assert all(count < RESOURCES and size < BYTES for count, size in sizes.values()), sizes
    alarms = large.properties("Cost", "AWS::CloudWatch::Alarm")
    assert len(alarms) == POOLS


def test_templates_do_not_grow_with_models(tree: Path, synthesise: Callable[..., Synthesis]) -> None:
    large = synthesise("grown", grown(), tree)
    empty = synthesise("grown", grown())

    assert {name: without_hashes(t) for name, t in large.templates.items()} == {
        name: without_hashes(t) for name, t in empty.templates.items()
    }


def test_a_stack_with_more_is_refused_before_it_is_deployed(
    synthesise: Callable[..., Synthesis],
) -> None:
    data = grown()
    data["secrets"] = {f"secret-{number}": f"grown/secret-{number}" for number in range(RESOURCES)}

    with pytest.raises(RuntimeError, match="greater than allowed maximum of 500"):
        synthesise("grown", data)
