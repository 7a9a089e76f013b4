"""An environment's own registry: every image and every chart comes from there, or a finding says which does
not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from modelyard.object_rules import check_objects
from modelyard.objects.composition import RenderError, checked_objects, default_objects
from modelyard.releases import Chart, ImageRoutes, chart, charts, ecr_repositories, registry_of, upstreams
from modelyard.spec import Environment
from tests.unit.given import PAGED, a_model, a_plan, an_environment

ACCOUNT = an_environment().account
ECR = f"{ACCOUNT}.dkr.ecr.{an_environment().region}.amazonaws.com"


def secret(name: str, account: str = ACCOUNT, region: str = an_environment().region) -> str:
    return f"arn:aws:secretsmanager:{region}:{account}:secret:ecr-pullthroughcache/{name}-AbCdEf"


CACHE = {"pullThrough": {"credentials": {"docker.io": secret("hub"), "ghcr.io": secret("github")}}}


def routes(registry: Any) -> ImageRoutes:
    return an_environment(registry=registry).routes


class TestNames:
    @pytest.mark.parametrize(
        ("image", "registry", "rest"),
        [
            ("python:3.13", "docker.io", "library/python:3.13"),
            ("vllm/vllm-openai:v0.33.0", "docker.io", "vllm/vllm-openai:v0.33.0"),
            ("index.docker.io/a/b@sha256:00", "docker.io", "a/b@sha256:00"),
            ("localhost/a:1", "localhost", "a:1"),
            ("mirror:5000/a/b:1", "mirror:5000", "a/b:1"),
            ("nvcr.io/nvidia/k8s/dcgm-exporter:4", "nvcr.io", "nvidia/k8s/dcgm-exporter:4"),
        ],
    )
    def test_a_registry_is_read_as_docker_reads_it(self, image: str, registry: str, rest: str) -> None:
        assert registry_of(image) == (registry, rest)

    def test_without_a_registry_nothing_changes(self) -> None:
        assert an_environment().routes.image("vllm/vllm-openai:v0.33.0") == "vllm/vllm-openai:v0.33.0"
        assert an_environment().routes.values(chart("keda"), {"a": 1}) == {"a": 1}

    def test_a_mirror_has_every_registry_below_its_host(self) -> None:
        mirror = routes("mirror.example.com/all")

        assert mirror.image("python:3.13") == "mirror.example.com/all/docker.io/library/python:3.13"
        assert mirror.image("nvcr.io/a/b:1@sha256:00") == "mirror.example.com/all/nvcr.io/a/b:1@sha256:00"
        assert mirror.chart(chart("keda")) == "oci://mirror.example.com/all/charts"

    def test_what_is_there_already_is_left_alone(self) -> None:
        mirror = routes("mirror.example.com/all")

        assert mirror.image(mirror.image("a/b:1")) == mirror.image("a/b:1")

    def test_a_cache_is_in_the_environments_own_account(self) -> None:
        cache = routes(CACHE)
        name = an_environment().name

        assert cache.image("vllm/vllm-openai:v1") == f"{ECR}/{name}/docker/vllm/vllm-openai:v1"
        assert cache.image("public.ecr.aws/karpenter/controller:1@sha256:00") == (
            f"{ECR}/{name}/public/karpenter/controller:1@sha256:00"
        )

    def test_charts_come_through_the_cache_where_they_are_artefacts(self) -> None:
        cache = routes(CACHE)
        name = an_environment().name

        assert cache.chart(chart("karpenter")) == f"oci://{ECR}/{name}/public/karpenter"
        assert cache.chart(chart("external-secrets")) == f"oci://{ECR}/{name}/ghcr/external-secrets/charts"
        assert cache.chart(chart("keda")) == chart("keda").repository

    def test_a_single_mirror_goes_before_the_cache(self) -> None:
        both = routes({**CACHE, "mirrors": {"docker.io": "mirror.example.com/hub"}})

        assert both.image("a/b:1") == "mirror.example.com/hub/a/b:1"

    def test_a_rules_prefix_has_room_for_every_environment(self) -> None:
        """ECR takes 30 characters, and a name of an environment has at most 20."""
        assert all(20 + 1 + len(each.folder) <= 30 for each in upstreams().values())

    def test_repositories_of_ecr_are_told_from_others(self) -> None:
        place = ecr_repositories(f"oci://{ECR}/lab/public")

        assert place is not None
        assert (place.account, place.prefix) == (ACCOUNT, "lab/public")
        assert ecr_repositories("oci://mirror.example.com/charts") is None


class TestCharts:
    @pytest.mark.parametrize("name", sorted(charts()))
    def test_somebody_has_read_where_its_images_come_from(self, name: str) -> None:
        assert charts()[name].images is not None

    def test_each_value_is_replaced_and_none_is_lost(self) -> None:
        values = routes(CACHE).values(
            chart("kube-prometheus-stack"), {"grafana": {"replicas": 2, "image": {"tag": "x"}}}
        )

        assert values["grafana"]["replicas"] == 2
        assert values["grafana"]["image"] == {
            "tag": "x",
            "registry": f"{ECR}/{an_environment().name}/docker",
        }
        assert values["kube-state-metrics"]["image"]["registry"].endswith("/k8s")

    def test_a_default_that_nobody_replaces_stays(self) -> None:
        unread = Chart("x", "https://x", "1", images={"image.repository": "nvcr.io/x"})

        assert routes(CACHE).values(unread, {}) == {"image": {"repository": "nvcr.io/x"}}


class TestRefused:
    @pytest.mark.parametrize(
        ("registry", "message"),
        [
            ({}, "needs mirror, mirrors, pullThrough or charts"),
            ({"direct": ["quay.io"]}, "needs mirror, mirrors, pullThrough or charts"),
            ({"mirror": "m.example.com", "pullThrough": True}, "use one of them"),
            (
                {"pullThrough": {"credentials": {"quay.io": secret("x")}}},
                "ECR takes credentials for docker.io",
            ),
            (
                {"pullThrough": {"credentials": {"docker.io": secret("x", region="eu-west-9")}}},
                "must be in us-east-2",
            ),
            ({"pullThrough": {"credentials": {"docker.io": "hub"}}}, "ecr-pullthroughcache"),
            ("https://mirror.example.com", "mirror"),
        ],
    )
    def test_what_cannot_be_meant(self, registry: Any, message: str) -> None:
        with pytest.raises(ValidationError, match=message):
            an_environment(registry=registry)

    def test_a_cache_in_china(self) -> None:
        settings = an_environment().model_dump(mode="json") | {
            "region": "cn-north-1",
            "availabilityZones": ["cn-north-1a", "cn-north-1b"],
            "pools": {},
            "registry": {"pullThrough": True},
        }

        with pytest.raises(ValidationError, match="caches from no registry"):
            Environment.model_validate(settings)


class TestFindings:
    def findings(self, registry: Any, **model: Any) -> list[str]:
        plan = a_plan(a_model(**model), environment=an_environment(registry=registry, secrets={}))
        try:
            checked_objects(plan)
        except RenderError as error:
            return [str(each) for each in error.findings]
        return []

    def test_a_mirror_of_everything_leaves_nothing_outside(self) -> None:
        assert self.findings("mirror.example.com/all") == []

    def test_each_registry_that_is_asked_is_one_finding_with_the_objects_and_the_way_out(self) -> None:
        found = self.findings({"pullThrough": True})

        (hub,) = (each for each in found if "from docker.io" in each)
        assert "registry.pullThrough.credentials" in hub
        (nvidia,) = (each for each in found if "from nvcr.io" in each)
        assert "registry.mirrors: {nvcr.io: HOST/PREFIX}" in nvidia
        assert any("charts are fetched from nvidia.github.io" in each for each in found)

    def test_what_is_admitted_is_no_finding(self) -> None:
        hosts = ["docker.io", "ghcr.io", "nvcr.io", "prometheus-community.github.io", "nvidia.github.io"]

        assert self.findings({"pullThrough": True, "direct": hosts}) == []

    def test_an_image_that_a_patch_states_is_held_against_the_registry(self) -> None:
        patch = {
            "kind": "Deployment",
            "merge": {
                "spec": {
                    "template": {"spec": {"containers": [{"name": "server", "image": "quay.io/acme/vllm:1"}]}}
                }
            },
        }

        found = self.findings("mirror.example.com/all", patches=[patch])
        assert any("REG001" in each and "quay.io" in each and "Deployment qwen" in each for each in found)

    def test_another_registry_is_another_job(self) -> None:
        """A Job is immutable: Flux could not change its image."""

        def jobs(**settings: Any) -> set[str]:
            folders = default_objects(a_plan(a_model(), environment=an_environment(**settings)))
            return {
                item["metadata"]["name"]
                for objects in folders.values()
                for item in objects
                if item["kind"] == "Job"
            }

        published, mirrored = jobs(), jobs(registry="mirror.example.com/all")
        assert published
        assert len(published) == len(mirrored)
        assert not published & mirrored

    def test_without_a_registry_the_rule_is_silent(self) -> None:
        folders = default_objects(a_plan(a_model()))

        assert check_objects([item for objects in folders.values() for item in objects]) == []


class TestDockerHub:
    def codes(self, **settings: Any) -> set[str]:
        plan = a_plan(a_model(), environment=an_environment(monitoring=PAGED, **settings))
        return {each.code for each in plan.findings}

    def test_a_strict_environment_does_not_depend_on_its_limits(self) -> None:
        assert "REG002" in self.codes(policy="strict")

    def test_a_relaxed_one_may(self) -> None:
        assert "REG002" not in self.codes(policy="relaxed")

    def test_to_admit_it_is_no_way_out(self) -> None:
        registry = {"pullThrough": True, "direct": ["docker.io"]}

        assert "REG002" in self.codes(policy="strict", registry=registry)

    def test_with_a_registry_it_is_not_asked(self) -> None:
        assert "REG002" not in self.codes(policy="strict", registry="mirror.example.com/all")


def test_the_file_says_where(tmp_path: Path) -> None:
    """A finding of the registry points into the environment's file."""
    from modelyard.findings import Finding
    from modelyard.project import load_project

    root = Path(__file__).parents[2]
    project = load_project("local", root / "models", root / "environments")
    finding = Finding("REG001", "x", "y", subject="environment local", field=("registry",))

    (found,) = project.located([finding])
    assert found.location is not None
    assert found.location.file.endswith("local.yaml")
