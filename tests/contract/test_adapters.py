"""Adapters from the Hub, a bucket and the shared cache: what is fetched, mounted, awaited and served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto import mock_aws

from modelyard.names import WEIGHTS_FOLDER
from modelyard.objects.composition import checked_objects
from modelyard.objects.serving import fetch_from_bucket, weights
from tests.unit.given import a_model, a_plan, an_environment, codes

Run = Callable[..., tuple[int | str | None, str]]
HUB = {"name": "legal", "uri": "hf://acme/legal", "revision": "v2"}
BUCKET = {"name": "medical", "uri": "s3://acme-weights/loras/medical"}
SHARED = {"name": "tone", "uri": "efs://loras/tone"}
ENVIRONMENT = an_environment(cache={"readBuckets": ["acme-weights"]})


def rendered(**model: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The pod of a model with the three adapters, and the fetch jobs."""
    planned = a_plan(a_model(adapters=[HUB, BUCKET, SHARED], **model), environment=ENVIRONMENT)
    assert codes(planned.findings) == []
    folders = checked_objects(planned)
    [server] = [item for item in folders["models/qwen"] if item["kind"] == "Deployment"]
    jobs = [item for folder, items in folders.items() if folder.startswith(WEIGHTS_FOLDER) for item in items]
    return server["spec"]["template"]["spec"], jobs


def modules(pod: dict[str, Any]) -> list[str]:
    args = pod["containers"][0]["args"]
    start = args.index("--lora-modules") + 1
    return list(args[start : start + 3])


def test_each_adapter_is_served_from_where_it_lies() -> None:
    pod, jobs = rendered()

    assert modules(pod) == [
        "legal=/models/hf/acme/legal/v2",
        "medical=/models/s3/acme-weights/loras/medical",
        "tone=/models/loras/tone",
    ]
    targets = [
        next(
            each["value"]
            for each in job["spec"]["template"]["spec"]["containers"][0]["env"]
            if each["name"] == "TARGET"
        )
        for job in jobs
    ]
    assert targets[1:] == ["/models/hf/acme/legal/v2", "/models/s3/acme-weights/loras/medical"]
    awaited = pod["initContainers"][0]["command"]
    assert {f"{target}/{weights.MARKER}" for target in targets} <= set(awaited)
    assert not [
        path for path in awaited if path.startswith("/models/loras/tone")
    ]  # what people put there has no marker


def test_only_the_job_that_reads_the_bucket_may_read_it() -> None:
    _, jobs = rendered()

    accounts = [job["spec"]["template"]["spec"]["serviceAccountName"] for job in jobs]
    assert accounts == ["weights-fetch", "weights-fetch", "weights-reader"]


def test_a_copy_on_the_nodes_disk_holds_all_of_them() -> None:
    pod, _ = rendered(cache="nvme")

    copied = next(each for each in pod["initContainers"] if each["name"] == "copy-weights")["command"]
    for module in modules(pod):
        path = module.partition("=")[2]
        assert path.startswith("/local/")
        assert path.removeprefix("/local") in copied


def test_streamed_weights_have_adapters_from_the_cache() -> None:
    """The base comes from the bucket and nothing mounts the cache but its adapters."""
    streamed = {"uri": "s3://acme-weights/qwen", "architecture": "Qwen/Qwen3-32B-FP8"}

    pod, _ = rendered(model=streamed)
    plain = a_plan(a_model(model=streamed), environment=ENVIRONMENT)
    [bare] = [i for i in checked_objects(plain)["models/qwen"] if i["kind"] == "Deployment"]

    def mounts(spec: dict[str, Any]) -> set[str]:
        return {each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}

    assert "/models" in mounts(pod)
    assert "/models" not in mounts(bare["spec"]["template"]["spec"])
    assert pod["initContainers"][0]["name"] == "await-weights"


def test_a_bucket_that_nobody_may_read_is_a_finding_at_the_adapter() -> None:
    model = a_model(adapters=[BUCKET])

    [found] = a_plan(model).findings

    assert (found.code, found.field) == ("S3001", ("adapters", 0, "uri"))


class TestTheScript:
    """The Job's own program, with the real boto3, against moto's S3."""

    @pytest.fixture(autouse=True)
    def _bucket(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        with mock_aws():
            client = boto3.client("s3")
            client.create_bucket(Bucket="acme-weights")
            for key in ("medical/adapter_model.safetensors", "medical/a/config.json", "medical2/x"):
                client.put_object(Bucket="acme-weights", Key=f"loras/{key}", Body=key.encode())
            yield

    @pytest.fixture
    def run(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
        def fetch(target: Path, **more: str) -> tuple[int | str | None, str]:
            source = weights.WeightsSource("s3://acme-weights/loras/medical", "main")
            for name, value in (weights.fetch_variables(source) | {"TARGET": str(target)} | more).items():
                monkeypatch.setenv(name, value)
            code: int | str | None = 0
            try:
                fetch_from_bucket.main()
            except SystemExit as stop:
                code = stop.code
            return code, capsys.readouterr().out

        return fetch

    def test_a_folder_is_complete_or_not_there(self, run: Run, tmp_path: Path) -> None:
        target = tmp_path / "medical"
        partial = tmp_path / "medical.partial" / "a"
        partial.mkdir(parents=True)
        (partial / "config.json").write_text("half", encoding="utf-8")

        assert run(target) == (0, f"{target} is complete: 2 objects\n")
        assert run(target) == (0, f"{target} is complete\n")
        found = {str(p.relative_to(target)): p.read_text() for p in target.rglob("*") if p.is_file()}
        assert found == {
            ".complete": "2 objects",
            "adapter_model.safetensors": "medical/adapter_model.safetensors",
            "a/config.json": "medical/a/config.json",
        }

    @pytest.mark.parametrize(
        ("told", "code", "said"),
        [
            ({"PREFIX": "nothing"}, 4, "no object below nothing/ in bucket acme-weights"),
            ({"BUCKET": "another"}, 3, "no access to bucket another"),
        ],
    )
    def test_what_cannot_be_had_ends_with_its_own_code(
        self, run: Run, tmp_path: Path, told: dict[str, str], code: int, said: str
    ) -> None:
        found, text = run(tmp_path / "x", **told)

        assert found == code
        assert said in text
        assert not (tmp_path / "x").exists()

    def test_a_whole_bucket_may_be_an_adapter(self, run: Run, tmp_path: Path) -> None:
        assert run(tmp_path / "x", PREFIX="") == (0, f"{tmp_path}/x is complete: 3 objects\n")

    def test_the_jobs_text_is_the_program(self) -> None:
        source = weights.WeightsSource("s3://acme-weights/loras/medical", "main")
        job = weights.fetch_job(source=source, environment="lab", namespace="models", token_secret=None)

        [container] = job["spec"]["template"]["spec"]["containers"]
        assert container["command"][2] == Path(fetch_from_bucket.__file__).read_text(encoding="utf-8")
        assert "${" not in container["command"][2]  # Flux would substitute it
