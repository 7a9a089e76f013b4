"""Commands to run after a key was changed."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.live.account.secrets import SecretKind
from modelyard.planning import Plan
from modelyard.spec import Environment


def after_rotation(
    name: str,
    kind: SecretKind,
    planned: Plan | None,
    environment: Environment,
    before: str | None,
    version: str,
) -> Iterator[str]:
    """How to activate the new key. A server accepts one key, which it reads at start."""
    target, region, namespace = environment.secrets[name], environment.region, environment.namespace
    kubectl = f"kubectl -n {namespace}"
    yield f"{name}: version {version} of {target} is current, a new random key; no server uses it yet."
    yield "A server accepts one key, the one it read when it started, so clients change at the restart, replica by replica:"
    yield f"  {kubectl} annotate externalsecret {name} force-sync={version} --overwrite"
    litellm = environment.litellm is not None
    for model in planned.models if planned and kind == "key" else ():
        if model.model.access.api_key != name or model.model.batch is not None:
            continue
        if model.serving.nodes > 1:
            yield f"  {kubectl} delete pods -l leaderworkerset.sigs.k8s.io/name={model.name}"
        else:
            yield f"  {kubectl} rollout restart deployment/{model.name}"
    if litellm:
        yield f"  {kubectl} rollout restart deployment/litellm"
    yield "Clients read it with:"
    yield f"  aws secretsmanager get-secret-value --secret-id {target} --query SecretString --output text --region {region}"
    if before:
        yield "Back to the key before:"
        yield (
            f"  aws secretsmanager update-secret-version-stage --secret-id {target} --version-stage AWSCURRENT "
            f"--move-to-version-id {before} --remove-from-version-id {version} --region {region}"
        )
