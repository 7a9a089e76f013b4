"""Whether ECR can log in to the registries that it is to cache."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, problem

_SECRET = Operation("secretsmanager", "DescribeSecret")


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    registry = case.environment.registry
    if registry is None or registry.pull_through is None:
        return
    for host, arn in registry.pull_through.credentials.items():
        name = arn.partition(":secret:")[2][: -len("-XXXXXX")]
        fix = (
            f"aws secretsmanager create-secret --name {name} --region {case.environment.region} --secret-string "
            f"file://SECRET.json, with username and accessToken; then its ARN in {case.file}: "
            f"registry: {{pullThrough: {{credentials: {{{host}: ARN}}}}}}"
        )
        try:
            secret = ask(_SECRET, SecretId=arn)
        except Refusal as refused:
            if refused.code != "ResourceNotFoundException":
                raise
            yield problem(host, f"the account has no secret {arn}; stack Registry would fail", fix)
            continue
        if secret.get("DeletedDate"):
            yield problem(host, f"secret {name} is to be deleted; ECR could not log in", fix)
        else:
            yield ok(host, f"ECR logs in with secret {name}")


REGISTRY = AccountCheck("registry", (_SECRET,), _judge)
