"""Platform options of an environment file: refused if they cannot work, otherwise planned."""

from __future__ import annotations

from typing import Any

import pytest

from modelyard.planning import Plan
from modelyard.spec import Environment, Model
from tests.unit.given import a_model, an_environment
from tests.unit.given import a_plan as plan_of

BLOCK = {"id": "cr-0123456789abcdef0", "ends": "2027-01-31T11:30:00Z"}


def a_plan(model: Model, **changes: Any) -> Plan:
    """The plan of one model in an environment with `changes`."""
    return plan_of(model, environment=an_environment(**changes))


def codes(**changes: Any) -> set[str]:
    """Codes of the findings of an environment with one model on an L40S."""
    return {finding.code for finding in a_plan(a_model(owner=OWNER), **changes).findings}


OWNER = {"team": "search"}
L40S = {"g6e": {"accelerator": "l40s", "limit": 16}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"network": {"flowLogs": False}}, "a VPC of ours always has them"),
        (
            {"network": {"vpc": {"id": "vpc-0a1b2c3d", "privateSubnets": {"us-east-2a": "subnet-0a1b2c3d"}}}},
            "must name a subnet for us-east-2b",
        ),
        (
            {"network": {"podCidr": "100.64.0.0/16", "vpc": {"id": "vpc-0a1b2c3d", "privateSubnets": {}}}},
            "kubernetes.io/role/cni=1",
        ),
        ({"cost": {"monthlyUsd": 100}}, "a warning that nobody gets is none"),
        ({"monitoring": {"managed": True, "install": False}}, "managed needs enabled and install"),
        ({"monitoring": {"managedGrafana": True}}, "managedGrafana needs managed"),
        (
            {
                "cache": {
                    "fileSystem": "lustre",
                    "fileSystemId": "fs-0a1b2c3d",
                    "accessPointId": "fsap-0a1b2c3d",
                }
            },
            "is of EFS",
        ),
        (
            {"cluster": {"addonVersions": {"vpc-cnii": "v1.2.3-eksbuild.1"}}},
            "unknown add-on vpc-cnii; known are",
        ),
        (
            {"teams": {"models": {"principals": ["arn:aws:iam::123456789012:role/x"]}}},
            "namespace models is taken by namespace",
        ),
        (
            {"teams": {"kube-team": {"principals": ["arn:aws:iam::123456789012:role/x"]}}},
            "taken by Kubernetes",
        ),
        (
            {
                "pools": {
                    "p": {
                        "accelerator": "h200",
                        "limit": 8,
                        "capacity": ["reserved"],
                        "reservations": [{**BLOCK, "ends": "2027-01-31T11:30:00"}],
                    }
                }
            },
            "needs a time zone",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        an_environment(**changes)


def test_auto_mode_limits_the_networks_of_istios_gateways_alone() -> None:
    way_in = {"domain": "models.example.org", "certificate": "certificate", "cidrs": ["192.0.2.0/24"]}
    others = way_in | {"className": "envoy"}
    auto, secrets = {"compute": "auto-mode"}, {"certificate": "x"}

    assert "SEC004" in codes(cluster=auto, secrets=secrets, gateways={"public": others})
    assert "SEC004" not in codes(cluster=auto, secrets=secrets, gateways={"public": way_in})
    assert "SEC004" not in codes(secrets=secrets, gateways={"public": others})
    for everybody in ({"public": others | {"cidrs": ["0.0.0.0/0"]}}, {"internal": others | {"cidrs": []}}):
        assert "SEC004" not in codes(cluster=auto, secrets=secrets, gateways=everybody)


def test_a_pool_whose_reservations_all_end_is_a_finding_unless_something_follows() -> None:
    pool = {"accelerator": "l40s", "limit": 16, "capacity": ["reserved"], "reservations": [BLOCK]}

    assert "CAP010" in codes(pools={"g6e": pool})
    assert "CAP010" not in codes(pools={"g6e": pool | {"reservations": [BLOCK, "cr-0123456789abcdef1"]}})
    assert "CAP010" not in codes(pools={"g6e": pool | {"capacity": ["reserved", "on-demand"]}})


def test_the_finding_says_when_nodes_are_drained() -> None:
    pool = {"accelerator": "l40s", "limit": 16, "capacity": ["reserved"], "reservations": [BLOCK]}

    [finding] = [f for f in a_plan(a_model(), pools={"g6e": pool}).findings if f.code == "CAP010"]

    assert "after 2027-01-31 11:30 UTC" in finding.message
    assert "from 10:50 on" in finding.message


@pytest.mark.parametrize(("nodes", "limit", "found"), [(2, 16, False), (2, 8, True), (1, 8, False)])
def test_static_nodes_have_to_fit_the_limit(nodes: int, limit: int, found: bool) -> None:
    """The largest g6e has eight GPUs."""
    pool = {"accelerator": "l40s", "limit": limit, "nodes": nodes}

    assert ("CAP011" in codes(pools={"g6e": pool})) is found


def test_a_type_has_one_price_on_demand() -> None:
    def trn2(price: float) -> dict[str, Any]:
        return {
            "accelerator": "trn2",
            "instanceTypes": ["trn2.48xlarge"],
            "prices": {"trn2.48xlarge": {"on-demand": price}},
            "limit": 16,
        }

    assert "CAP012" in codes(pools=L40S | {"one": trn2(35.0), "two": trn2(36.0)})
    assert "CAP012" not in codes(pools=L40S | {"one": trn2(35.0), "two": trn2(35.0)})


def test_a_stated_price_makes_an_unpriced_type_launchable_but_not_in_auto_mode() -> None:
    trn2 = {
        "accelerator": "trn2",
        "instanceTypes": ["trn2.48xlarge"],
        "prices": {"trn2.48xlarge": {"on-demand": 35.0}},
        "limit": 16,
    }
    model = a_model(model="hf://Qwen/Qwen3-8B", accelerator="trn2", replicas=1)

    def placed(**changes: Any) -> bool:
        return bool(a_plan(model, pools={"trn2": trn2 | changes.pop("pool", {})}, **changes).models)

    assert placed()
    assert not placed(pool={"prices": {}})
    assert not placed(cluster={"compute": "auto-mode"})


def test_a_team_whose_models_could_take_more_than_it_was_granted_is_an_error() -> None:
    team = {"principals": ["arn:aws:iam::123456789012:role/search"], "accelerators": {"l40s": 3}}
    model = a_model(owner=OWNER, replicas={"min": 1, "max": 4})

    [finding] = [f for f in a_plan(model, teams={"search": team}).findings if f.code == "TEAM001"]

    assert "its models can hold 4 l40s, 3 are granted: qwen 4" in finding.message
    assert finding.level.name == "ERROR"

    def codes(**accelerators: int) -> set[str]:
        return {
            f.code for f in a_plan(model, teams={"search": team | {"accelerators": accelerators}}).findings
        }

    assert "TEAM001" not in codes(l40s=4)
    assert "TEAM001" in codes(h100=4)  # of a kind that is not named there is none
    del team["accelerators"]
    assert "TEAM001" not in {f.code for f in a_plan(model, teams={"search": team}).findings}
    assert "TEAM002" in {
        f.code for f in a_plan(a_model(owner={"team": "serach"}), teams={"search": team}).findings
    }


def test_office_hours_leave_models_without_a_replica_outside_of_them() -> None:
    hours = {"start": "0 7 * * 1-5", "end": "0 19 * * 1-5", "timezone": "Europe/Berlin"}

    [planned] = a_plan(a_model(replicas=3), officeHours=hours).models

    assert (planned.model.replicas.min, planned.model.replicas.max) == (0, 3)
    [kept] = planned.model.scaling.schedule
    assert (kept.start, kept.end, kept.timezone, kept.replicas) == (*hours.values(), 3)


@pytest.mark.parametrize(
    ("pool", "gib"),
    [
        ({"accelerator": "l40s"}, 100),  # images and pods lie on the local disks
        ({"accelerator": "l40s", "rootVolumeGib": 300}, 300),
        ({"accelerator": "none"}, 120),  # 20 of system, two images of 27, a pod of 20; 15 % stay free
    ],
)
def test_the_root_volume_follows_from_the_images(pool: dict[str, Any], gib: int) -> None:
    from modelyard.planning.admission import root_volume_gib
    from modelyard.spec import Pool

    assert root_volume_gib(Pool.model_validate(pool | {"limit": 16})) >= gib
    if pool != {"accelerator": "none"}:
        assert root_volume_gib(Pool.model_validate(pool | {"limit": 16})) == gib


def test_weights_in_a_bucket_that_nobody_may_read_are_an_error() -> None:
    streamed = {"uri": "s3://acme/qwen", "architecture": "Qwen/Qwen3-8B"}

    def found(**cache: Any) -> set[str]:
        return {f.code for f in a_plan(a_model(model=streamed), cache=cache).findings}

    assert "S3001" in found()
    assert "S3001" in found(readBuckets=["other"])
    assert "S3001" not in found(readBuckets=["acme"])


def test_a_lustre_cache_is_one_zones() -> None:
    assert "CACHE001" in codes(cache={"fileSystem": "lustre"})
    assert "CACHE001" not in codes()


def test_deletion_protection_follows_what_happens_to_data_unless_stated() -> None:
    def protected(**changes: Any) -> bool:
        environment: Environment = an_environment(**changes)
        return environment.deletion_protection

    assert protected(removal="retain")
    assert not protected(removal="destroy")
    assert not protected(removal="retain", cluster={"deletionProtection": False})
