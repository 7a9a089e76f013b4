"""Environment prod on the embedded AWS, with a fake Kubernetes API as its cluster, for the day-2 pages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from modelyard.localcloud import lifecycle
from tests.operations.fake_kubernetes import FakeKubernetes, busy

ACCOUNT, REGION, CLUSTER = "333333333333", "us-east-2", "modelyard-prod"
_PEOPLE = ("platform-engineer", "break-glass", "model-on-call")  # EKS refuses principals that do not exist


@contextmanager
def deployed_prod(folder: Path, state: Path, version: str) -> Iterator[dict[str, str]]:
    """Deploy the project in `folder`, with Kubernetes `version`; yields the variables for its commands."""
    settings = folder / "environments" / "prod.yaml"
    text = settings.read_text(encoding="utf-8")
    assert 'version: "1.36"' in text
    settings.write_text(text.replace('version: "1.36"', f'version: "{version}"'), encoding="utf-8")
    try:
        started = lifecycle.start(state, python=lifecycle.find_python(folder))
        endpoint = replace(started, account=ACCOUNT, region=REGION)
        for name in _PEOPLE:
            endpoint.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")
        up = subprocess.run(
            [sys.executable, "-m", "modelyard.localcloud", "up", "--env", "prod", "--state", str(state)],
            cwd=folder,
            env={
                **os.environ,
                "CDK_VALIDATION": "false",
            },  # of these templates, it is a test of tests/controls
            capture_output=True,
            text=True,
            check=False,
        )
        assert up.returncode == 0, up.stdout + up.stderr
        with busy(FakeKubernetes()).served() as cluster:
            arn = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{CLUSTER}"
            yield {
                "AWS_ENDPOINT_URL": endpoint.url,
                "AWS_ACCESS_KEY_ID": ACCOUNT,
                "AWS_SECRET_ACCESS_KEY": "local",
                "AWS_REGION": REGION,
                "AWS_DEFAULT_REGION": REGION,
                "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_PAGER": "",
                "CDK_DISABLE_CLI_TELEMETRY": "true",
                "CDK_DISABLE_VERSION_CHECK": "true",
                "CDK_HOME": str(state / "cdk-home"),
                "NO_PROXY": "127.0.0.1,localhost",
                "KUBECONFIG": str(cluster.kubeconfig(folder / "kubeconfig", arn)),
            }
    finally:
        lifecycle.stop(state)
