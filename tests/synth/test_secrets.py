"""Secrets: names in templates, values never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.synth.conftest import Synthesis, environment_file


def test_makes_the_secrets_that_the_environment_names_and_no_value(each: Synthesis) -> None:
    secrets = each.properties("Secrets", "AWS::SecretsManager::Secret")

    assert sorted(secret["Name"] for secret in secrets) == sorted(
        environment_file(each.name)["secrets"].values()
    )
    assert f"{each.name}/inference/hf-token" in {secret["Name"] for secret in secrets}
    for secret in secrets:
        assert "KmsKeyId" in secret
        assert secret.keys().isdisjoint({"SecretString", "GenerateSecretString"})


def test_external_secrets_reads_exactly_these_secrets(dev: Synthesis) -> None:
    resources = dev.templates["Secrets"]["Resources"]
    (name,) = [n for n, r in resources.items() if r["Type"] == "AWS::SecretsManager::Secret"]
    (policy,) = dev.properties("Secrets", "AWS::IAM::Policy")

    reads, decrypts = policy["PolicyDocument"]["Statement"]
    assert set(reads["Action"]) == {"secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"}
    assert reads["Resource"] == {"Ref": name}
    assert decrypts["Action"] == "kms:Decrypt"
    assert decrypts["Resource"] != "*"

    association = dev.only("Secrets", "AWS::EKS::PodIdentityAssociation")
    assert (association["Namespace"], association["ServiceAccount"]) == (
        "external-secrets",
        "external-secrets",
    )


def test_two_logical_names_may_share_a_secret(synthesise: Callable[[str, dict[str, Any]], Synthesis]) -> None:
    data = environment_file("local")
    data["secrets"] = {"hf-token": "shared/hf", "hub-token": "shared/hf", "other": "local/other"}

    secrets = synthesise("shared-secret", data).properties("Secrets", "AWS::SecretsManager::Secret")

    assert sorted(secret["Name"] for secret in secrets) == ["local/other", "shared/hf"]


def test_an_environment_without_secrets_has_no_secrets_stack(
    synthesise: Callable[[str, dict[str, Any]], Synthesis],
) -> None:
    data = environment_file("local")
    data["secrets"] = {}

    assert "Secrets" not in synthesise("no-secrets", data).templates
