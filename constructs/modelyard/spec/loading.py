"""Load models and environments from files, with every problem of every file in one run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from modelyard.findings import Finding, Location
from modelyard.reading import CONFIG, NotJson, parse_json, read_file
from modelyard.secret_values import shown
from modelyard.spec.checkpoint_files import with_records
from modelyard.spec.document import Document
from modelyard.spec.environment import Environment
from modelyard.spec.explanation import document_at, explained, fields_of, holds
from modelyard.spec.folders import SUFFIXES, misplaced_models, team_folders, unread_findings, yaml_files
from modelyard.spec.model import Model
from modelyard.spec.pipeline import Pipeline
from modelyard.spec.refused_secrets import (
    MOST_SECRETS,
    RefusedSecrets,
    bare_config,
    conceal,
    refuse_secrets,
    unreadable,
)
from modelyard.spec.settings import ProjectSettings
from modelyard.spec.yaml_reader import FieldPath
from modelyard.spec.yaml_source import YamlSource, read_yaml

D = TypeVar("D", bound=Document)


@dataclass(frozen=True)
class Catalogue:
    """The models of a folder by name, and their source files."""

    models: Mapping[str, Model] = field(default_factory=lambda: MappingProxyType({}))
    sources: Mapping[str, YamlSource] = field(default_factory=lambda: MappingProxyType({}))

    def locate(self, name: str, path: FieldPath = ()) -> Location | None:
        """The location of `path` in model `name`, or the model's first line."""
        source = self.sources.get(name)
        return source.locate(path) if source else None


def load_catalogue(folder: Path) -> tuple[Catalogue, list[Finding]]:
    """Read the model files in `folder` and in its team folders.

    Problems are findings; invalid files are kept as far as they can be parsed.
    """
    models: dict[str, Model] = {}
    sources: dict[str, YamlSource] = {}
    paths, findings = model_paths(folder)
    if not paths and not findings:
        findings.append(
            Finding("YAML001", "the folder holds no *.yaml file", "add a model file", Location(str(folder)))
        )
    for path, owner in paths:
        model, source, problems = load_model(path, team=owner)
        findings += problems
        if model is None or source is None:
            continue
        if model.name in models:
            findings.append(
                Finding(
                    "SPEC004",
                    f"model name '{model.name}' is taken by {sources[model.name].file}",
                    "give one of them another name",
                    source.locate(("name",)),
                    model.name,
                )
            )
            continue
        models[model.name] = model
        sources[model.name] = source
    return Catalogue(MappingProxyType(models), MappingProxyType(sources)), findings


def model_paths(folder: Path) -> tuple[list[tuple[Path, str | None]], list[Finding]]:
    """Every model file with the team of its folder, and findings for unreadable folders.

    Silently skipping a folder would remove its models from the cluster.
    """
    paths: list[tuple[Path, str | None]] = []
    findings: list[Finding] = []
    here = folder
    try:
        paths += [(path, None) for path in yaml_files(folder)]
        findings += misplaced_models(folder)
        for team in team_folders(folder):
            here = team
            paths += [(path, team.name) for path in yaml_files(team)]
            findings += unread_findings(team)
    except OSError as error:
        reason = error.strerror or str(error)
        place = Location(str(here))
        findings.append(
            Finding(
                "YAML001", f"cannot read the folder: {reason}", "check the path and its permissions", place
            )
        )
    return paths, findings


def load_model(
    path: Path, *, team: str | None = None
) -> tuple[Model | None, YamlSource | None, list[Finding]]:
    """Read one model file; `team` is its owner if it is in that team's folder.

    The model is None if too little of the file is valid. With findings there may still be a model, built from
    the valid parts, so that later checks report their problems in the same run; it must not be deployed.
    """
    source = read_yaml(path)
    if isinstance(source, Finding):
        return None, None, unreadable(source, path)
    refused = refuse_secrets(source)
    if len(refused.findings) > MOST_SECRETS:
        return None, None, _first(refused.findings)
    bare, findings = _with_config(refused.source, path.parent)
    whole = _with_config(source, path.parent)[0] if refused.findings else bare
    if team is not None:
        whole, _ = _with_owner(whole, team)
        bare, problems = _with_owner(bare, team)
        findings += problems
    model, problems = _validate_bare(Model, whole, replace(refused, source=bare), {"name": path.stem})
    if model is not None:
        model, of_records = with_records(model, bare, [path.parent, *([path.parent.parent] if team else [])])
        problems += of_records
    findings += [
        *problems,
        *conceal(_first(_account_specifics(source)), refused.pieces),
        *refused.findings,
    ]
    return model, bare, findings


# Where a model file can refer to a config.json by path.
_CONFIGS: tuple[FieldPath, ...] = (("model",), ("speculativeDecoding", "model"))


def _with_config(source: YamlSource, folder: Path) -> tuple[YamlSource, list[Finding]]:
    """`source` with every config.json path replaced by the file's content, or removed if it is not a
    config.json."""
    data, findings = deepcopy(source.data), []
    for path in _CONFIGS:
        weights = _value_at(data, path)
        if not isinstance(weights, dict) or not isinstance(stated := weights.get("config"), str):
            continue
        weights.pop("config")
        config, problem = _config_at(folder / stated)
        if problem is None:
            weights["config"], secrets = bare_config(config, stated, source.locate((*path, "config")))
            findings += secrets
            continue
        findings.append(
            Finding(
                "SPEC003",
                f"{'.'.join(map(str, path))}.config: cannot read {shown(stated)}: {problem}",
                "give the path of the checkpoint's config.json, relative to this file",
                source.locate((*path, "config")),
            )
        )
    return replace(source, data=data), findings


def _with_owner(source: YamlSource, team: str) -> tuple[YamlSource, list[Finding]]:
    """`source` with owner `team`; a finding if the file names another owner."""
    owner = source.data.get("owner") or {}
    if not isinstance(owner, dict):
        return source, []
    findings = []
    if (stated := owner.get("team", team)) != team:
        findings.append(
            Finding(
                "SPEC005",
                f"owner.team is {shown(stated)}, and the file lies in the folder of team '{team}'",
                "move the file, or leave owner.team out",
                source.locate(("owner", "team")),
            )
        )
    return replace(source, data={**source.data, "owner": {**owner, "team": stated}}), findings


def _config_at(path: Path) -> tuple[Any, str | None]:
    """The content of a config.json, and the error if there is one."""
    text = read_file(path, CONFIG)
    if isinstance(text, Finding):
        return None, text.message.removeprefix("cannot read the file: ")
    try:
        config = parse_json(text, repeated_keys=True)
    except NotJson as problem:
        return None, f"it is not JSON: {problem}"
    return config, None if isinstance(config, dict) else "it is not a JSON object"


MOST_PROBLEMS = 100
"""Maximum listed problems of one kind per file: nobody reads more, and a file can have ten thousand."""


def _first(findings: Iterable[Finding], left: int = 0) -> list[Finding]:
    """The first of `findings` and the number of the others, including `left` that were never created."""
    rest = iter(findings)
    listed = list(islice(rest, MOST_PROBLEMS))
    left += sum(1 for _ in rest)
    if left:
        message = f"{left} further problems of this kind are not listed"
        place = Location(listed[-1].location.file) if listed[-1].location else None
        listed.append(Finding(listed[-1].code, message, "correct those that are", place))
    return listed


def load_environment(path: Path) -> tuple[Environment | None, YamlSource | None, list[Finding]]:
    """Read one environment file; the environment is None if it has an error."""
    source = read_yaml(path)
    if isinstance(source, Finding):
        return None, None, unreadable(source, path)
    refused = refuse_secrets(source)
    if len(refused.findings) > MOST_SECRETS:
        return None, None, _first(refused.findings)
    environment, findings = _validate_bare(Environment, source, refused, {"name": path.stem})
    findings += refused.findings
    return (None if findings else environment), refused.source, findings


def load_pipeline(path: Path) -> tuple[Pipeline | None, YamlSource | None, list[Finding]]:
    """Read the pipeline file, `.yaml` or `.yml`; the pipeline is None if it has an error."""
    return _load_alone(path, Pipeline, "the pipeline stands")


def load_settings(path: Path) -> tuple[ProjectSettings | None, list[Finding]]:
    """Read the project settings, `.yaml` or `.yml`: defaults if there is no file, None if it has an error."""
    if not any(path.with_suffix(suffix).exists() for suffix in SUFFIXES):
        return ProjectSettings(), []
    settings, _, findings = _load_alone(path, ProjectSettings, "the project's settings stand")
    return settings, findings


AloneT = TypeVar("AloneT", Pipeline, ProjectSettings)


def _load_alone(
    path: Path, kind: type[AloneT], they_stand: str
) -> tuple[AloneT | None, YamlSource | None, list[Finding]]:
    """A document that a project has once, at `path` or with the other suffix."""
    found = [file for suffix in SUFFIXES if (file := path.with_suffix(suffix)).exists()]
    if len(found) > 1:
        both = Finding(
            "SPEC004",
            f"{they_stand} in {' and '.join(file.name for file in found)}",
            "delete one of them",
            Location(str(path)),
        )
        return None, None, [both]
    path = found[0] if found else path
    source = read_yaml(path)
    if isinstance(source, Finding):
        return None, None, unreadable(source, path)
    refused = refuse_secrets(source)
    if len(refused.findings) > MOST_SECRETS:
        return None, None, _first(refused.findings)
    document, findings = _validate_bare(kind, source, refused, {})
    findings += refused.findings
    return (None if findings else document), refused.source, findings


# Placeholders for required values that are missing or wrong, so that all other checks still run.
_STAND_INS: dict[str, Any] = {"accelerator": "auto", "replicas": 2}


def _validate_bare(
    document: type[D], source: YamlSource, refused: RefusedSecrets, defaults: dict[str, Any]
) -> tuple[D | None, list[Finding]]:
    """Validate the file without its secrets; problems caused only by removing a secret are dropped."""
    parsed, problems = _validate(document, refused.source, defaults)
    if refused.findings:
        meant = {(each.code, each.location) for each in _validate(document, source, defaults)[1]}
        problems = [each for each in problems if (each.code, each.location) in meant]
    return parsed, problems


def _validate(
    document: type[D], source: YamlSource, defaults: dict[str, Any]
) -> tuple[D | None, list[Finding]]:
    """Validate, and repeat without the invalid parts until nothing new turns up."""
    findings: list[Finding] = []
    data = {**defaults, **deepcopy(source.data, _unchanged(source.data))}
    taken: list[FieldPath] = []
    for _ in range(4):
        try:
            return document.model_validate(data, by_alias=True, by_name=False), findings
        except ValidationError as error:
            details = error.errors(include_url=False)
        details = [each for each in details if not _follows(tuple(each["loc"]), each["msg"], taken)]
        if not details:
            break
        findings += _first(explained(document, source, details[:MOST_PROBLEMS]), len(details[MOST_PROBLEMS:]))
        if len(details) > MOST_PROBLEMS:
            break
        paths = [tuple(detail["loc"]) for detail in details]
        mended = [_mend(document, data, path) for path in paths]
        taken += paths
        if not all(mended):
            break
    return None, findings


def _follows(path: FieldPath, message: str, taken: Iterable[FieldPath]) -> bool:
    """Whether a problem of a whole part names a field in it that was wrong, and is missed only since then."""
    return any(
        each[: len(path)] == path and re.search(rf"\b{re.escape(str(each[-1]))}\b", message)
        for each in taken
        if len(path) < len(each)
    )


def _unchanged(data: dict[str, Any]) -> dict[int, Any]:
    """Memo for deepcopy: a config.json is shared, not copied. It is never changed and may have 200,000
    values."""
    configs = (_value_at(data, (*path, "config")) for path in _CONFIGS)
    return {id(config): config for config in configs if isinstance(config, dict)}


def _value_at(data: Any, path: FieldPath) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _mend(document: type[Document], data: dict[str, Any], path: FieldPath) -> bool:
    """Remove the invalid part from `data`, or replace it by a placeholder; False if neither is possible.

    Removes the smallest part around `path` that the format does not require.
    """
    if path and path[0] in _STAND_INS:
        data[str(path[0])] = _STAND_INS[str(path[0])]
        return True
    for end in range(len(path), 0, -1):
        key = path[end - 1]
        owner = document_at(document, path[: end - 1])
        field = fields_of(owner).get(str(key)) if owner else None
        if isinstance(key, int) or (field is not None and field.is_required()):
            continue
        parent: Any = data
        for part in path[: end - 1]:
            parent = parent[part] if holds(parent, part) else None
        if holds(parent, key):
            del parent[key]
            return True
    return False


_ACCOUNT = re.compile(r"arn:aws[a-z-]*:[^\s\"',}\]]+|(?<![\w.-])\d{12}(?![\w.-])")


def _account_specifics(source: YamlSource) -> Iterator[Finding]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        if match := _ACCOUNT.search(line.split(" #")[0]):
            yield Finding(
                "ENV001",
                f"account-specific value {shown(match[0])} in a model file",
                "move it to the environment file",
                Location(source.file, number, match.start() + 1),
            )
