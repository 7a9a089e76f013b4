"""The sweep's own script on a real folder: what goes, what stays, and what it never looks at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from modelyard.object_rules.cache_folders import folders_in_use
from modelyard.objects.composition import default_objects
from modelyard.objects.serving.weights import MARKER
from tests.contract.conftest import NAMES, Tree
from tests.unit.given import a_model, a_plan, an_environment

DAY = date(2026, 11, 22)
USED = "hf/Qwen/Qwen3-8B/v3"
BEFORE, OLDER = "hf/Qwen/Qwen3-8B/v2", "hf/Qwen/Qwen3-8B/v1"
KERNELS, OLD_KERNELS = "compile/vllm-0.33.0-l40s-aaaaaaaa", "compile/vllm-0.32.0-l40s-bbbbbbbb"
LEDGER = ".named-last.json"


@dataclass(frozen=True)
class Cache:
    """A folder with the layout of the model cache."""

    root: Path

    def fill(self, *folders: str) -> None:
        for age, folder in enumerate(folders):
            path = self.root / folder
            path.mkdir(parents=True)
            (path / "model.safetensors").write_bytes(b"w" * 1000)
            if folder.startswith("hf/") and not folder.endswith(".partial"):
                (path / MARKER).write_text("commit", encoding="utf-8")
            os.utime(path, (1e9 - age, 1e9 - age))  # the first is the youngest

    def has(self, folder: str) -> bool:
        return (self.root / folder).is_dir()

    def sweep(self, *named: str, on: date = DAY, mode: str = "delete") -> str:
        """What one run prints; the text that the CronJob runs, in an interpreter of its own."""
        job = sweep_job()
        template = job["spec"]["jobTemplate"]["spec"]["template"]
        [container] = template["spec"]["containers"]
        told = {each["name"]: each["value"] for each in container["env"]}
        told |= {"ROOT": str(self.root), "NAMED": json.dumps(named), "MODE": mode, "TODAY": on.isoformat()}
        run = subprocess.run(
            [sys.executable, *container["command"][1:]], env=told, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout


def sweep_job(**changes: Any) -> dict[str, Any]:
    folders = default_objects(a_plan(a_model(), environment=an_environment(**changes)))
    (found,) = (item for item in folders["models/_sweep"] if item["kind"] == "CronJob")
    return found


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    found = Cache(tmp_path)
    found.fill(USED, BEFORE, OLDER, KERNELS, OLD_KERNELS)
    return found


def in_days(days: int) -> date:
    return DAY + timedelta(days=days)


def test_a_first_run_deletes_nothing(cache: Cache) -> None:
    said = cache.sweep(USED, KERNELS)

    assert all(map(cache.has, (USED, BEFORE, OLDER, KERNELS, OLD_KERNELS)))
    assert f"keep {OLDER}: unnamed for 0 of 30 days" in said


def test_what_no_model_has_named_for_a_month_goes_and_the_rest_stays(cache: Cache) -> None:
    cache.sweep(USED, KERNELS)
    said = cache.sweep(USED, KERNELS, on=in_days(30))

    assert all(map(cache.has, (USED, BEFORE, KERNELS)))
    assert not cache.has(OLDER)
    assert not cache.has(OLD_KERNELS)
    assert f"keep {BEFORE}: the revision before, for a rollback" in said
    assert f"delete {OLDER}: unnamed for 30 days" in said


def test_a_day_earlier_everything_is_there(cache: Cache) -> None:
    cache.sweep(USED, KERNELS)
    cache.sweep(USED, KERNELS, on=in_days(29))

    assert cache.has(OLDER)
    assert cache.has(OLD_KERNELS)


def test_a_report_says_what_could_go_and_deletes_nothing(cache: Cache) -> None:
    cache.sweep(USED, KERNELS)
    said = cache.sweep(USED, KERNELS, on=in_days(99), mode="report")

    assert f"would delete {OLDER}" in said
    assert cache.has(OLDER)
    assert cache.has(OLD_KERNELS)


def test_the_revision_before_is_the_one_that_was_named_last(cache: Cache) -> None:
    """Rolled back to v1 for a while, then on to v3: v1 is the way back, though v2 is younger."""
    cache.sweep(OLDER, KERNELS)
    cache.sweep(USED, KERNELS, on=in_days(7))
    cache.sweep(USED, KERNELS, on=in_days(60))

    assert cache.has(OLDER)
    assert not cache.has(BEFORE)


def test_a_model_that_was_named_again_begins_anew(cache: Cache) -> None:
    cache.sweep(USED, KERNELS)
    cache.sweep(USED, OLD_KERNELS, on=in_days(20))
    cache.sweep(USED, KERNELS, on=in_days(40))

    assert cache.has(OLD_KERNELS)


def test_a_repository_that_no_model_uses_goes_whole(cache: Cache) -> None:
    cache.sweep(KERNELS)
    cache.sweep(KERNELS, on=in_days(31))

    assert not any(map(cache.has, (USED, BEFORE, OLDER)))


def test_nothing_is_judged_where_no_model_names_anything(cache: Cache) -> None:
    cache.sweep(USED, KERNELS)
    said = cache.sweep(on=in_days(999))

    assert "nothing is deleted" in said
    assert cache.has(OLDER)


def test_a_download_that_runs_stays_and_one_that_was_given_up_goes(cache: Cache) -> None:
    running, given_up = "hf/acme/new/main.partial", "hf/acme/other/main.partial"
    cache.fill(running, given_up)
    for on in (DAY, in_days(31)):
        cache.sweep(USED, KERNELS, "hf/acme/new/main", on=on)

    assert cache.has(running)
    assert not cache.has(given_up)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"compile/x": 3}', '{"compile/x": ["yesterday"]}', '{"x": []}']
)
def test_a_lost_memory_begins_today(cache: Cache, text: str) -> None:
    cache.sweep(USED, KERNELS)
    (cache.root / LEDGER).write_text(text, encoding="utf-8")
    cache.sweep(USED, KERNELS, on=in_days(300))

    assert cache.has(OLDER)
    assert json.loads((cache.root / LEDGER).read_text(encoding="utf-8"))[OLDER] == [
        in_days(300).isoformat(),
        None,
    ]


def test_folders_of_people_and_what_links_lead_to_are_never_looked_at(cache: Cache) -> None:
    outside = cache.root.parent / f"{cache.root.name}-outside"
    (outside / "v1").mkdir(parents=True)
    (outside / "v1" / MARKER).write_text("commit", encoding="utf-8")
    theirs = ("batches/in", "finetunes/mine/v1", "s3/bucket/prefix", "hf/acme/by-hand/v1")
    for folder in theirs:
        (cache.root / folder).mkdir(parents=True)
    (cache.root / "hf/acme/link").symlink_to(outside)
    for on in (DAY, in_days(300)):
        said = cache.sweep(USED, KERNELS, on=on)

    assert all(map(cache.has, theirs))
    assert (outside / "v1" / MARKER).is_file()
    assert "by-hand" not in said


def test_what_a_stopped_run_left_goes_with_the_next(cache: Cache) -> None:
    cache.fill("compile/x.going", "hf/acme/old/v1.going")

    cache.sweep(USED, KERNELS)

    assert not cache.has("compile/x.going")
    assert not cache.has("hf/acme/old/v1.going")


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({}, "delete"),
        ({"sweep": "report"}, "report"),
        (
            {
                "fileSystemId": "fs-0123456789abcdef0",
                "accessPointId": "fsap-0123456789abcdef0",
                "sweep": "delete",
            },
            "delete",
        ),
    ],
)
def test_the_job_does_what_the_environment_says(settings: dict[str, Any], mode: str) -> None:
    [container] = sweep_job(cache=settings)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]

    assert {"name": "MODE", "value": mode} in container["env"]


@pytest.mark.parametrize(
    "settings",
    [{"sweep": "off"}, {"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"}],
    ids=["off", "a file system of others"],
)
def test_there_is_no_sweep_where_it_is_off_or_others_may_use_the_files(settings: dict[str, Any]) -> None:
    folders = default_objects(a_plan(a_model(), environment=an_environment(cache=settings)))

    assert not [item for items in folders.values() for item in items if item["kind"] == "CronJob"]


@pytest.mark.parametrize("name", NAMES)
def test_every_folder_of_every_server_is_named(name: str, tree: Callable[[str], Tree]) -> None:
    """Of all fetch jobs, and of the paths in servers' own arguments."""
    found = tree(name)
    targets = _targets(found.of("Job"))

    assert targets <= folders_in_use(found.objects)


def _targets(jobs: Sequence[dict[str, Any]]) -> set[str]:
    return {
        variable["value"].removeprefix("/models/")
        for job in jobs
        for container in job["spec"]["template"]["spec"]["containers"]
        for variable in container.get("env", ())
        if variable["name"] == "TARGET"
    }
