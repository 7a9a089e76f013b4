"""Whether the models answer, from the reports that the Jobs of `checks` put into a bucket."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from modelyard.findings import Finding
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.buckets import content, objects
from modelyard.names import CHECKS_FOLDER, MODEL_LABEL
from modelyard.reading import NotJson, parse_json
from modelyard.spec.yaml_source import parse_yaml
from modelyard.writing import tree_files

JobState = Literal["answered", "failed", "pending"]
Report = Mapping[str, Any]
_REASONS: Final = 3
_VERSIONS = Operation("s3", "ListObjectVersions")


class UnreadableTree(Exception):
    """A file of the rendered tree is not output of `modelyard render`; the text names it."""


@dataclass(frozen=True)
class CheckJob:
    """A Job of the rendered tree that calls a model; Kubernetes gives up after `attempts` failed pods."""

    model: str
    name: str
    namespace: str
    attempts: int
    file: str = ""  # in the tree

    @property
    def logs(self) -> str:
        """The kubectl command for its logs."""
        return f"kubectl -n {self.namespace} logs job/{self.name}"


@dataclass(frozen=True)
class JobOutcome:
    """What a Job's reports say. `pending`: not known yet."""

    job: CheckJob
    state: JobState
    why: str = ""

    def __str__(self) -> str:
        return f"{self.job.model}: {self.why}"


def check_jobs(tree: Path) -> list[CheckJob]:
    """The Jobs below folder `checks` of a rendered tree.

    Raises:
        UnreadableTree: a file there is not a Job of ours.
    """
    return [
        _check_job(tree / file, file, content)
        for file, content in tree_files(tree).items()
        if file.startswith(f"{CHECKS_FOLDER}/") and PurePosixPath(file).match("job-*.yaml")
    ]


def _check_job(path: Path, file: str, content: bytes) -> CheckJob:
    source = parse_yaml(content.decode(errors="replace"), str(path))
    if isinstance(source, Finding):
        raise UnreadableTree(f"{source}; render the tree again")
    job = source.data
    try:
        metadata = job["metadata"]
        model, name, namespace = (
            metadata["labels"][MODEL_LABEL],
            metadata["name"],
            metadata["namespace"],
        )
        attempts = job["spec"]["backoffLimit"] + 1
    except (LookupError, TypeError):
        raise UnreadableTree(f"{path} is no Job that asks a model; render the tree again") from None
    if not isinstance(attempts, int) or not all(isinstance(word, str) for word in (model, name, namespace)):
        raise UnreadableTree(f"{path} is no Job that asks a model; render the tree again")
    return CheckJob(model, name, namespace, attempts, file)


def job_reports(
    ask: Ask, bucket: str, delivery: str | None, jobs: Iterable[CheckJob]
) -> dict[CheckJob, list[Report]]:
    """Reports of each Job's pods since its file was last uploaded to the bucket that Flux reads.

    Raises:
        Unanswered: AWS does not answer.
    """
    there: dict[str, list[tuple[str, datetime]]] = defaultdict(list)
    for item in objects(ask, bucket):
        there[item["Key"].partition("/")[0]].append((item["Key"], item["LastModified"]))
    gone: dict[str, datetime] = {}
    if there and delivery:  # going back to an earlier state makes a Job of the same name, which runs again
        for marker in ask(_VERSIONS, Bucket=delivery, Prefix=f"{CHECKS_FOLDER}/").get("DeleteMarkers", []):
            last = gone.get(marker["Key"], marker["LastModified"])
            gone[marker["Key"]] = max(last, marker["LastModified"])
    return {
        job: [
            read_report(key, content(ask, bucket, key))
            for key, time in there[job.name]
            if job.file not in gone or time > gone[job.file]
        ]
        for job in jobs
    }


def job_outcome(job: CheckJob, reports: Sequence[Report]) -> JobOutcome:
    """One passed attempt is enough, as in Kubernetes; a failure counts once no attempt is left."""
    if any(report["passed"] for report in reports):
        return JobOutcome(job, "answered")
    if not reports:
        return JobOutcome(job, "pending", f"{job.name} has not reported")
    why = _reasons(max(reports, key=lambda report: str(report.get("time", ""))))
    if len(reports) < job.attempts:
        return JobOutcome(
            job, "pending", f"{len(reports)} of {job.attempts} attempts of {job.name} failed: {why}"
        )
    return JobOutcome(job, "failed", f"every attempt of {job.name} failed, the last with {why}")


def read_report(key: str, body: bytes) -> Report:
    """A report; an unreadable one says so, and has not passed."""
    try:
        report = parse_json(body)
    except NotJson:
        report = None
    if isinstance(report, dict) and isinstance(report.get("passed"), bool):
        checks = report.get("checks", [])
        if isinstance(checks, list) and all(isinstance(check, dict) for check in checks):
            return report
    return {"passed": False, "verdict": f"{key} is not a report"}


def _reasons(report: Report) -> str:
    """The first checks that failed, or the one sentence of a load test."""
    failed = [check for check in report.get("checks", []) if check.get("outcome") == "failed"]
    reasons = [f"{check.get('name')}: {check.get('reason')}" for check in failed[:_REASONS]]
    if len(failed) > _REASONS:
        reasons.append(f"and {len(failed) - _REASONS} more")
    return "; ".join(reasons) or str(report.get("verdict", "it does not say why"))


def answering(outcomes: Sequence[JobOutcome]) -> tuple[int, int]:
    """Number of models that answered in all their Jobs, and number of models."""
    models = {each.job.model for each in outcomes}
    return len(models - {each.job.model for each in outcomes if each.state != "answered"}), len(models)
