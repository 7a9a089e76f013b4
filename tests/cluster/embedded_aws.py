"""What `make up` has deployed, as the cluster behind its EKS needs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from modelyard.localcloud import journal, lifecycle
from modelyard.localcloud.endpoint import Endpoint
from modelyard.localcloud.entries import read as entries_of
from modelyard.names import KUSTOMIZATION
from modelyard.spec import Environment
from tests.cluster.api import Object

_RELEASE = "Custom::AWSCDK-EKS-HelmChart"


class NotUp(Exception):
    """Nothing that Flux could read; the text says why."""


def deploy(env: str, state: Path, log: Path) -> None:
    """As `make up` does, with its output in `log`; what runs already is left as it is.

    Raises:
        NotUp: it failed.
    """
    if lifecycle.running(state) is not None:
        return
    up = [sys.executable, "-m", "modelyard.localcloud", "up", "--env", env, "--state", str(state)]
    with log.open("w") as output:
        for command in (["modelyard", "render", "--env", env], up):
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
            if done.returncode:
                raise NotUp(f"not deployed; `make up ENV={env}` says why:\n{log.read_text()[-1500:]}")


@dataclass(frozen=True)
class EmbeddedAws:
    """`values`: of Flux' release, as CloudFormation handed them to the cluster, which recorded them."""

    endpoint: Endpoint
    values: dict[str, Any]

    @classmethod
    def of(cls, environment: Environment, state: Path) -> EmbeddedAws:
        """The one that runs in `state`.

        Raises:
            NotUp: none runs, or Flux is not how this environment is delivered.
        """
        found = lifecycle.running(state)
        if found is None:
            raise NotUp(f"no embedded AWS runs in {state}")
        standing = journal.current(entries_of(state / journal.FILE_NAME)).values()
        releases = [each for each in standing if each.type == _RELEASE]
        flux = [each.detail["Values"] for each in releases if each.detail.get("Chart") == "flux2"]
        if len(flux) != 1:
            raise NotUp(
                f"nothing for Flux in {state}: environment {environment.name} has delivery {environment.delivery}"
            )
        return cls(replace(found, account=environment.account, region=environment.region), flux[0])

    @property
    def variables(self) -> dict[str, str]:
        """With which programs meet it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint.url,
            "AWS_DEFAULT_REGION": self.endpoint.region,
            "AWS_REGION": self.endpoint.region,
            "AWS_ACCESS_KEY_ID": self.endpoint.account,
            "AWS_SECRET_ACCESS_KEY": "local",
        }

    @property
    def address(self) -> str:
        """Of its S3."""
        return self.endpoint.url.removeprefix("http://")

    def objects(self) -> Iterator[Object]:
        """Everything in the bucket that Flux reads."""
        [bucket] = [each for each in self.values["extraObjects"] if each["kind"] == "Bucket"]
        where = {"Bucket": bucket["spec"]["bucketName"]}
        s3 = self.endpoint.client("s3")
        for page in s3.get_paginator("list_objects_v2").paginate(**where):
            for each in page.get("Contents", []):
                path = Path(each["Key"])
                if path.suffix == ".yaml" and path.name != KUSTOMIZATION:
                    text = s3.get_object(**where, Key=each["Key"])["Body"].read()
                    yield yaml.load(text, Loader=yaml.CSafeLoader)
