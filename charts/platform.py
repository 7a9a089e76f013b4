"""Chart of what all models of an environment share."""

from __future__ import annotations

from cdk8s import Chart
from constructs import Construct

from modelyard.k8s import AcceleratorPool, GeneralPool, ModelNamespace, SharedModelCache, SynchronizedSecrets
from modelyard.k8s.accelerator_pool import StatedPrices
from modelyard.k8s.gateways import ModelGateways
from modelyard.k8s.labels import platform_labels
from modelyard.k8s.lustre_owner import LustreOwner
from modelyard.k8s.manifest import manifest
from modelyard.k8s.network_policies import EnforcedNetworkPolicies
from modelyard.k8s.server_network import GATEWAYS
from modelyard.k8s.team_namespace import TeamNamespace
from modelyard.k8s.team_share import TeamShare
from modelyard.planning import Plan
from modelyard.planning.identity import CHECKS_ACCOUNT, WEIGHTS_READER
from modelyard.planning.team_checks import rollout_room


class PlatformChart(Chart):
    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        environment = plan.environment
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        ModelNamespace(self, "Models", environment=environment)
        if environment.cluster.auto_mode:
            EnforcedNetworkPolicies(self, "NetworkPolicies")
        if environment.cluster.general_nodes.vcpu_limit:
            GeneralPool(self, "GeneralPool", environment=environment)
        for name, pool in environment.pools.items():
            AcceleratorPool(self, f"Pool-{name}", name=name, pool=pool, environment=environment)
        StatedPrices(self, "Prices", environment=environment)
        kinds = [pool.accelerator for pool in environment.pools.values()]
        for name, team in environment.teams.items():
            TeamNamespace(
                self,
                f"Team-{name}",
                name=environment.team_namespace(name),
                team=name,
                pools=kinds,
                granted=team.notebooks,
            )
            if team.accelerators is not None:
                TeamShare(
                    self,
                    f"Share-{name}",
                    namespace=environment.namespace,
                    team=name,
                    pools=kinds,
                    granted=team.accelerators,
                    rollouts=rollout_room(plan.models, name),
                )
        SharedModelCache(
            self,
            "ModelCache",
            namespace=environment.namespace,
            cache=environment.cache,
        )
        if environment.cache.file_system == "lustre":
            LustreOwner(self, "CacheOwner", cache=environment.cache)
        accounts = {WEIGHTS_READER: environment.readable_buckets, CHECKS_ACCOUNT: environment.reports_checks}
        for name in (name for name, needed in accounts.items() if needed):
            manifest(
                self,
                f"Account-{name}",
                api_version="v1",
                kind="ServiceAccount",
                name=name,
                namespace=environment.namespace,
                labels=platform_labels("identity"),
                automountServiceAccountToken=False,
            )
        exposed = bool(environment.gateways.internal or environment.gateways.public)
        if environment.secrets:
            SynchronizedSecrets(
                self,
                "Secrets",
                namespace=environment.namespace,
                region=environment.region,
                secrets=environment.secrets,
                readers=[GATEWAYS] if exposed else [],
            )
        if exposed:
            ModelGateways(self, "Gateways", environment=environment)
