"""The CDK CLI's environment: none of the user's AWS settings get in, and no AWS account is reachable."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelyard.localcloud.deployment import AssemblyRefused, child_environment, target_of
from modelyard.localcloud.endpoint import NO_FILE, Endpoint

ENDPOINT = Endpoint(url="http://127.0.0.1:4566", pid=1, account="123456789012", region="eu-central-1")

USER = {
    "HOME": "/home/someone",
    "PATH": "/usr/bin",
    "AWS_PROFILE": "production",
    "AWS_ACCESS_KEY_ID": "AKIAREALREALREALREAL",
    "AWS_SECRET_ACCESS_KEY": "real",
    "AWS_SESSION_TOKEN": "real",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/real",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/real",
    "AWS_ENDPOINT_URL_S3": "https://s3.amazonaws.com",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_CONFIG_FILE": "/home/someone/.aws/config",
    "CDK_DEFAULT_ACCOUNT": "999999999999",
    "CDK_VALIDATION": "false",
    "https_proxy": "http://proxy:3128",
    "HTTP_PROXY": "http://proxy:3128",
    "NODE_OPTIONS": "--require /somewhere",
}


@pytest.fixture
def child() -> dict[str, str]:
    return child_environment(USER, ENDPOINT, node=Path("/wheel/bin/node"))


def test_no_aws_setting_of_the_user_passes(child: dict[str, str]) -> None:
    passed = {name: value for name, value in child.items() if name.startswith("AWS_")}

    assert passed == {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
        "AWS_ACCESS_KEY_ID": "123456789012",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_CONFIG_FILE": NO_FILE,
        "AWS_SHARED_CREDENTIALS_FILE": NO_FILE,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def test_the_configuration_files_cannot_exist() -> None:
    assert not Path(NO_FILE).exists()
    assert not Path(NO_FILE).parent.is_dir()


def test_no_proxy_and_no_code_of_the_user_comes_between(child: dict[str, str]) -> None:
    assert not {"https_proxy", "HTTP_PROXY", "NODE_OPTIONS"} & child.keys()


def test_the_cli_phones_nobody(child: dict[str, str]) -> None:
    assert child["CDK_DISABLE_CLI_TELEMETRY"] == "true"
    assert child["CDK_DISABLE_VERSION_CHECK"] == "true"
    assert "CDK_DEFAULT_ACCOUNT" not in child


def test_the_wheels_node_comes_first_and_the_rest_stays(child: dict[str, str]) -> None:
    assert child["PATH"].startswith("/wheel/bin:")
    assert child["PATH"].endswith(":/usr/bin")
    assert child["HOME"] == "/home/someone"
    assert child["CDK_VALIDATION"] == "false"


def manifest(folder: Path, *environments: str) -> Path:
    stacks = ", ".join(
        f'"S{n}": {{"type": "aws:cloudformation:stack", "environment": "{environment}"}}'
        for n, environment in enumerate(environments)
    )
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(f'{{"artifacts": {{{stacks}}}}}')
    return folder


def test_the_stacks_name_account_and_region(tmp_path: Path) -> None:
    assembly = manifest(tmp_path, "aws://123456789012/eu-west-1", "aws://123456789012/eu-west-1")

    assert target_of(assembly) == ("123456789012", "eu-west-1")


def test_stacks_without_an_environment_leave_it_to_the_options(tmp_path: Path) -> None:
    assert target_of(manifest(tmp_path, "aws://unknown-account/unknown-region")) is None


def test_stages_are_looked_into(tmp_path: Path) -> None:
    manifest(tmp_path / "stage", "aws://123456789012/eu-west-1")
    (tmp_path / "manifest.json").write_text(
        '{"artifacts": {"Stage": {"type": "cdk:cloud-assembly", "properties": {"directoryName": "stage"}}}}'
    )

    assert target_of(tmp_path) == ("123456789012", "eu-west-1")


def test_two_environments_are_refused(tmp_path: Path) -> None:
    assembly = manifest(tmp_path, "aws://123456789012/eu-west-1", "aws://123456789012/eu-west-2")

    with pytest.raises(AssemblyRefused, match="2 environments, got aws://123456789012/eu-west-1, aws://"):
        target_of(assembly)
