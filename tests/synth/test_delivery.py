"""Delivery: the tree in a bucket, and Flux, installed once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.synth.conftest import Synthesis, environment_file


def _published(synthesis: Synthesis, key: str) -> str:
    """Logical id of the resource whose name the stack publishes as `key`."""
    (value,) = [
        parameter["Value"]
        for parameter in synthesis.properties("Delivery", "AWS::SSM::Parameter")
        if parameter["Name"].endswith(f"/delivery/{key}")
    ]
    return str(value["Ref"])


def _association(synthesis: Synthesis, service_account: str) -> dict[str, Any]:
    (found,) = [
        each
        for each in synthesis.properties("Delivery", "AWS::EKS::PodIdentityAssociation")
        if each["ServiceAccount"] == service_account
    ]
    return found


def _statements(synthesis: Synthesis, association: dict[str, Any]) -> list[dict[str, Any]]:
    """What the role of `association` may do."""
    role = association["RoleArn"]["Fn::GetAtt"][0]
    (policy,) = [
        policy
        for policy in synthesis.properties("Delivery", "AWS::IAM::Policy")
        if policy["Roles"] == [{"Ref": role}]
    ]
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


def test_no_function_is_called_before_its_log_group_exists(dev: Synthesis) -> None:
    """Its first call would create the group, and CloudFormation could not."""
    resources = dev.templates["Delivery"]["Resources"]
    (release,) = (each for each in resources.values() if each["Type"] == "Custom::AWSCDK-EKS-HelmChart")
    groups = {
        name
        for name, each in resources.items()
        if each["Type"] == "AWS::Logs::LogGroup"
        and "/aws/lambda/" in str(each["Properties"].get("LogGroupName"))
    }

    assert len(groups) == 2
    assert groups <= set(release["DependsOn"])


def test_the_buckets_are_versioned_encrypted_and_closed(each: Synthesis) -> None:
    buckets = each.properties("Delivery", "AWS::S3::Bucket")

    assert len(buckets) == 2
    for bucket in buckets:
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        assert bucket["BucketEncryption"]
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}


def test_the_buckets_are_reached_over_tls_only(each: Synthesis) -> None:
    policies = each.properties("Delivery", "AWS::S3::BucketPolicy")

    assert len(policies) == 2
    for policy in policies:
        denials = [s["Condition"] for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
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


def test_flux_applies_addons_then_platform_and_monitoring_and_what_delivers_the_models(
    each: Synthesis,
) -> None:
    objects = _objects(each)

    order = {name: o["spec"].get("dependsOn") for name, o in objects.items() if o["kind"] == "Kustomization"}
    once = [{"name": "addons", "readyExpr": "has(dep.status.lastAppliedRevision)"}]
    assert order == {"addons": None, "monitoring": once, "platform": once, "delivery": None}
    for name in order:
        spec = objects[name]["spec"]
        assert (spec["path"], spec["prune"], spec["wait"]) == (f"./{name}", True, name != "delivery")
        assert spec["sourceRef"] == {"kind": "Bucket", "name": "modelyard"}


def test_flux_reads_the_bucket_of_this_stack(each: Synthesis) -> None:
    source = _objects(each)["modelyard"]

    assert source["kind"] == "Bucket"
    assert source["spec"]["bucketName"] == f"<{_published(each, 'bucket')}>"
    assert (source["spec"]["provider"], source["spec"]["region"]) == ("aws", "us-east-2")


def test_upgrading_flux_never_deletes_what_it_applies(each: Synthesis) -> None:
    # Helm deletes hooks before it makes them again unless told otherwise, and a Kustomization takes its
    # objects along.
    for o in _objects(each).values():
        annotations = o["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "post-install,post-upgrade"
        assert annotations["helm.sh/hook-delete-policy"] == "hook-failed"
    # And an uninstall would delete the definitions.
    assert _values(each)["crds"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_ids_that_only_the_deploy_knows_reach_the_manifests(each: Synthesis) -> None:
    objects = _objects(each)

    substitute = objects["platform"]["spec"]["postBuild"]["substitute"]
    assert substitute.keys() == {"modelyard_efs_file_system_id", "modelyard_efs_access_point_id"}
    assert objects["delivery"]["spec"]["postBuild"]["substitute"] == {
        "modelyard_check_reports": f"<{_published(each, 'reports')}>"
    }
    assert "postBuild" not in objects["monitoring"]["spec"]  # dashboards have ${variables} of their own
    addons = objects["addons"]["spec"].get("postBuild", {}).get("substitute", {})
    assert set(addons) == ({"modelyard_prometheus_endpoint"} if each.name == "local" else set())


def test_an_undefined_substitution_is_an_error(each: Synthesis) -> None:
    gates, *_ = _values(each)["kustomizeController"]["container"]["additionalArgs"]

    assert "StrictPostBuildSubstitutions=true" in gates


def test_models_that_start_do_not_take_all_of_flux_workers(each: Synthesis) -> None:
    """A Kustomization keeps its worker while it waits for its objects."""
    [workers] = [
        int(arg.partition("=")[2])
        for arg in _values(each)["kustomizeController"]["container"]["additionalArgs"]
        if arg.startswith("--concurrent=")
    ]

    assert workers >= 200


def test_only_publishers_and_a_deploy_write_the_bucket_where_the_environment_names_them(
    synthesise: Callable[..., Synthesis],
) -> None:
    """Who writes there decides what runs in the cluster."""
    role = "arn:aws:iam::333333333333:role/publisher"
    found = synthesise("prod", environment_file("prod") | {"publishers": [role]})
    statements = [
        statement
        for policy in found.properties("Delivery", "AWS::S3::BucketPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement.get("Sid") == "Writers"
    ]

    [denied] = statements
    upload, publisher = denied["Condition"]["ArnNotEquals"]["aws:PrincipalArn"]
    assert (denied["Effect"], denied["Principal"], publisher) == ("Deny", {"AWS": "*"}, role)
    assert found.templates["Delivery"]["Resources"][upload["Fn::GetAtt"][0]]["Type"] == "AWS::IAM::Role"
    assert {"s3:PutObject", "s3:DeleteObject"} <= set(denied["Action"])


def test_controllers_that_nothing_needs_are_not_installed(each: Synthesis) -> None:
    values = _values(each)

    for controller in ("imageAutomationController", "imageReflectionController", "notificationController"):
        assert values[controller] == {"create": False}


def test_flux_may_list_and_read_this_bucket_and_do_nothing_else(each: Synthesis) -> None:
    association = _association(each, "source-controller")
    assert association["Namespace"] == "flux-system"

    statements = [
        statement
        for statement in _statements(each, association)
        if not str(statement["Action"]).strip("['").startswith("ecr:")  # tests/synth/test_registry.py
    ]
    assert [statement["Action"] for statement in statements] == ["s3:ListBucket", "s3:GetObject"]
    assert _published(each, "bucket") in json.dumps(statements)
    assert _published(each, "reports") not in json.dumps(statements)


def test_the_jobs_may_put_reports_into_a_bucket_of_their_own_and_do_nothing_else(each: Synthesis) -> None:
    association = _association(each, "endpoint-checks")
    bucket = _published(each, "reports")

    assert association["Namespace"] == "models"
    assert bucket != _published(each, "bucket")
    (statement,) = _statements(each, association)
    assert statement == {
        "Action": "s3:PutObject",
        "Effect": "Allow",
        "Resource": {"Fn::Join": ["", [{"Fn::GetAtt": [bucket, "Arn"]}, "/*/*.json"]]},
    }


def test_reports_go_and_stay_as_the_tree_does_and_never_expire(each: Synthesis) -> None:
    resources = each.templates["Delivery"]["Resources"]
    tree, reports = resources[_published(each, "bucket")], resources[_published(each, "reports")]

    for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
        assert reports[policy] == tree[policy]
    # Read by the lookup role of `cdk bootstrap`, which is denied kms:Decrypt.
    (rule,) = reports["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    for lifecycle in reports["Properties"]["LifecycleConfiguration"]["Rules"]:
        assert not lifecycle.keys() & {"ExpirationInDays", "ExpirationDate"}


def test_no_identity_is_added_for_a_model(each: Synthesis) -> None:
    accounts = [a["ServiceAccount"] for a in each.properties("Delivery", "AWS::EKS::PodIdentityAssociation")]

    assert sorted(accounts) == ["endpoint-checks", "source-controller"]


def test_without_checks_there_are_no_reports(
    synthesise: Callable[[str, dict[str, Any]], Synthesis],
) -> None:
    made = synthesise("dev", environment_file("dev") | {"checks": {"smoke": False}})

    assert len(made.properties("Delivery", "AWS::S3::Bucket")) == 1
    assert len(made.properties("Delivery", "AWS::EKS::PodIdentityAssociation")) == 1
    assert "checks" not in _objects(made)


def test_flux_starts_with_an_identity_and_a_whole_tree(each: Synthesis) -> None:
    resources = each.templates["Delivery"]["Resources"]
    (release,) = each.resources("Delivery", "Custom::AWSCDK-EKS-HelmChart")

    before = [resources[name]["Type"] for name in release["DependsOn"]]
    assert set(before) >= {"AWS::EKS::AccessEntry", "Custom::CDKBucketDeployment"}
    assert before.count("AWS::EKS::PodIdentityAssociation") == 2  # Flux' own, and that of the checks


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
