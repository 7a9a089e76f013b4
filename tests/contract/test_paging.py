"""Who is told of alerts: Alertmanager's own tool reads what is rendered, and routes each alert."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from modelyard.objects.composition import checked_objects, default_objects
from modelyard.objects.monitoring.paging import NOBODY, alertmanager_config
from modelyard.spec import Environment
from tests.contract.conftest import ROOT, SHIPPED, Tree
from tests.unit.given import a_model, a_plan, an_environment

TOPIC = "arn:aws:sns:us-east-2:123456789012:on-call"
RECEIVERS: dict[str, Any] = {
    "on-call": {"pagerDuty": "pagerduty", "severities": ["critical"]},
    "chat": {"slack": {"webhook": "slack", "channel": "#llm"}},
    "mail": {"sns": {"emails": ["a@example.com"]}, "severities": ["critical", "warning", "info"]},
    "theirs": {"sns": {"topic": TOPIC}, "severities": ["critical"], "teams": ["search", "chat.eu"]},
}


@pytest.fixture(scope="module")
def paged() -> Environment:
    """An environment with a receiver of every kind."""
    return an_environment(
        secrets={"pagerduty": "lab/pagerduty", "slack": "lab/slack", "hf-token": "lab/hf"},
        monitoring={"receivers": RECEIVERS},
    )


@pytest.fixture
def file(paged: Environment, tmp_path: Path) -> Path:
    """Alertmanager's configuration file, as the chart writes it."""
    return written(alertmanager_config(paged), tmp_path)


def written(config: dict[str, Any], folder: Path) -> Path:
    path = folder / "alertmanager.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which("amtool") or next(iter((ROOT / ".tools").glob("amtool")), None)
    if found is None:
        pytest.skip("receivers are not tried: there is no amtool (python3 .ci/install_promtool.py)")
    return subprocess.run([str(found), *arguments], capture_output=True, text=True, check=False)


def told(file: Path, *labels: str) -> list[str]:
    """The receivers of an alert with `labels`."""
    answer = amtool("config", "routes", "test", f"--config.file={file}", *labels)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout.strip().split(",")


def release(folders: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    (found,) = (
        item
        for item in folders["addons"]
        if item["kind"] == "HelmRelease" and item["metadata"]["name"] == "kube-prometheus-stack"
    )
    return found


def test_alertmanager_reads_receivers_of_every_kind(file: Path) -> None:
    checked = amtool("check-config", str(file))

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(RECEIVERS) + 1} receivers" in checked.stdout


def test_what_alertmanager_cannot_read_is_refused(paged: Environment, tmp_path: Path) -> None:
    config = alertmanager_config(paged)
    config["receivers"] = config["receivers"][:2]

    assert amtool("check-config", str(written(config, tmp_path))).returncode != 0


@pytest.mark.parametrize("name", SHIPPED)
def test_alertmanager_reads_every_shipped_environment(
    name: str, tree: Callable[[str], Tree], tmp_path: Path
) -> None:
    values = tree(name).only("HelmRelease", "kube-prometheus-stack")["spec"]["values"]
    if "config" not in values.get("alertmanager", {}):
        pytest.skip(f"{name} has no receivers")

    checked = amtool("check-config", str(written(values["alertmanager"]["config"], tmp_path)))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        (("severity=critical",), ["on-call", "chat", "mail"]),
        (("severity=critical", "team=search"), ["on-call", "chat", "mail", "theirs"]),
        (("severity=critical", "team=chatxeu"), ["on-call", "chat", "mail"]),
        (("severity=warning", "team=search"), ["chat", "mail"]),
        (("severity=info",), ["mail"]),
        (("severity=none", "alertname=Watchdog"), [NOBODY]),
        (("severity=none", "alertname=InfoInhibitor"), [NOBODY]),
    ],
)
def test_an_alert_reaches_everybody_whose_it_is(
    file: Path, labels: tuple[str, ...], receivers: list[str]
) -> None:
    assert told(file, *labels) == receivers


def test_keys_are_files_of_secrets_that_alertmanager_mounts(paged: Environment) -> None:
    folders = checked_objects(a_plan(a_model(), environment=paged))
    values = release(folders)["spec"]["values"]["alertmanager"]
    secrets = {
        i["metadata"]["name"]
        for i in folders["platform"]
        if i["kind"] == "ExternalSecret" and i["metadata"]["namespace"] == "monitoring"
    }

    assert set(values["alertmanagerSpec"]["secrets"]) == secrets == {"pagerduty", "slack"}
    assert "/etc/alertmanager/secrets/pagerduty/value" in str(values["config"])


def test_keys_of_receivers_do_not_reach_the_models_namespace(paged: Environment) -> None:
    folders = default_objects(a_plan(a_model(), environment=paged))
    synced = [i["metadata"] for i in folders["platform"] if i["kind"] == "ExternalSecret"]
    (store,) = (i for i in folders["platform"] if i["kind"] == "ClusterSecretStore")

    assert {each["name"] for each in synced if each["namespace"] == "models"} == {"hf-token"}
    assert store["spec"]["conditions"] == [{"namespaces": ["models", "monitoring"]}]


def test_who_has_no_receivers_keeps_the_charts_alertmanager() -> None:
    values = release(default_objects(a_plan(a_model())))["spec"]["values"]

    assert "alertmanager" not in values


def test_topics_are_of_the_environments_partition() -> None:
    china = an_environment(region="cn-north-1", availabilityZones=["cn-north-1a", "cn-north-1b"])
    gov = an_environment(region="us-gov-west-1", availabilityZones=["us-gov-west-1a", "us-gov-west-1b"])

    assert china.alert_topic == "arn:aws-cn:sns:cn-north-1:123456789012:modelyard-lab-alerts"
    assert gov.alert_topic == "arn:aws-us-gov:sns:us-gov-west-1:123456789012:modelyard-lab-alerts"


@pytest.mark.parametrize(
    ("compute", "driver"), [("karpenter", "ebs.csi.aws.com"), ("auto-mode", "ebs.csi.eks.amazonaws.com")]
)
def test_prometheus_data_are_on_a_volume_of_the_driver_that_the_cluster_has(
    compute: str, driver: str
) -> None:
    folders = checked_objects(a_plan(a_model(), environment=an_environment(cluster={"compute": compute})))
    (made,) = (i for i in folders["addons"] if i["kind"] == "StorageClass")
    spec = release(folders)["spec"]["values"]["prometheus"]["prometheusSpec"]

    assert made["provisioner"] == driver
    assert spec["storageSpec"]["volumeClaimTemplate"]["spec"]["storageClassName"] == made["metadata"]["name"]


@pytest.mark.parametrize(("removal", "kept"), [("retain", "Retain"), ("destroy", "Delete")])
def test_the_volume_goes_with_the_environment_where_data_go(removal: str, kept: str) -> None:
    values = release(default_objects(a_plan(a_model(), environment=an_environment(removal=removal))))
    spec = values["spec"]["values"]["prometheus"]["prometheusSpec"]

    assert spec["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == kept
