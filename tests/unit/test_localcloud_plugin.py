"""The pure parts of the plugin: markers, filters, names, spelling."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from modelyard.localcloud import server
from modelyard.localcloud.plugin.bucket_deployment import prefix_of, selected, with_markers_replaced
from modelyard.localcloud.plugin.eks_cluster import EksCluster, NodeGroup
from modelyard.localcloud.plugin.recorded import AnomalyMonitor, AnomalySubscription, PullThroughCacheRule
from modelyard.localcloud.plugin.resource_type import Aws, RefusedRequest, ResourceAddress, camel, given

FOLDER = Path(server.__file__).parent


def test_a_marker_becomes_its_value() -> None:
    assert (
        with_markers_replaced(b"id: <<m>>, <<m>>", {"<<m>>": "vpc-1"}, json_escape=False)
        == b"id: vpc-1, vpc-1"
    )


def test_a_marker_inside_a_json_string_is_escaped() -> None:
    replaced = with_markers_replaced(b'{"a": "<<m>>"}', {"<<m>>": 'say "hi"\n'}, json_escape=True)

    assert replaced == b'{"a": "say \\"hi\\"\\n"}'


@pytest.mark.parametrize(
    ("path", "exclude", "include", "expected"),
    [
        ("a.yaml", [], [], True),
        ("a.yaml", ["*.yaml"], [], False),
        ("sub/a.yaml", ["*"], ["*.yaml"], True),
        ("sub/a.txt", ["*"], ["*.yaml"], False),
    ],
)
def test_filters_work_like_those_of_s3_sync(
    path: str, exclude: list[str], include: list[str], *, expected: bool
) -> None:
    assert selected(path, exclude, include) is expected


@pytest.mark.parametrize(("given_prefix", "expected"), [(None, ""), ("/", ""), ("a/b", "a/b/"), ("a/", "a/")])
def test_a_prefix_is_a_folder(given_prefix: str | None, expected: str) -> None:
    assert prefix_of({"DestinationBucketKeyPrefix": given_prefix}) == expected


def test_a_generated_name_is_stable_and_fits() -> None:
    place = ResourceAddress("a-stack-with-a-long-name", "AndAResourceWithALongOne")

    assert place.name(40) == place.name(40)
    assert len(place.name(40)) == 40
    assert place.name(40) != ResourceAddress("another-stack", "AndAResourceWithALongOne").name(40)


def test_the_eks_api_spells_properties_differently() -> None:
    assert camel([{"AccessScope": {"Type": "cluster"}}]) == [{"accessScope": {"type": "cluster"}}]


def test_only_what_the_template_sets_is_sent() -> None:
    assert given({"A": "x", "B": "", "C": [], "D": 0}, "A", "B", "C", "D", "E") == {"A": "x", "D": 0}


def test_a_refusal_reads_like_cloudformations() -> None:
    refusal = RefusedRequest("No cluster found for name: x.", "NotFound")

    assert str(refusal) == (
        'Resource handler returned message: "No cluster found for name: x." (HandlerErrorCode: NotFound)'
    )


class TestClusterUpdates:
    NODES: ClassVar = {"Version": "1.35", "LaunchTemplate": {"Version": "1"}}
    CLUSTER: ClassVar = {"Name": "modelyard-lab", "RoleArn": "arn:aws:iam::1:role/a", "Version": "1.35"}

    def test_a_version_goes_alone(self) -> None:
        nodes = NodeGroup()

        nodes.check_update(self.NODES, {**self.NODES, "Version": "1.36", "ReleaseVersion": "1.36.2-20260714"})
        nodes.check_update(self.NODES, {**self.NODES, "LaunchTemplate": {"Version": "2"}})
        with pytest.raises(RefusedRequest, match="cannot be combined with other updates"):
            nodes.check_update(self.NODES, {"Version": "1.36", "LaunchTemplate": {"Version": "2"}})

    def test_a_cluster_of_a_fixed_name_is_not_replaced(self) -> None:
        """As switching `cluster.compute` would."""
        cluster = EksCluster()

        cluster.check_update(self.CLUSTER, {**self.CLUSTER, "Version": "1.36"})
        with pytest.raises(RefusedRequest, match="custom-named resource requires replacing"):
            cluster.check_update(self.CLUSTER, {**self.CLUSTER, "RoleArn": "arn:aws:iam::1:role/b"})


class TestAnomalyMonitors:
    """What AWS refuses in a member's account is refused."""

    PLACE = ResourceAddress("stack", "Monitor")

    def test_one_of_a_tag_is_the_payers(self) -> None:
        monitor = {"MonitorType": "CUSTOM", "MonitorName": "m", "MonitorSpecification": "{}"}

        with pytest.raises(RefusedRequest, match="linked account"):
            AnomalyMonitor().create(aws("111111111111"), self.PLACE, monitor)

    def test_an_account_has_one_of_services(self) -> None:
        monitors = AnomalyMonitor()
        services = {"MonitorType": "DIMENSIONAL", "MonitorDimension": "SERVICE", "MonitorName": "m"}
        first = monitors.create(aws("111111111111"), self.PLACE, services)
        monitors.create(aws("222222222222"), self.PLACE, services)

        with pytest.raises(RefusedRequest, match="AlreadyExists"):
            monitors.create(aws("111111111111"), ResourceAddress("other", "Monitor"), services)

        monitors.delete(aws("111111111111"), first.physical_id, services)
        assert monitors.create(aws("111111111111"), self.PLACE, services)

    def test_a_subscription_needs_one_that_exists(self) -> None:
        asked = {"MonitorArnList": ["arn:aws:ce::111111111111:anomalymonitor/x"], "Subscribers": []}

        with pytest.raises(RefusedRequest, match="Unknown monitor"):
            AnomalySubscription(AnomalyMonitor()).create(aws("111111111111"), self.PLACE, asked)


class TestPullThroughCacheRules:
    PLACE = ResourceAddress("stack", "Quay")

    def test_a_prefix_has_one_rule_in_an_account(self) -> None:
        rules, here = PullThroughCacheRule(), aws("111111111111")
        quay = {
            "EcrRepositoryPrefix": "lab/quay",
            "UpstreamRegistry": "quay",
            "UpstreamRegistryUrl": "quay.io",
        }
        first = rules.create(here, self.PLACE, quay)
        rules.create(aws("222222222222"), self.PLACE, quay)

        with pytest.raises(RefusedRequest, match="AlreadyExists"):
            rules.create(here, ResourceAddress("other", "Quay"), quay)

        rules.delete(here, first.physical_id, quay)
        assert rules.create(here, self.PLACE, quay).physical_id == "lab/quay"


def aws(account: str) -> Aws:
    return Aws("http://127.0.0.1:1", scope=lambda: (account, "us-east-2"))


def test_the_servers_side_needs_only_what_ministack_brings() -> None:
    """Its interpreter has neither pydantic nor boto3, and must not reach the rest of this project."""
    server_side = [
        FOLDER / "__init__.py",
        FOLDER / "journal.py",
        FOLDER / "server.py",
        *FOLDER.glob("plugin/*.py"),
    ]
    allowed = {"botocore", *sys.stdlib_module_names}

    foreign = {
        module
        for file in server_side
        for module in imported(file)
        if module.split(".")[0] not in allowed
        and not module.startswith(("modelyard.localcloud.plugin", "modelyard.localcloud.journal"))
    }

    assert foreign == set()


def test_no_module_imports_jsii() -> None:
    heavy = {"aws_cdk", "cdk8s", "constructs", "jsii"}

    assert not {m for file in FOLDER.rglob("*.py") for m in imported(file) if m.split(".")[0] in heavy}


def imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found
