"""The Jobs that call a model: they can reach it, their policy admits no other pods, and their program runs
without Modelyard."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from modelyard.objects.checks.jobs import (
    BENCH,
    LLMETER,
    MOUNT_PATH,
    OPENAI,
    SMOKE,
    START_SCRIPT,
    Program,
    bench_job,
    client_programs,
    smoke_job,
)
from modelyard.objects.composition import environment_objects
from modelyard.objects.pods.images import BOTO3
from modelyard.spec import Environment
from tests.contract.conftest import ROOT, Tree
from tests.contract.fake_openai import KEY, serving
from tests.contract.fake_s3 import FakeS3, storing
from tests.contract.test_joins import labels_of, servers, workloads
from tests.unit.given import a_model, a_plan, an_environment

CHECK = "endpoint-check"


def jobs(tree: Tree) -> list[dict[str, Any]]:
    return [
        job for job in tree.of("Job") if job["metadata"]["labels"]["app.kubernetes.io/component"] == CHECK
    ]


def labels(workload: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = workload["spec"]["template"]["metadata"]["labels"]
    return found


def container(job: dict[str, Any]) -> dict[str, Any]:
    [found] = job["spec"]["template"]["spec"]["containers"]
    return dict(found)


def value(job: dict[str, Any], name: str) -> str:
    [found] = [e["value"] for e in container(job)["env"] if e["name"] == name]
    return str(found)


LWS_NAME = "leaderworkerset.sigs.k8s.io/name"


def job_of(kind: Program, *, delivery: str = "flux", **model: Any) -> dict[str, dict[str, Any]]:
    checks = {"smoke": kind is SMOKE, "bench": kind is BENCH}
    environment = an_environment(secrets={"clients": "lab/clients"}, checks=checks)
    environment = environment.model_copy(update={"delivery": delivery})
    [plan] = a_plan(a_model(**model), environment=environment).models
    job = (smoke_job if kind is SMOKE else bench_job)(plan, environment)
    return {item["kind"]: item for item in (job, *client_programs(environment))}


def test_every_model_with_a_replica_has_its_smoke_job(each: Tree) -> None:
    asked = [value(job, "URL") for job in jobs(each) if value(job, "PROGRAM").endswith(".smoke")]
    asleep = {s["metadata"]["name"] for s in each.of("ScaledObject") if not s["spec"]["minReplicaCount"]}
    names = {
        f"http://{item['metadata']['labels']['modelyard.dev/model']}.{item['metadata']['namespace']}/v1"
        for item in servers(each)
        if item["metadata"]["name"] not in asleep
    }

    assert sorted(asked) == sorted(names)


def test_a_job_finds_its_program_and_its_name(each: Tree) -> None:
    programs = {item["metadata"]["name"]: item for item in each.of("ConfigMap")}
    assert sum("-program-" in name for name in programs) == len({value(job, "PROGRAM") for job in jobs(each)})
    for job in jobs(each):
        program, _ = job["spec"]["template"]["spec"]["volumes"]
        found = programs[program["configMap"]["name"]]
        assert found["immutable"] is True
        assert {item["key"] for item in program["configMap"]["items"]} == set(found["data"])


def admits(peer: dict[str, Any], namespace: str, pod: dict[str, str]) -> bool:
    space = peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
    wanted = peer.get("podSelector", {}).get("matchLabels", {})
    return bool(space == namespace and wanted.items() <= pod.items())


def test_a_server_admits_its_own_jobs(each: Tree) -> None:
    for job in jobs(each):
        model = labels(job)["app.kubernetes.io/instance"]
        service = each.only("Service", model)["spec"]["selector"]
        [policy] = [
            p
            for p in each.of("NetworkPolicy")
            if p["spec"]["podSelector"].get("matchLabels") in (service, {LWS_NAME: model})
        ]
        rule = policy["spec"]["ingress"][0]
        assert any(admits(peer, job["metadata"]["namespace"], labels(job)) for peer in rule["from"])


def test_where_callers_are_named_the_jobs_of_other_models_are_not_among_them() -> None:
    apps = [{"namespace": "apps"}]
    one = a_model(name="one", access={"allowFrom": apps})
    other = a_model(name="other", access={"allowFrom": apps})
    folders = environment_objects(a_plan(one, other))
    pods = {
        name: labels(item)
        for name in ("one", "other")
        for item in folders[f"checks/{name}"]
        if item["kind"] == "Job"
    }
    [policy] = [item for item in folders["models/one"] if item["kind"] == "NetworkPolicy"]
    peers = policy["spec"]["ingress"][0]["from"]

    assert [name for name, pod in pods.items() if any(admits(peer, "models", pod) for peer in peers)] == [
        "one"
    ]
    assert not any(admits(peer, "models", {}) for peer in peers)


def test_a_job_reaches_names_the_package_index_and_servers_alone(each: Tree) -> None:
    policy = each.only("NetworkPolicy", "endpoint-checks")["spec"]
    dns, index, models, *agent = policy["egress"]
    for job in jobs(each):
        assert policy["podSelector"]["matchLabels"].items() <= labels(job).items()
    assert {port["port"] for port in dns["ports"]} == {53}
    assert [port["port"] for port in index["ports"]] == [443]
    [wanted] = models["to"][0]["podSelector"]["matchExpressions"]
    chosen = {
        w["metadata"]["name"] for w in workloads(each) if labels_of(w)[wanted["key"]] in wanted["values"]
    }
    assert {server["metadata"]["name"] for server in servers(each)} <= chosen
    assert not chosen & {job["metadata"]["name"] for job in each.of("Job")}
    assert [port["port"] for port in models["ports"]] == [8000, 8081]  # of servers and routers
    # Where Flux delivers they write reports: S3 is behind 443 as the package index is, its credentials come
    # from the node.
    identity = {
        "to": [{"ipBlock": {"cidr": "169.254.170.23/32"}}],
        "ports": [{"port": 80, "protocol": "TCP"}],
    }
    assert agent == ([identity] if reporting(each) else [])


def reporting(tree: Tree) -> bool:
    """Whether Flux delivers: it alone fills in the bucket of the reports."""
    return not any(item["kind"] == "Application" for item in tree.objects)


def test_where_flux_delivers_the_jobs_share_an_account_and_are_told_where_reports_go(each: Tree) -> None:
    accounts = [item for item in each.of("ServiceAccount") if item["metadata"]["name"] == "endpoint-checks"]
    assert [account["automountServiceAccountToken"] for account in accounts] == [False] * reporting(each)
    for job in jobs(each):
        pod, env = job["spec"]["template"]["spec"], {e["name"]: e for e in container(job)["env"]}
        assert pod["automountServiceAccountToken"] is False
        if not reporting(each):
            assert pod["serviceAccountName"] == job["metadata"]["labels"]["app.kubernetes.io/instance"]
            assert not env.keys() & {"REPORTS", "REPORTS_REGION", "JOB_NAME", "POD_NAME"}
            assert BOTO3 not in value(job, "PACKAGES")
            continue
        assert pod["serviceAccountName"] == "endpoint-checks"
        assert accounts[0]["metadata"]["namespace"] == job["metadata"]["namespace"]
        assert env["REPORTS"]["value"] == "${modelyard_check_reports}"
        assert env["REPORTS_REGION"]["value"] == "us-east-2"
        assert {
            name: env[name]["valueFrom"]["fieldRef"]["fieldPath"] for name in ("JOB_NAME", "POD_NAME")
        } == {
            "JOB_NAME": "metadata.labels['batch.kubernetes.io/job-name']",
            "POD_NAME": "metadata.name",
        }
        assert BOTO3 in value(job, "PACKAGES").split()


def test_nothing_else_in_the_checks_is_taken_for_a_variable_of_flux(each: Tree) -> None:
    """Flux refuses a folder in which a variable stands that nobody defines."""
    texts = [path.read_text(encoding="utf-8") for path in (each.folder / "checks").rglob("*.yaml")]

    found = [variable for text in texts for variable in re.findall(r"\$\{[^}]*\}?|\$\$", text)]
    assert found == ["${modelyard_check_reports}"] * (len(jobs(each)) if reporting(each) else 0)


def test_argo_runs_them_after_the_synchronisation_and_flux_after_the_models(tree: Any) -> None:
    for job in jobs(tree("argocd")):
        assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PostSync"
        assert "ttlSecondsAfterFinished" in job["spec"]
    for job in jobs(tree("prod")):
        assert not any(key.startswith("argocd") for key in job["metadata"]["annotations"])
        assert "ttlSecondsAfterFinished" not in job["spec"]  # Flux would make it again
        # Another bucket is another environment variable, which a Job cannot be given.
        assert job["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/force"] == "enabled"


def test_another_server_is_another_job() -> None:
    names = {
        job_of(SMOKE, **changes)["Job"]["metadata"]["name"]
        for changes in (
            {},
            {"engine": {"args": {"block-size": 32}}},
            {"engine": {"maxModelLen": 8192}},
            {"patches": [{"kind": "Deployment", "merge": {"metadata": {"annotations": {"a": "b"}}}}]},
        )
    }

    assert len(names) == 4
    assert job_of(SMOKE)["Job"] == job_of(SMOKE)["Job"]


def test_the_key_comes_from_the_secret_and_its_value_from_nowhere() -> None:
    job = job_of(SMOKE, access={"apiKey": "clients"})["Job"]

    [key] = [e for e in container(job)["env"] if e["name"] == "API_KEY"]
    assert key["valueFrom"] == {"secretKeyRef": {"name": "clients", "key": "value"}}
    assert json.loads(value(job, "EXPECTATIONS"))["needs_key"] is True


def test_checks_can_be_left_out_or_extended() -> None:
    def kinds(**checks: bool) -> list[str]:
        environment: Environment = an_environment(checks=checks)
        folders = environment_objects(a_plan(a_model(), environment=environment))
        return [value(item, "PROGRAM") for item in folders.get("checks/qwen", []) if item["kind"] == "Job"]

    assert kinds() == ["modelyard.endpoint_tests.smoke"]
    assert kinds(bench=True) == ["modelyard.endpoint_tests.smoke", "modelyard.endpoint_tests.bench"]
    assert kinds(smoke=False) == []


def test_a_model_that_may_have_no_replica_is_not_asked() -> None:
    folders = environment_objects(a_plan(a_model(replicas={"min": 0, "max": 2})))

    assert "checks/qwen" not in folders


def test_jobs_install_what_the_tests_run_with() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert {OPENAI, *LLMETER, BOTO3} <= set(document["dependency-groups"]["dev"])


@pytest.fixture
def unpacked(tmp_path: Path) -> Any:
    """Writes the program of a job as the kubelet mounts it, and gives the job's environment."""

    def unpack(objects: dict[str, dict[str, Any]]) -> dict[str, str]:
        job = objects["Job"]
        for item in job["spec"]["template"]["spec"]["volumes"][0]["configMap"]["items"]:
            file = tmp_path / item["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(objects["ConfigMap"]["data"][item["key"]])
        env = {e["name"]: e.get("value", KEY) for e in container(job)["env"]}
        assert env["PYTHONPATH"] == MOUNT_PATH
        here = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "PACKAGES": "", "WAIT": "5"}
        return {**env, **here, "REPORTS": ""}

    return unpack


@pytest.mark.parametrize("kind", [SMOKE, BENCH])
def test_the_program_imports_nothing_of_modelyard_but_itself(
    kind: Program, unpacked: Any, tmp_path: Path
) -> None:
    env = unpacked(job_of(kind))
    look = (
        "import importlib, os, sys; importlib.import_module(os.environ['PROGRAM']); "
        "print(*{m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] == 'modelyard'}, sep='\\n')"
    )

    run = subprocess.run([sys.executable, "-c", look], env=env, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout
    assert all(Path(file).is_relative_to(tmp_path) for file in run.stdout.split())


@pytest.mark.parametrize(("broken", "code"), [("", 0), ("cut off", 1)])
def test_the_job_runs_as_it_is_rendered(broken: str, code: int, unpacked: Any) -> None:
    """Its own command and variables; the address and the expectations are those of the endpoint of the
    test."""
    objects = job_of(
        SMOKE,
        model={"uri": "hf://Qwen/Qwen3-32B-FP8", "servedNames": ["tiny", "acme/tiny"]},
        engine={"maxModelLen": 512},
        features={"tools": True, "reasoning": True},
        access={"apiKey": "clients"},
    )
    with serving(broken=broken) as server:
        run = subprocess.run(
            [sys.executable, *container(objects["Job"])["command"][1:]],
            env={**unpacked(objects), "URL": server.url},
            capture_output=True,
            text=True,
            check=False,
        )

    assert container(objects["Job"])["command"][2] == START_SCRIPT
    assert run.returncode == code, run.stdout + run.stderr
    assert json.loads(run.stdout.splitlines()[-1])["passed"] is (code == 0)


IN_THE_CLUSTER = {"JOB_NAME": "qwen-smoke-1", "POD_NAME": "qwen-smoke-1-abcde", "REPORTS": "reports"}
"""What the API server and Flux fill in."""
KEY_OF_THE_REPORT = "reports/qwen-smoke-1/qwen-smoke-1-abcde.json"


def run_job(
    unpacked: Any, objects: dict[str, dict[str, Any]], url: str, s3: FakeS3, **variables: str
) -> subprocess.CompletedProcess[str]:
    env = {**unpacked(objects), **IN_THE_CLUSTER, **s3.variables, "URL": url, **variables}
    return subprocess.run(
        [sys.executable, *container(objects["Job"])["command"][1:]],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def tiny(kind: Program, *, delivery: str = "flux") -> dict[str, dict[str, Any]]:
    """The job of a model that promises what the fake endpoint keeps."""
    model = {"uri": "hf://Qwen/Qwen3-32B-FP8", "servedNames": ["tiny", "acme/tiny"]}
    return job_of(
        kind, delivery=delivery, model=model, engine={"maxModelLen": 512}, access={"apiKey": "clients"}
    )


@pytest.mark.parametrize(("broken", "failing"), [("", []), ("cut off", ["streaming"])])
def test_the_smoke_job_reports_what_it_found(broken: str, failing: list[str], unpacked: Any) -> None:
    with serving(broken=broken) as server, storing() as s3:
        run = run_job(unpacked, tiny(SMOKE), server.url, s3)

    assert run.returncode == bool(failing), run.stdout + run.stderr
    report = s3.objects[KEY_OF_THE_REPORT]
    assert report.items() >= json.loads(run.stdout.splitlines()[-1]).items()
    assert (report["kind"], report["model"], report["passed"]) == ("Smoke", "qwen", not failing)
    assert [c["name"] for c in report["checks"] if c["outcome"] == "failed"] == failing
    assert (report["job"], report["pod"]) == ("qwen-smoke-1", "qwen-smoke-1-abcde")
    assert datetime.now(UTC) - datetime.fromisoformat(report["time"]) < timedelta(minutes=5)


def test_the_bench_job_reports_what_it_measured(unpacked: Any) -> None:
    settings = json.loads(value(tiny(BENCH)["Job"], "SETTINGS"))
    settings["workload"]["requests"] = 2
    settings["bounds"] = {"1": 1000.0}

    with serving() as server, storing() as s3:
        run = run_job(unpacked, tiny(BENCH), server.url, s3, SETTINGS=json.dumps(settings))

    assert run.returncode == 0, run.stdout + run.stderr
    report = s3.objects[KEY_OF_THE_REPORT]
    assert (report["kind"], report["passed"]) == ("Bench", True)
    assert report["verdict"].startswith("ok: ")


@pytest.mark.parametrize("kind", [SMOKE, BENCH])
def test_a_model_that_nobody_reaches_is_reported_as_failed(kind: Program, unpacked: Any) -> None:
    with storing() as s3:
        run = run_job(unpacked, tiny(kind), "http://127.0.0.1:1/v1", s3, WAIT="0")

    assert run.returncode == 1
    report = s3.objects[KEY_OF_THE_REPORT]
    assert report["passed"] is False
    assert "does not answer" in json.dumps(report)


@pytest.mark.parametrize(("broken", "code"), [("", 0), ("cut off", 1)])
def test_a_report_that_cannot_be_put_is_one_line_and_no_verdict(
    broken: str, code: int, unpacked: Any
) -> None:
    with serving(broken=broken) as server, storing(refuses=True) as s3:
        run = run_job(unpacked, tiny(SMOKE), server.url, s3)

    assert s3.asked
    assert run.returncode == code
    (line,) = run.stderr.splitlines()
    assert line.startswith("the report did not reach the bucket reports: AccessDenied: ")
    assert json.loads(run.stdout.splitlines()[-1])["passed"] is (code == 0)


def test_without_flux_nothing_is_put_anywhere(unpacked: Any) -> None:
    with serving() as server, storing() as s3:
        objects = tiny(SMOKE, delivery="none")
        assert "REPORTS" not in {e["name"] for e in container(objects["Job"])["env"]}
        run = run_job(unpacked, objects, server.url, s3, REPORTS="")

    assert (run.returncode, run.stderr, s3.asked) == (0, "", [])
