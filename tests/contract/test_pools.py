"""NodePools and node classes: the effect of each pool option. The CRDs' own rules are checked in
test_custom_resources."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from modelyard.hardware import accelerator_of
from modelyard.objects.composition import check_usable, environment_objects
from tests.contract.conftest import Tree
from tests.unit.given import a_model, a_plan, an_environment


def spec(tree: Tree, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = tree.only(kind, name)["spec"]
    return found


def requirement(pool: dict[str, Any], key: str) -> list[str]:
    (found,) = (r for r in pool["template"]["spec"]["requirements"] if r["key"] == key)
    return list(found["values"])


def test_subnets_of_an_existing_vpc_are_named_by_the_pools_zones(tree: Callable[[str], Tree]) -> None:
    existing = tree("existing")

    both = [{"id": "subnet-0a1b2c3d4e5f60718"}, {"id": "subnet-0a1b2c3d4e5f60719"}]
    assert spec(existing, "EC2NodeClass", "g6e")["subnetSelectorTerms"] == both
    assert spec(existing, "EC2NodeClass", "block")["subnetSelectorTerms"] == both[1:]


def test_a_capacity_block_is_selected_and_nothing_else_is_launched(tree: Callable[[str], Tree]) -> None:
    existing = tree("existing")

    node_class = spec(existing, "EC2NodeClass", "block")
    assert node_class["capacityReservationSelectorTerms"] == [{"id": "cr-0123456789abcdef1"}]
    assert node_class["placementGroupSelector"] == {"name": "training"}
    pool = spec(existing, "NodePool", "block")
    assert requirement(pool, "karpenter.sh/capacity-type") == ["reserved"]
    # Karpenter takes them in this order, whatever the order here.
    assert requirement(spec(existing, "NodePool", "g6e"), "karpenter.sh/capacity-type") == [
        "reserved",
        "spot",
        "on-demand",
    ]


def test_a_static_pool_has_nodes_and_room_for_one_more(tree: Callable[[str], Tree]) -> None:
    pool = spec(tree("existing"), "NodePool", "static")

    assert (pool["replicas"], pool["limits"]) == (2, {"nodes": "3"})


def test_a_type_without_a_price_gets_the_stated_one_and_karpenter_the_gates_for_it(
    tree: Callable[[str], Tree],
) -> None:
    existing = tree("existing")

    overlay = spec(existing, "NodeOverlay", "price-trn2-48xlarge")
    assert overlay["price"] == "35.76"
    [only] = overlay["requirements"]  # more than one, and Karpenter does not take the price for the offering
    assert only["values"] == ["trn2.48xlarge"]
    settings = spec(existing, "HelmRelease", "karpenter")["values"]["settings"]
    assert settings["featureGates"] == {"nodeOverlay": True, "nodeRepair": False, "staticCapacity": True}
    assert settings["enableZonalShift"] is True
    usual = spec(tree("prod"), "HelmRelease", "karpenter")["values"]["settings"]["featureGates"]
    assert usual == {"nodeOverlay": False, "nodeRepair": True, "staticCapacity": False}


def test_each_network_card_has_one_efa_device_without_an_address(tree: Callable[[str], Tree]) -> None:
    interfaces = spec(tree("existing"), "EC2NodeClass", "block")["networkInterfaces"]

    assert [i for i in interfaces if i["interfaceType"] == "interface"] == [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    ]
    efa = [i["networkCardIndex"] for i in interfaces if i["interfaceType"] == "efa-only"]
    assert efa == list(range(16))  # p5en.48xlarge


def test_layers_are_unpacked_in_parallel_in_the_images_own_language(tree: Callable[[str], Tree]) -> None:
    al2023 = yaml.safe_load(spec(tree("prod"), "EC2NodeClass", "g6e")["userData"])
    bottlerocket = tomllib.loads(spec(tree("argocd"), "EC2NodeClass", "bottle")["userData"])

    assert al2023["spec"]["featureGates"] == {"FastImagePull": True}
    assert bottlerocket["settings"]["container-runtime"]["snapshotter"] == "soci"


@pytest.mark.parametrize(
    ("ami", "told"),
    [
        ("al2023@v20260714", True),
        ("al2023@v20250801", False),
        ("al2023@latest", True),
        ("bottlerocket@v1.60.0", True),
        ("bottlerocket@v1.43.0", False),
    ],
)
def test_images_that_do_not_know_parallel_pulls_are_not_told(ami: str, told: bool) -> None:
    """nodeadm refuses a gate that it does not know, and the node never joins."""
    from modelyard.hardware import platform_facts

    assert platform_facts().pulls_in_parallel(ami) is told


def test_auto_mode_has_the_same_pools_in_its_own_words(tree: Callable[[str], Tree]) -> None:
    auto = tree("auto")

    assert not auto.of("EC2NodeClass")
    for name in ("g6e", "p5", "trn2", "general"):
        assert spec(auto, "NodePool", name)["template"]["spec"]["nodeClassRef"] == {
            "group": "eks.amazonaws.com",
            "kind": "NodeClass",
            "name": name,
        }
        # 21 days in all are the most that EKS lets its nodes live.
        template = spec(auto, "NodePool", name)["template"]["spec"]
        assert (template["expireAfter"], template["terminationGracePeriod"]) == ("480h", "24h")
        node_class = spec(auto, "NodeClass", name)
        assert node_class["role"] == "modelyard-auto-node"
        assert node_class["networkPolicy"] == "DefaultAllow"
        # Auto Mode knows nothing of the tag by which the VPC CNI finds subnets for pods.
        assert node_class["podSubnetSelectorTerms"] == [{"tags": {"modelyard:pods": "modelyard-auto"}}]
        assert node_class["podSecurityGroupSelectorTerms"] == node_class["securityGroupSelectorTerms"]
        # EKS chooses image, user data and kubelet.
        assert {"amiSelectorTerms", "userData", "kubelet", "metadataOptions", "instanceProfile"}.isdisjoint(
            node_class
        )
    # Without it the API server accepts NetworkPolicies, and nothing enforces them.
    switch = auto.only("ConfigMap", "amazon-vpc-cni")
    assert switch["metadata"]["namespace"] == "kube-system"
    assert switch["data"] == {"enable-network-policy-controller": "true"}
    keys = {r["key"] for r in spec(auto, "NodePool", "general")["template"]["spec"]["requirements"]}
    assert "eks.amazonaws.com/instance-category" in keys
    assert not any(key.startswith("karpenter.k8s.aws/") for key in keys)
    assert len(spec(auto, "NodeClass", "p5")["advancedNetworking"]["networkInterfaces"]) == 33
    releases = {release["metadata"]["name"] for release in auto.of("HelmRelease")}
    assert releases.isdisjoint({"karpenter", "karpenter-crd", "nvidia-device-plugin", "neuron-helm-chart"})
    assert "dcgm-exporter" in releases


def test_pods_reach_dns_where_auto_mode_runs_it(tree: Callable[[str], Tree]) -> None:
    """On the nodes: no pod could be named, and what a policy does not name is closed."""

    def peers(environment: str) -> list[dict[str, Any]]:
        rules = [
            rule
            for policy in tree(environment).of("NetworkPolicy")
            for rule in policy["spec"].get("egress", ())
            if {"port": 53, "protocol": "UDP"} in rule.get("ports", ())
        ]
        assert len(rules) >= 3
        return [peer for rule in rules for peer in rule["to"]]

    addresses = {"10.100.0.10/32", "172.20.0.10/32"}
    assert {peer["ipBlock"]["cidr"] for peer in peers("auto")} == addresses
    assert all(peer["podSelector"]["matchLabels"] == {"k8s-app": "kube-dns"} for peer in peers("prod"))


def test_auto_mode_reads_a_gateways_networks_from_its_service(tree: Callable[[str], Tree]) -> None:
    """The annotation, by which other controllers limit a load balancer, is one that Auto Mode ignores."""
    auto = tree("auto")

    gateway = auto.only("Gateway", "public")["spec"]["infrastructure"]
    assert gateway["parametersRef"] == {"group": "", "kind": "ConfigMap", "name": "public-service"}
    settings = auto.only("ConfigMap", "public-service")
    assert settings["metadata"]["namespace"] == "model-gateways"
    assert yaml.safe_load(settings["data"]["service"]) == {
        "spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}
    }
    assert "parametersRef" not in tree("serving").only("Gateway", "public")["spec"]["infrastructure"]


def test_every_device_plugin_and_exporter_tolerates_the_taints_of_its_pools(each: Tree) -> None:
    """A taint that repels the plugin leaves nodes that are paid for and never initialised."""
    pools = {pool["metadata"]["name"]: pool for pool in each.of("NodePool")}
    checked = 0
    for release in [*each.of("HelmRelease"), *each.of("Application")]:
        values = release["spec"].get("values") or release["spec"].get("source", {}).get("helm", {}).get(
            "valuesObject", {}
        )
        affinity = values.get("affinity")
        if not affinity:
            continue
        [term] = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        [named] = term["matchExpressions"]
        tolerated = {t["key"] for t in values["tolerations"]}
        for name in named["values"]:
            taints = {t["key"] for t in pools[name]["spec"]["template"]["spec"]["taints"]}
            assert taints <= tolerated, f"{release['metadata']['name']} on {name}"
            checked += 1
    vendors = {
        accelerator_of(pool["spec"]["template"]["metadata"]["labels"]["modelyard.dev/accelerator"]).vendor
        for name, pool in pools.items()
        if name != "general"
    }
    assert checked > 0 or "nvidia" not in vendors


def test_the_teams_namespace_holds_no_accelerator_that_was_not_granted(tree: Callable[[str], Tree]) -> None:
    existing = tree("existing")

    search = existing.only("ResourceQuota", "search-apps-notebooks")
    assert search["metadata"]["namespace"] == "search-apps"
    assert search["spec"]["hard"] == {
        "requests.aws.amazon.com/neuron": "0",
        "requests.nvidia.com/gpu": "1",
    }
    assert existing.only("ResourceQuota", "assistants-notebooks")["spec"]["hard"] == {
        "requests.aws.amazon.com/neuron": "0",
        "requests.nvidia.com/gpu": "0",
    }
    level = existing.only("Namespace", "search-apps")["metadata"]["labels"]
    assert level["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_models_of_a_team_have_a_share_that_the_api_server_guards(tree: Callable[[str], Tree]) -> None:
    """4 L40S are granted; a rollout of the one model, of one L40S a replica, holds one more for a while."""
    existing = tree("existing")

    share = existing.only("ResourceQuota", "search-accelerators")
    assert share["metadata"]["namespace"] == "models"
    assert share["spec"] == {
        "hard": {"requests.aws.amazon.com/neuron": "0", "requests.nvidia.com/gpu": "5"},
        "scopeSelector": {
            "matchExpressions": [
                {
                    "operator": "In",
                    "scopeName": "PriorityClass",
                    "values": ["model-server-search", "model-batch-search"],
                }
            ]
        },
    }
    priorities = {item["metadata"]["name"]: item["value"] for item in existing.of("PriorityClass")}
    assert priorities == {
        "model-batch": 1_000,
        "model-batch-search": 1_000,
        "model-server": 100_000,
        "model-server-search": 100_000,
    }

    def priority(name: str) -> str:
        return str(existing.only("Deployment", name)["spec"]["template"]["spec"]["priorityClassName"])

    # Nothing limits what the other team's models may hold.
    assert (priority("chat"), priority("answers")) == ("model-server-search", "model-server")


def test_streaming_servers_use_the_one_identity_that_reads_buckets(tree: Callable[[str], Tree]) -> None:
    files = tree("files")

    def account(name: str) -> str:
        return str(files.only("Deployment", name)["spec"]["template"]["spec"]["serviceAccountName"])

    assert (account("answers"), account("chat")) == ("weights-reader", "chat")
    assert files.only("ServiceAccount", "weights-reader")["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("environment", "driver", "handle", "options"),
    [
        (
            "prod",
            "efs.csi.aws.com",
            "${modelyard_efs_file_system_id}::${modelyard_efs_access_point_id}",
            ["tls", "iam"],
        ),
        (
            "files",
            "efs.csi.aws.com",
            "s3files:${modelyard_s3files_file_system_id}::${modelyard_s3files_access_point_id}",
            ["tls"],
        ),
        ("lustre", "fsx.csi.aws.com", "${modelyard_lustre_file_system_id}", ["flock"]),
        ("managed-argo", "efs.csi.aws.com", "fs-0123456789abcdef0::fsap-0123456789abcdef0", ["tls"]),
    ],
)
def test_the_model_cache_is_mounted_by_the_driver_of_its_file_system(
    environment: str, driver: str, handle: str, options: list[str], tree: Callable[[str], Tree]
) -> None:
    made = tree(environment)
    [volume] = [v for v in made.of("PersistentVolume") if v["metadata"]["name"] == "model-cache-models"]

    assert volume["spec"]["csi"]["driver"] == driver
    assert volume["spec"]["csi"]["volumeHandle"] == handle
    assert volume["spec"]["mountOptions"] == options
    assert made.only("StorageClass", "model-cache")["provisioner"] == driver


def test_costs_are_grouped_by_the_labels_that_opencost_knows(tree: Callable[[str], Tree]) -> None:
    labels = tree("existing").only("Deployment", "chat")["spec"]["template"]["metadata"]["labels"]

    assert {key: labels[key] for key in ("env", "app", "team", "department")} == {
        "env": "existing",
        "app": "chat",
        "team": "search",
        "department": "cc-4711",
    }


def test_root_gives_a_new_lustre_file_system_away_and_can_do_nothing_else(
    tree: Callable[[str], Tree],
) -> None:
    lustre = tree("lustre")
    job = lustre.only("Job", "model-cache-owner")
    [container] = job["spec"]["template"]["spec"]["containers"]

    assert container["command"] == ["chown", "2000:2000", "/models"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    level = lustre.only("Namespace", job["metadata"]["namespace"])["metadata"]["labels"]
    assert level["pod-security.kubernetes.io/enforce"] == "baseline"
    volumes = {v["metadata"]["name"]: v["spec"]["csi"] for v in lustre.of("PersistentVolume")}
    assert volumes["model-cache-owner"] == volumes["model-cache-models"]


def test_a_team_whose_namespace_has_its_name_has_both_quotas() -> None:
    """One is for its notebooks, one for its models: two objects, and two files."""
    team = {"principals": ["arn:aws:iam::123456789012:role/search"], "accelerators": {"l40s": 2}}
    environment = an_environment(teams={"search": {**team, "notebooks": {"l40s": 1}}})
    folders = environment_objects(a_plan(a_model(), environment=environment))

    check_usable(folders)
    names = {item["metadata"]["name"] for item in folders["platform"] if item["kind"] == "ResourceQuota"}
    assert names == {"search-accelerators", "search-notebooks"}
