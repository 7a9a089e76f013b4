"""checkov and cfn-lint on synthesised templates; neither needs the network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfnlint.api import lint  # type: ignore[import-untyped]

from infra.controls.violation import Template, Violation


@dataclass(frozen=True)
class StackTemplate:
    """A template, with the construct path of each logical id."""

    construct: str
    """Construct path of the stack; in a pipeline it starts with the pipeline and the stage."""
    file: Path
    paths: dict[str, str]

    @property
    def stack(self) -> str:
        return self.construct.rpartition("/")[2]

    @property
    def template(self) -> Template:
        loaded: Template = json.loads(self.file.read_text(encoding="utf-8"))
        return loaded

    def path(self, logical_id: str) -> str:
        return self.paths.get(logical_id, f"{self.stack}/{logical_id}")


def templates_of(assembly: Path) -> list[StackTemplate]:
    """Every template of a cloud assembly, including pipeline stages."""
    found = []
    manifest = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))
    for artifact in manifest["artifacts"].values():
        properties = artifact.get("properties", {})
        if artifact["type"] == "cdk:cloud-assembly":
            found += templates_of(assembly / properties["directoryName"])
        if artifact["type"] != "aws:cloudformation:stack":
            continue
        metadata = artifact.get("metadata")
        if file := artifact.get("additionalMetadataFile"):
            metadata = json.loads((assembly / file).read_text(encoding="utf-8"))
        construct = artifact["displayName"].split(" ")[0]
        outside = "/" + construct.removesuffix(construct.rpartition("/")[2])
        paths = {
            entry["data"]: path.removeprefix(outside)
            for path, entries in (metadata or {}).items()
            for entry in entries
            if entry["type"] == "aws:cdk:logicalId"
        }
        found.append(StackTemplate(construct, assembly / properties["templateFile"], paths))
    return found


# Message of an informational rule that cfn-lint 1.58 reports as an error of a pipeline's actions (E3703).
_MATTER_OF_TASTE = "Prefer using Fn::Sub over Fn::Join with an empty delimiter"


def cfn_lint_violations(templates: Iterable[StackTemplate], *, region: str) -> Iterator[Violation]:
    for each in templates:
        for match in lint(each.file.read_text(encoding="utf-8"), regions=[region]):
            if match.message == _MATTER_OF_TASTE:
                continue
            place = [str(part) for part in match.path or ()]
            logical_id = place[1] if len(place) > 1 else each.stack
            yield Violation("cfn-lint", match.rule.id, each.path(logical_id), match.message)


# Types for which checkov 3.3 has no rule: it says nothing of a stack that has only these.
_WITHOUT_RULES = {
    "AWS::CDK::Metadata",
    "AWS::ECR::PullThroughCacheRule",
    "AWS::ECR::RepositoryCreationTemplate",
}


def _kinds(template: StackTemplate) -> set[str]:
    return {resource["Type"] for resource in template.template.get("Resources", {}).values()}


def checkov_violations(
    assemblies: dict[str, list[StackTemplate]], *, command: Path, workspace: Path
) -> dict[str, list[Violation]]:
    """checkov's findings by assembly name. One run for all, because most of its time is start-up."""
    index: dict[str, tuple[str, StackTemplate]] = {}
    shutil.rmtree(workspace, ignore_errors=True)
    for name, templates in assemblies.items():
        for position, each in enumerate(templates):
            file = f"/{name}/{position}-{each.stack}.template.json"
            index[file] = (name, each)
            (workspace / name).mkdir(parents=True, exist_ok=True)
            shutil.copy(each.file, workspace / file.lstrip("/"))
    run = subprocess.run(
        [
            *(command, "--directory", workspace, "--framework", "cloudformation", "--skip-download"),
            *("--compact", "--output", "json"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(workspace), "LOG_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=False,
    )
    report: dict[str, Any] = json.loads(run.stdout)
    if report["summary"]["parsing_errors"]:
        raise RuntimeError(f"checkov cannot read {report['results']['parsing_errors']}")
    seen = {check["file_path"] for check in report["results"]["passed_checks"]}
    found: dict[str, list[Violation]] = {name: [] for name in assemblies}
    for check in report["results"]["failed_checks"]:
        seen.add(check["file_path"])
        name, each = index[check["file_path"]]
        logical_id = check["resource"].rpartition(".")[2]
        found[name].append(
            Violation("checkov", check["check_id"], each.path(logical_id), check["check_name"])
        )
    # Without --quiet it also lists passed checks: a template without any result was not scanned.
    unseen = {file for file in set(index) - seen if _kinds(index[file][1]) - _WITHOUT_RULES}
    if unseen:
        raise RuntimeError(f"checkov said nothing of {', '.join(sorted(unseen))}: {run.stderr}")
    return found
