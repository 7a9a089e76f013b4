"""The stack of the image cache: a rule for each registry, and who may fill its repositories."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.synth.conftest import Synthesis, environment_file

Synthesise = Callable[[str, dict[str, Any]], Synthesis]
HUB = "arn:aws:secretsmanager:us-east-2:000000000000:secret:ecr-pullthroughcache/hub-AbCdEf"
GITHUB = "arn:aws:secretsmanager:us-east-2:000000000000:secret:ecr-pullthroughcache/github-AbCdEf"
FILL = {"ecr:BatchImportUpstreamImage", "ecr:CreateRepository"}


def cached(**changes: Any) -> dict[str, Any]:
    credentials = {"docker.io": HUB, "ghcr.io": GITHUB}
    return environment_file("local") | {"registry": {"pullThrough": {"credentials": credentials}}} | changes


def who_may(synthesis: Synthesis, actions: set[str]) -> dict[str, list[Any]]:
    """Role to the resources on which it may do all of `actions`."""
    return {
        role["Ref"]: [statement["Resource"]]
        for stack in synthesis.templates
        for policy in synthesis.properties(stack, "AWS::IAM::Policy")
        for statement in policy["PolicyDocument"]["Statement"]
        if actions <= set(statement["Action"])
        for role in policy["Roles"]
    }


def test_a_registry_that_asks_has_its_secret_and_the_others_none(synthesise: Synthesise) -> None:
    rules = synthesise("cached", cached()).properties("Registry", "AWS::ECR::PullThroughCacheRule")

    assert {each["UpstreamRegistry"]: each.get("CredentialArn") for each in rules} == {
        "docker-hub": HUB,
        "github-container-registry": GITHUB,
        "ecr-public": None,
        "quay": None,
        "k8s": None,
    }
    assert {each["EcrRepositoryPrefix"] for each in rules} == {
        "local/docker",
        "local/ghcr",
        "local/public",
        "local/quay",
        "local/k8s",
    }


def test_repositories_follow_the_template_from_the_first(synthesise: Synthesise) -> None:
    stack = synthesise("template", cached())
    template = stack.only("Registry", "AWS::ECR::RepositoryCreationTemplate")

    assert template["Prefix"] == "local"
    assert template["AppliedFor"] == ["PULL_THROUGH_CACHE"]
    # With tags or a key of ours ECR asks for a role that makes the repositories.
    assert "ResourceTags" not in template
    assert template["EncryptionConfiguration"] == {"EncryptionType": "AES256"}
    for rule in stack.resources("Registry", "AWS::ECR::PullThroughCacheRule"):
        assert rule["DependsOn"]


def test_nodes_and_flux_may_fill_it_and_nothing_else(synthesise: Synthesise) -> None:
    filling = who_may(synthesise("filling", cached()), FILL)

    assert len(filling) == 4
    for part in ("SystemNodesRole", "KarpenterNodeRole", "FluxSourceRole", "FluxInstallerRole"):
        assert any(part in role for role in filling), (part, filling)
    assert all(":repository/local/*" in json.dumps(resources) for resources in filling.values())


def test_nodes_of_auto_mode_may_fill_it(synthesise: Synthesise) -> None:
    data = cached()
    data["cluster"]["compute"] = "auto-mode"

    assert any("NodeRole" in role for role in who_may(synthesise("auto", data), FILL))


def test_flux_is_installed_from_the_cache_with_its_images(synthesise: Synthesise) -> None:
    release = synthesise("flux", cached()).only("Delivery", "Custom::AWSCDK-EKS-HelmChart")
    values = json.dumps(release["Values"])
    ecr = "000000000000.dkr.ecr.us-east-2.amazonaws.com/local/ghcr"

    assert release["Repository"] == f"oci://{ecr}/fluxcd-community/charts/flux2"
    for controller in ("helm", "kustomize", "source"):
        assert f"{ecr}/fluxcd/{controller}-controller" in values
    assert '"ghcr.io' not in values


def test_a_mirror_needs_no_stack_and_no_permissions(synthesise: Synthesise) -> None:
    mirrored = synthesise("mirror", cached(registry={"mirror": "mirror.example.com/all"}))

    assert "Registry" not in mirrored.templates
    assert who_may(mirrored, FILL) == {}
    assert who_may(mirrored, {"ecr:BatchGetImage"}) == {}


def test_flux_may_read_charts_in_the_registry_of_another_account(synthesise: Synthesise) -> None:
    elsewhere = "999999999999.dkr.ecr.us-east-2.amazonaws.com/all"
    reading = who_may(synthesise("elsewhere", cached(registry={"mirror": elsewhere})), {"ecr:BatchGetImage"})

    assert len(reading) == 2
    assert all(":999999999999:repository/all/charts/*" in json.dumps(each) for each in reading.values())
