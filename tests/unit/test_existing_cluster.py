"""An environment in a cluster that somebody else manages: what is rendered for it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from modelyard.objects.composition import default_objects
from modelyard.planning import Plan
from modelyard.planning.components import missing_components, needed_components
from modelyard.planning.identity import cluster_addons
from modelyard.releases import addons, addons_everywhere, charts, components, definitions
from modelyard.spec import Environment
from tests.unit.given import a_model, a_plan, an_environment, codes

NETWORK = {"vpc": {"id": "vpc-0a1b2c3d4e5f60718", "privateSubnets": {}}}
ROLE = "arn:aws:iam::123456789012:role/external-secrets"
KARPENTER = {"has": {"karpenter": "1.14.1"}, "nodeRole": "shared-nodes"}


def in_shared(
    existing: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **changes: Any
) -> Environment:
    """An environment in cluster `shared`, which has what `existing` says."""
    zones = an_environment().availability_zones
    vpc = NETWORK["vpc"] | {"privateSubnets": {zone: f"subnet-0a1b2c3d{i}" for i, zone in enumerate(zones)}}
    there = {"securityGroup": "sg-0a1b2c3d4e5f60718"} | (existing or {})
    return an_environment(
        **{
            "network": {"vpc": vpc, "endpoints": "none"},
            "cluster": {"name": "shared", "existing": there} | (cluster or {}),
        }
        | changes
    )


def objects(plan: Plan, kind: str) -> dict[str, Any]:
    return {
        item["metadata"]["name"]: item
        for items in default_objects(plan).values()
        for item in items
        if item["kind"] == kind
    }


class TestFile:
    @pytest.mark.parametrize(
        ("existing", "cluster", "changes", "says"),
        [
            ({}, {"name": None}, {}, "existing needs name"),
            ({}, {}, {"network": {}}, "cluster.existing needs network.vpc"),
            (
                {},
                {"deletionProtection": True},
                {},
                "deletionProtection: settings of a cluster that Modelyard",
            ),
            ({}, {"systemNodes": {"count": 3}}, {}, "systemNodes: settings of a cluster"),
            ({}, {"publicAccessCidrs": ["192.0.2.0/24"]}, {}, "publicAccessCidrs: settings"),
            ({"has": {"karpentre": "1.14.1"}}, {}, {}, "did you mean 'karpenter'?"),
            ({"has": {"vpc-cni": "v1.22.3-eksbuild.1"}}, {}, {}, "every cluster has it"),
            ({"has": {"keda": "newest"}}, {}, {}, "should match pattern"),
            ({"has": {"karpenter": "1.14.1"}}, {}, {}, "existing needs nodeRole"),
            ({}, {"compute": "auto-mode"}, {}, "existing needs nodeRole"),
            ({"nodeRole": "shared-nodes"}, {}, {}, "existing.nodeRole is for a Karpenter that is there"),
            (
                {"has": {"metrics-server": "v0.8.1"}},
                {"addonVersions": {"metrics-server": "v0.8.1-eksbuild.11"}},
                {},
                "addonVersions of metrics-server",
            ),
            ({}, {"addonVersions": {"coredns": "v1.14.3-eksbuild.3"}}, {}, "addonVersions of coredns"),
            (
                {"has": {"external-secrets": "2.4.1"}},
                {},
                {"secrets": {"hf-token": "lab/hf-token"}},
                "cluster.existing needs secretsRole",
            ),
            (
                {"has": {"aws-efs-csi-driver": "v3.4.1-eksbuild.1"}},
                {},
                {"cache": {"fileSystem": "s3-files"}},
                "s3-files gives aws-efs-csi-driver a role",
            ),
            ({"secretsRole": ROLE}, {}, {}, "secretsRole is for secrets that an External Secrets reads"),
        ],
    )
    def test_what_does_not_go_together_is_said(
        self, existing: dict[str, Any], cluster: dict[str, Any], changes: dict[str, Any], says: str
    ) -> None:
        with pytest.raises(ValidationError, match=says.replace("?", r"\?")):
            in_shared(existing, cluster, **changes)

    def test_prefix_delegation_is_a_setting_of_its_own_network_plugin(self) -> None:
        network = in_shared().network.model_dump() | {"prefixDelegation": True}

        with pytest.raises(ValidationError, match=r"network\.prefixDelegation"):
            in_shared(network=network)

    def test_endpoints_in_a_vpc_of_others_are_stated_with_its_range(self) -> None:
        """They answer for AWS in the whole VPC, and would refuse everybody outside of the default range."""
        network = {"vpc": in_shared().network.vpc}
        stated = network | {"endpoints": "essential", "cidr": "10.8.0.0/16"}

        for unsaid in (network, network | {"endpoints": "all"}, network | {"cidr": "10.8.0.0/16"}):
            with pytest.raises(ValidationError, match=r"write network\.endpoints: none"):
                in_shared(network=unsaid)
        assert in_shared(network=stated).network.endpoints == "essential"

    def test_defaults_that_are_written_out_are_no_settings(self) -> None:
        written = in_shared().model_dump(mode="json")

        assert Environment.model_validate(written).cluster.existing is not None


class TestComponents:
    def test_every_component_leaves_out_parts_that_are_installed_otherwise(self) -> None:
        parts = [release for each in components().values() for release in each.releases]

        assert len(parts) == len(set(parts))
        rest = set(charts()) - set(parts)
        assert rest == {
            "flux2",
            "kube-prometheus-stack",
        }  # the first delivers, the second is monitoring.install
        for part in set(parts) - set(charts()):
            assert definitions(part).path

    def test_what_a_cluster_has_is_installed_by_nobody_else(self) -> None:
        models = [
            a_model(name="scaled", replicas={"min": 1, "max": 2}),
            a_model(name="plain"),
        ]
        alone = a_plan(*models, environment=in_shared(secrets={"hf-token": "lab/hf-token"}))
        installed = set(objects(alone, "HelmRelease"))

        for name in needed_components(alone.environment, alone.models):
            has = {"has": {name: "99.0"}, "nodeRole": "nodes" if name == "karpenter" else None}
            role = ROLE if name == "external-secrets" else None
            environment = in_shared(has | {"secretsRole": role}, secrets={"hf-token": "lab/hf-token"})
            left = set(objects(a_plan(*models, environment=environment), "HelmRelease"))
            assert installed - left == set(components()[name].releases), name
            assert missing_components(environment, alone.models) == (
                needed_components(environment, alone.models) - {name}
            )

    def test_nodes_without_a_taint_are_added_only_if_the_file_says_so(self) -> None:
        """Pods of others would land there, on another architecture than their images may have."""
        stated = in_shared(cluster={"generalNodes": {"vcpuLimit": 16}}).model_dump(mode="json")["cluster"]

        pools = [
            set(objects(a_plan(a_model(), environment=each), "NodePool"))
            for each in (an_environment(), in_shared(), in_shared(cluster=stated))
        ]

        assert pools == [{"g6e", "general"}, {"g6e"}, {"g6e", "general"}]

    def test_the_gpu_operator_stays_off_nodes_that_get_a_plugin_of_ours(self) -> None:
        def labels(environment: Environment) -> Any:
            pool = objects(a_plan(a_model(), environment=environment), "NodePool")["g6e"]
            return pool["spec"]["template"]["metadata"]["labels"]

        theirs = in_shared({"has": {"nvidia-device-plugin": "0.18.0"}})

        assert labels(in_shared())["nvidia.com/gpu.deploy.operands"] == "false"
        assert "nvidia.com/gpu.deploy.operands" not in labels(theirs) | labels(an_environment())

    @pytest.mark.parametrize(
        ("has", "own"), [({}, True), ({"keda": "2.20.1"}, True), ({"nvidia-device-plugin": "0.18.0"}, False)]
    )
    def test_gpu_pods_of_others_stay_off_unless_their_plugin_would_too(
        self, has: dict[str, str], own: bool
    ) -> None:
        """EKS lets each of them tolerate `nvidia.com/gpu`."""
        plan = a_plan(a_model(), environment=in_shared({"has": has}))
        pool = objects(plan, "NodePool")["g6e"]["spec"]["template"]["spec"]
        server = objects(plan, "Deployment")[plan.models[0].name]["spec"]["template"]["spec"]

        assert (
            {"key": "modelyard.dev/pool", "value": "g6e", "effect": "NoSchedule"} in pool["taints"]
        ) is own
        assert {"nvidia.com/gpu"} < {each["key"] for each in pool["taints"]} or not own
        assert {each["key"] for each in server["tolerations"]} == {each["key"] for each in pool["taints"]}

    def test_the_addons_of_a_cluster_are_those_that_it_lacks(self) -> None:
        environment = in_shared({"has": {"aws-efs-csi-driver": "v3.0.0-eksbuild.1"}})

        made = cluster_addons(environment)

        assert set(made) == set(addons()) - addons_everywhere() - {"aws-efs-csi-driver", "aws-fsx-csi-driver"}

    def test_its_karpenter_gives_nodes_a_role_that_it_may_pass_on(self) -> None:
        theirs, ours = (
            objects(a_plan(a_model(), environment=in_shared(existing)), "EC2NodeClass")["g6e"]["spec"]
            for existing in (KARPENTER, {})
        )

        assert theirs["role"] == "shared-nodes"
        assert "instanceProfile" not in theirs
        assert ours["instanceProfile"] == "shared-node"
        assert "role" not in ours

    @pytest.mark.parametrize("own", [None, "sg-0fedcba9876543210"])
    def test_nodes_join_the_group_that_the_file_names(self, own: str | None) -> None:
        environment = in_shared({"nodeSecurityGroup": own})

        spec = objects(a_plan(a_model(), environment=environment), "EC2NodeClass")["g6e"]["spec"]

        assert spec["securityGroupSelectorTerms"] == [{"id": own or "sg-0a1b2c3d4e5f60718"}]

    def test_its_auto_mode_gives_nodes_a_role_of_its_own(self) -> None:
        environment = in_shared({"nodeRole": "AmazonEKSAutoNodeRole"}, {"compute": "auto-mode"})

        node_class = objects(a_plan(a_model(), environment=environment), "NodeClass")["g6e"]

        assert node_class["spec"]["role"] == "AmazonEKSAutoNodeRole"

    def test_its_external_secrets_assumes_a_role_that_reads_these_secrets(self) -> None:
        environment = in_shared(
            {"has": {"external-secrets": "2.4.1"}, "secretsRole": ROLE}, secrets={"hf-token": "lab/hf-token"}
        )

        [store] = objects(a_plan(a_model(), environment=environment), "ClusterSecretStore").values()

        reader = "arn:aws:iam::123456789012:role/modelyard-lab-secrets"
        assert store["spec"]["provider"]["aws"]["role"] == environment.secrets_reader == reader

    @pytest.mark.parametrize(
        ("has", "options"),
        [({}, ["tls", "iam"]), ({"aws-efs-csi-driver": "v3.4.1-eksbuild.1"}, ["tls"])],
    )
    def test_its_efs_driver_mounts_as_whom_it_likes(self, has: dict[str, str], options: list[str]) -> None:
        """Only a driver that is installed with the environment has the role that the file system admits."""
        plan = a_plan(a_model(), environment=in_shared({"has": has}))

        assert objects(plan, "PersistentVolume")["model-cache-models"]["spec"]["mountOptions"] == options

    def test_what_it_has_is_watched_wherever_it_runs(self) -> None:
        [monitor] = [
            each
            for name, each in objects(
                a_plan(a_model(), environment=in_shared(KARPENTER)), "PodMonitor"
            ).items()
            if name == "karpenter"
        ]

        assert monitor["spec"]["namespaceSelector"] == {"any": True}
        assert monitor["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": "karpenter"}

    def test_its_own_prometheus_is_not_made_to_count_twice(self) -> None:
        environment = in_shared(KARPENTER, monitoring={"install": False})

        assert "karpenter" not in objects(a_plan(a_model(), environment=environment), "PodMonitor")


class TestVersions:
    @pytest.mark.parametrize(
        ("kubernetes", "karpenter", "found"),
        [
            ("1.36", "1.14.1", []),
            ("1.36", "v1.13.0", []),
            ("1.36", "1.12.9", ["CLUSTER001"]),  # does not run on 1.36
            ("1.35", "1.12.9", []),
            ("1.35", "1.10.2", ["CLUSTER001"]),  # does not know placement groups
        ],
    )
    def test_a_karpenter_must_know_the_cluster_and_our_objects(
        self, kubernetes: str, karpenter: str, found: list[str]
    ) -> None:
        environment = in_shared(
            {"has": {"karpenter": karpenter}, "nodeRole": "nodes"},
            {"version": kubernetes, "nodeRepair": False},
        )

        assert codes(a_plan(a_model(), environment=environment).findings) == found

    def test_the_version_of_what_nobody_uses_is_nobodys_concern(self) -> None:
        environment = in_shared({"has": {"keda": "2.8.0"}})

        assert "CLUSTER001" not in codes(a_plan(a_model(), environment=environment).findings)
        scaled = a_plan(a_model(replicas={"min": 1, "max": 2}), environment=environment)
        [finding] = [each for each in scaled.findings if each.code == "CLUSTER001"]
        assert finding.field == ("cluster", "existing", "has", "keda")
        assert "keda 2.8.0" in finding.message
        assert "2.9" in finding.message

    @pytest.mark.parametrize(
        ("changes", "gates"),
        [
            ({"cluster": {"nodeRepair": False}}, []),
            ({}, ["NodeRepair"]),
            (
                {
                    "cluster": {"nodeRepair": False},
                    "pools": {
                        "g6e": {
                            "accelerator": "l40s",
                            "limit": 8,
                            "nodes": 1,
                            "instanceTypes": ["g6e.xlarge"],
                        }
                    },
                },
                ["StaticCapacity"],
            ),
        ],
    )
    def test_gates_that_only_its_owner_can_open_are_named(
        self, changes: dict[str, Any], gates: list[str]
    ) -> None:
        cluster = changes.pop("cluster", {})
        planned = a_plan(a_model(), environment=in_shared(KARPENTER, cluster, **changes))

        found = [each.message for each in planned.findings if each.code == "CLUSTER002"]

        assert [gate for gate in ("NodeRepair", "StaticCapacity") if any(gate in f for f in found)] == gates
        assert len(found) == len(gates)

    def test_a_karpenter_of_ours_has_the_gates_that_it_needs(self) -> None:
        assert "CLUSTER002" not in codes(a_plan(a_model(), environment=in_shared()).findings)
