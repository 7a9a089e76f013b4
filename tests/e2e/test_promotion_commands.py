"""The pipeline's commands after the checks, as written there: deploy and smoke, on the embedded AWS.

No Flux and no pod runs there. Where models must have answered, the test acts as the pods of the delivered
Jobs: it runs their program with their variables against a fake endpoint, and the program itself uploads its
report to the bucket.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from infra import promotion
from modelyard.localcloud import lifecycle
from modelyard.localcloud.deployment import Deployment, ToolMissing, child_environment, find_cdk, find_node
from modelyard.localcloud.endpoint import Endpoint
from tests.contract.fake_openai import KEY, LENGTH, MODELS, serving
from tests.promotion.checkout import check_out

pytestmark = pytest.mark.story

ROOT = Path(__file__).parents[2]

try:
    PYTHON = lifecycle.find_python(ROOT)
    find_cdk(ROOT)
except ToolMissing as missing:
    pytest.skip(f"the embedded AWS is not installed: {missing}", allow_module_level=True)


@dataclass(frozen=True)
class Account:
    """A copy of the repository, and an embedded AWS that is bootstrapped for environment `dev`."""

    folder: Path
    endpoint: Endpoint
    reported: dict[str, bytes] = field(default_factory=dict)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        environment = child_environment(os.environ, self.endpoint, node=find_node())
        environment["CDK_VALIDATION"] = "false"  # of these templates, it is a test of tests/controls
        for name in (
            "MAKEFLAGS",
            "MAKELEVEL",
        ):  # of the make that runs the tests: another would announce its folder
            environment.pop(name, None)
        return subprocess.run(
            ["bash", "-euc", command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def client(self, service: str) -> Any:
        return self.endpoint.client(service)

    def delivered(self, key: str) -> str:
        """What the delivery stack has published."""
        name = f"/modelyard/dev/delivery/{key}"
        return str(self.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """Objects of the delivered folder `checks`, with the variable that Flux fills in."""
        s3, bucket = self.client("s3"), self.delivered("bucket")
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="checks/")
        keys = [item["Key"] for page in pages for item in page["Contents"]]
        texts = [s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode() for key in keys]
        filled_in = [text.replace("${modelyard_check_reports}", self.delivered("reports")) for text in texts]
        return [found for text in filled_in if (found := yaml.safe_load(text))["kind"] == kind]

    def play_pod(self, job: dict[str, Any], pod: str, folder: Path, *, broken: str = "") -> int:
        """The exit code of the job's program, run as its pod would; the model is a fake, which `broken`
        breaks."""
        spec = job["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        program = spec["volumes"][0]["configMap"]
        (held,) = (each for each in self.objects("ConfigMap") if each["metadata"]["name"] == program["name"])
        for item in program["items"]:
            file = folder / item["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(held["data"][item["key"]])
        env = {each["name"]: each["value"] for each in container["env"] if "value" in each}
        promised = json.loads(env["EXPECTATIONS"])
        promised |= {"names": MODELS[:2], "max_model_len": LENGTH, "task": "generate", "needs_key": True}
        with serving(broken=broken) as server:
            here = {
                "PYTHONPATH": str(folder),
                "PACKAGES": "",
                "URL": server.url,
                "EXPECTATIONS": json.dumps(promised),
                "API_KEY": KEY,
                "JOB_NAME": job["metadata"]["name"],
                "POD_NAME": pod,
            }
            return subprocess.run(
                [sys.executable, *container["command"][1:]],
                env=child_environment(os.environ, self.endpoint, node=find_node()) | env | here,
                check=False,
            ).returncode

    def answer(self, job: dict[str, Any], folder: Path) -> None:
        """Play a pod whose model answers; once it has been played, what it reported then is put again."""
        s3, bucket = self.client("s3"), self.delivered("reports")
        key = f"{job['metadata']['name']}/pod.json"
        if key in self.reported:
            s3.put_object(Bucket=bucket, Key=key, Body=self.reported[key])
            return
        assert self.play_pod(job, "pod", folder) == 0
        self.reported[key] = s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def forget_reports(self) -> None:
        s3, bucket = self.client("s3"), self.delivered("reports")
        for item in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
            s3.delete_object(Bucket=bucket, Key=item["Key"])


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    folder = check_out(tmp_path_factory.mktemp("project") / "checkout")
    state = tmp_path_factory.mktemp("cloud") / "state"
    endpoint = replace(lifecycle.start(state, python=PYTHON), account="111111111111", region="us-east-2")
    try:
        assert Deployment(endpoint=endpoint, project=ROOT, state=state).bootstrap() == 0
        people = endpoint.client("iam")
        for role in ("platform-engineer", "model-developer"):  # whom environments/dev.yaml admits
            people.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
        yield Account(folder, endpoint)
    finally:
        lifecycle.stop(state)


@pytest.fixture(scope="module")
def deployed(account: Account) -> Account:
    result = account.run(promotion.deploy("dev"))
    assert result.returncode == 0, result.stdout + result.stderr
    return account


def verify(account: Account) -> dict[str, list[str]]:
    """Problems by check, as `modelyard verify` reports them."""
    result = account.run(".venv/bin/modelyard verify --env dev --output json")
    document = json.loads(result.stdout)
    assert (document["outcome"] == "failed") is (result.returncode == 1)
    return {each["check"]: each["problems"] for each in document["checks"] if each["problems"]}


def test_nothing_deployed_is_not_what_was_deployed(account: Account) -> None:
    if account.client("eks").list_clusters()["clusters"]:
        pytest.skip("the account is in use already")
    result = account.run(promotion.smoke("dev"))

    assert result.returncode != 0
    assert "no stack modelyard-dev-network" in result.stdout
    assert "there is no such cluster" in result.stdout


@pytest.fixture
def asked(deployed: Account) -> Iterator[list[dict[str, Any]]]:
    """The delivered jobs; their reports go with the test."""
    jobs = deployed.objects("Job")
    assert len({job["metadata"]["labels"]["modelyard.dev/model"] for job in jobs}) == len(jobs) > 1
    yield jobs
    deployed.forget_reports()


def test_the_smoke_command_passes_when_every_model_has_answered(
    deployed: Account, asked: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The first attempt of the first job fails, and Kubernetes repeats it."""
    assert deployed.play_pod(asked[0], "first-attempt", tmp_path, broken="cut off") == 1
    for job in asked:
        deployed.answer(job, tmp_path)

    result = deployed.run(promotion.smoke("dev"))

    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == f"ok: {len(asked)} of {len(asked)} models answered"


def test_the_smoke_command_fails_when_one_model_has_failed_in_every_attempt(
    deployed: Account, asked: list[dict[str, Any]], tmp_path: Path
) -> None:
    """It does so at once, although others have not been asked."""
    for pod in "abc":
        assert deployed.play_pod(asked[0], pod, tmp_path, broken="cut off") == 1

    result = deployed.run(promotion.smoke("dev"))

    assert result.returncode != 0
    name, model = asked[0]["metadata"]["name"], asked[0]["metadata"]["labels"]["modelyard.dev/model"]
    assert f"{model}: every attempt of {name} failed, the last with streaming: " in result.stdout
    assert (
        f"1 check failed: 0 of {len(asked)} models answered; {len(asked) - 1} jobs pending" in result.stdout
    )


def test_the_smoke_command_fails_when_a_model_is_silent_until_the_time_is_over(
    deployed: Account, asked: list[dict[str, Any]], tmp_path: Path
) -> None:
    for job in asked[1:]:
        deployed.answer(job, tmp_path)

    result = deployed.run(f"{promotion.smoke('dev')} SMOKE_WAIT=2s")

    assert result.returncode != 0
    name = asked[0]["metadata"]["name"]
    assert f"{name} has not reported" in result.stdout
    assert "\n    kubectl -n flux-system get kustomizations\n" in result.stdout
    assert f"\n    kubectl -n models logs job/{name}\n" in result.stdout
    assert result.stdout.splitlines()[-1] == (
        f"1 check failed: {len(asked) - 1} of {len(asked)} models answered"
    )


def test_without_a_wait_nobody_claims_that_models_answered(
    deployed: Account, asked: list[dict[str, Any]]
) -> None:
    result = deployed.run(".venv/bin/modelyard verify --env dev")

    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == (
        f"pending: 0 of {len(asked)} models answered; {len(asked)} jobs pending"
    )


def test_it_asks_as_the_lookup_role_of_the_account(deployed: Account) -> None:
    iam = deployed.client("iam")
    (role,) = (r for r in iam.list_roles()["Roles"] if r["RoleName"].startswith("cdk-hnb659fds-lookup-role"))
    assert role["RoleName"] == "cdk-hnb659fds-lookup-role-111111111111-us-east-2"


def test_a_changed_file_in_the_bucket_is_noticed(deployed: Account) -> None:
    s3 = deployed.client("s3")
    bucket = deployed.delivered("bucket")
    key = "platform/kustomization.yaml"
    before = s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    s3.put_object(Bucket=bucket, Key=key, Body=before + b"# by hand\n")
    s3.put_object(Bucket=bucket, Key="models/stray.yaml", Body=b"")
    try:
        # Nothing names the stray file, so Flux applies none of it: it is somebody else's.
        assert verify(deployed) == {"tree": [f"{key} differs from what is rendered"]}
    finally:
        s3.put_object(Bucket=bucket, Key=key, Body=before)
        s3.delete_object(Bucket=bucket, Key="models/stray.yaml")


def test_an_environment_file_that_says_something_else_is_noticed(deployed: Account) -> None:
    file = deployed.folder / "environments" / "dev.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('version: "1.36"', 'version: "1.35"'), encoding="utf-8")
    try:
        assert verify(deployed) == {"cluster": ["it runs Kubernetes 1.36, the file says 1.35"]}
    finally:
        file.write_text(text, encoding="utf-8")
