"""Delivery: the tree in a bucket, and Flux, installed once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.synth.conftest import Synthesis, environment_file


def test_the_bucket_is_versioned_encrypted_and_closed(each: Synthesis) -> None:
    bucket = each.only("Delivery", "AWS::S3::Bucket")

    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["BucketEncryption"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}


def test_the_bucket_is_read_over_tls_only(each: Synthesis) -> None:
    statements = each.only("Delivery", "AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]

    denials = [s["Condition"] for s in statements if s["Effect"] == "Deny"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in denials


def test_what_is_no_longer_rendered_leaves_the_bucket(each: Synthesis) -> None:
    upload = each.only("Delivery", "Custom::CDKBucketDeployment")

    assert upload["Prune"] is True


def _release(synthesis: Synthesis) -> dict[str, Any]:
    return synthesis.only("Delivery", "Custom::AWSCDK-EKS-HelmChart")


def _values(synthesis: Synthesis) -> dict[str, Any]:
    """Values of the release; what CloudFormation fills in stands as `<NAME>`."""
    values = _release(synthesis)["Values"]
    parts = values["Fn::Join"][1] if isinstance(values, dict) else [values]
    text = "".join(part if isinstance(part, str) else f"<{part['Ref']}>" for part in parts)
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def _objects(synthesis: Synthesis) -> dict[str, dict[str, Any]]:
    return {o["metadata"]["name"]: o for o in _values(synthesis)["extraObjects"]}


def test_flux_is_the_only_helm_release_and_is_pinned(each: Synthesis) -> None:
    release = _release(each)

    assert release["Repository"] == "oci://ghcr.io/fluxcd-community/charts/flux2"
    assert release["Version"] == "2.18.3"
    assert (release["Namespace"], release["CreateNamespace"], release["Wait"]) == ("flux-system", True, True)


def test_flux_applies_addons_then_platform_and_monitoring_then_models_then_checks(each: Synthesis) -> None:
    objects = _objects(each)

    order = {name: o["spec"].get("dependsOn") for name, o in objects.items() if o["kind"] == "Kustomization"}
    assert order == {
        "addons": None,
        "monitoring": [{"name": "addons"}],
        "platform": [{"name": "addons"}],
        "models": [{"name": "platform"}],
        "checks": [{"name": "models"}],
    }
    for name in order:
        spec = objects[name]["spec"]
        assert (spec["path"], spec["prune"], spec["wait"]) == (f"./{name}", True, True)
        assert spec["sourceRef"] == {"kind": "Bucket", "name": "modelyard"}


def test_flux_reads_the_bucket_of_this_stack(each: Synthesis) -> None:
    source = _objects(each)["modelyard"]

    resources = each.templates["Delivery"]["Resources"]
    (name,) = [n for n, r in resources.items() if r["Type"] == "AWS::S3::Bucket"]
    assert source["kind"] == "Bucket"
    assert source["spec"]["bucketName"] == f"<{name}>"
    assert (source["spec"]["provider"], source["spec"]["region"]) == ("aws", "us-east-2")


def test_upgrading_flux_never_deletes_what_it_applies(each: Synthesis) -> None:
    # Helm deletes hooks before it makes them again unless told otherwise, and a Kustomization takes its objects along.
    for o in _objects(each).values():
        annotations = o["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "post-install,post-upgrade"
        assert annotations["helm.sh/hook-delete-policy"] == "hook-failed"
    # And an uninstall would delete the definitions.
    assert _values(each)["crds"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_ids_that_only_the_deploy_knows_reach_the_manifests(each: Synthesis) -> None:
    objects = _objects(each)

    for folder in ("platform", "models"):
        substitute = objects[folder]["spec"]["postBuild"]["substitute"]
        assert substitute.keys() == {"modelyard_efs_file_system_id", "modelyard_efs_access_point_id"}
    assert "postBuild" not in objects["monitoring"]["spec"]  # dashboards have ${variables} of their own
    addons = objects["addons"]["spec"].get("postBuild", {}).get("substitute", {})
    assert set(addons) == ({"modelyard_prometheus_endpoint"} if each.name == "local" else set())


def test_an_undefined_substitution_is_an_error(each: Synthesis) -> None:
    (gates,) = _values(each)["kustomizeController"]["container"]["additionalArgs"]

    assert "StrictPostBuildSubstitutions=true" in gates


def test_controllers_that_nothing_needs_are_not_installed(each: Synthesis) -> None:
    values = _values(each)

    for controller in ("imageAutomationController", "imageReflectionController", "notificationController"):
        assert values[controller] == {"create": False}


def test_flux_may_list_and_read_this_bucket_and_do_nothing_else(each: Synthesis) -> None:
    association = each.only("Delivery", "AWS::EKS::PodIdentityAssociation")
    assert (association["Namespace"], association["ServiceAccount"]) == ("flux-system", "source-controller")

    role = association["RoleArn"]["Fn::GetAtt"][0]
    (policy,) = [p for p in each.properties("Delivery", "AWS::IAM::Policy") if p["Roles"] == [{"Ref": role}]]
    actions = [statement["Action"] for statement in policy["PolicyDocument"]["Statement"]]
    assert actions == ["s3:ListBucket", "s3:GetObject"]


def test_flux_starts_with_an_identity_and_a_whole_tree(each: Synthesis) -> None:
    resources = each.templates["Delivery"]["Resources"]
    (release,) = each.resources("Delivery", "Custom::AWSCDK-EKS-HelmChart")

    assert {resources[name]["Type"] for name in release["DependsOn"]} >= {
        "AWS::EKS::AccessEntry",
        "AWS::EKS::PodIdentityAssociation",
        "Custom::CDKBucketDeployment",
    }


def test_the_installer_runs_inside_the_network_of_the_cluster(each: Synthesis) -> None:
    functions = each.properties("Delivery", "AWS::Lambda::Function")

    inside = [f["VpcConfig"] for f in functions if "VpcConfig" in f]
    assert len(inside) == 2
    assert all(len(vpc["SubnetIds"]) == 3 and len(vpc["SecurityGroupIds"]) == 1 for vpc in inside)


@pytest.mark.parametrize("mode", ["argocd", "none"])
def test_without_flux_aws_has_no_part_in_the_delivery(
    mode: str, synthesise: Callable[[str, dict[str, Any]], Synthesis]
) -> None:
    data = environment_file("dev")
    data["delivery"] = mode
    data["git"] = {"url": "https://git.example.com/models.git"} if mode == "argocd" else None
    data["cache"] = {"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"}

    made = synthesise(mode, data)

    assert "Delivery" not in made.templates
    assert "ModelCache" not in made.templates
