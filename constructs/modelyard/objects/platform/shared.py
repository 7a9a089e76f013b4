"""Objects shared by all models of an environment."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.names import CHECKS_ACCOUNT, WEIGHTS_FETCH, WEIGHTS_READER
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.network import GATEWAYS
from modelyard.objects.platform.accelerator_pool import accelerator_pool, price_overlays
from modelyard.objects.platform.enforced_policies import enforced_network_policies
from modelyard.objects.platform.general_pool import general_pool
from modelyard.objects.platform.kept_replicas import kept_replicas
from modelyard.objects.platform.lustre_owner import lustre_owner
from modelyard.objects.platform.model_cache import shared_model_cache
from modelyard.objects.platform.namespace import model_namespace
from modelyard.objects.platform.secrets import external_secret, synchronized_secrets
from modelyard.objects.platform.team_namespace import team_namespace
from modelyard.objects.platform.team_share import team_share
from modelyard.planning import Plan


def platform(plan: Plan) -> Iterator[Manifest]:
    """All objects that the models of `plan` share, except gateways and monitoring."""
    environment = plan.environment
    yield from model_namespace(environment, plan.runner)
    if environment.cluster.auto_mode and environment.cluster.existing is None:
        yield from enforced_network_policies()
    # Always: it has to be there before a number becomes a range.
    yield from kept_replicas(environment.cluster.version)
    if environment.cluster.general_vcpu:
        yield from general_pool(environment)
    for name, pool in environment.pools.items():
        yield from accelerator_pool(name=name, pool=pool, environment=environment)
    yield from price_overlays(environment, plan.prices)
    kinds = [pool.accelerator for pool in environment.pools.values()]
    for name, team in environment.teams.items():
        yield from team_namespace(
            name=environment.team_namespace(name),
            team=name,
            pools=kinds,
            granted=team.notebooks,
            models=environment.namespace,
            monitoring=environment.monitoring.namespace if environment.monitoring.enabled else None,
            auto_mode=environment.cluster.auto_mode,
        )
        if team.accelerators is not None:
            yield from team_share(
                namespace=environment.namespace,
                team=name,
                pools=kinds,
                granted=team.accelerators,
                rollouts=plan.rollout_room(name),
            )
    yield from shared_model_cache(
        namespace=environment.namespace,
        cache=environment.cache,
        by_role=environment.mounts_by_role,
    )
    if environment.cache.file_system == "lustre":
        yield from lustre_owner(environment.cache)
    accounts = {
        WEIGHTS_READER: environment.readable_buckets,
        WEIGHTS_FETCH: any(model.model.downloaded for model in plan.models),
        CHECKS_ACCOUNT: environment.reports_checks,
    }
    for name in (name for name, needed in accounts.items() if needed):
        yield manifest(
            api_version="v1",
            kind="ServiceAccount",
            name=name,
            namespace=environment.namespace,
            labels=platform_labels("identity"),
            automountServiceAccountToken=False,
        )
    paging = environment.monitoring.receiver_secrets  # of the namespace that pages
    exposed = bool(environment.gateways.internal or environment.gateways.public)
    if environment.secrets:
        yield from synchronized_secrets(
            namespace=environment.namespace,
            region=environment.region,
            secrets={name: key for name, key in environment.secrets.items() if name not in paging},
            readers=[
                *([GATEWAYS] if exposed else []),
                *([environment.monitoring.namespace] if paging else []),
            ],
            role=environment.secrets_reader,
        )
    for name in paging:  # Alertmanager mounts them, and waits until they are there
        yield external_secret(
            name=name, namespace=environment.monitoring.namespace, key=environment.secrets[name]
        )
