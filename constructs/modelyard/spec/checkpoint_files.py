"""Records of checkpoints as files: read strictly, attached to the models that they describe, and written so
that a diff shows what changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from modelyard.findings import Finding, Location
from modelyard.reading import CHECKPOINT, NotJson, parse_json, read_file, short
from modelyard.spec.checkpoint import CheckpointRecord, record_name
from modelyard.spec.explanation import explained
from modelyard.spec.folders import RECORDS
from modelyard.spec.model import Model
from modelyard.spec.refused_secrets import bare_config
from modelyard.spec.weights import Recorded, Weights
from modelyard.spec.yaml_reader import FieldPath
from modelyard.spec.yaml_source import YamlSource

_MOST_PROBLEMS = 10
_ANEW = "write it anew: modelyard model add "

R = TypeVar("R", bound=Recorded)


def record_path(models: Path, uri: str) -> Path:
    """Where the record of `uri` lies in the folder `models`."""
    return models / RECORDS / record_name(uri)


def read_record(path: Path) -> tuple[CheckpointRecord | None, list[Finding]]:
    """The record at `path`, or the findings that say why there is none."""
    place = Location(str(path))
    text = read_file(path, CHECKPOINT)
    if isinstance(text, Finding):
        return None, [text]
    try:
        data = parse_json(text)
    except NotJson as problem:
        return None, [Finding("YAML001", f"the record is not JSON: {problem}", f"{_ANEW}URI", place)]
    if not isinstance(data, dict):
        return None, [Finding("YAML001", "the record is not a JSON object", f"{_ANEW}URI", place)]
    secrets: list[Finding] = []
    for field in ("config", "generationConfig"):
        if isinstance(config := data.get(field), dict):
            data[field], found = bare_config(config, field, place)
            secrets += found
    nowhere: MappingProxyType[FieldPath, Location] = MappingProxyType({})
    try:
        record = CheckpointRecord.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        source = YamlSource(str(path), text, data, nowhere, nowhere)
        return None, list(
            explained(CheckpointRecord, source, error.errors(include_url=False)[:_MOST_PROBLEMS])
        )
    if record_name(record.uri) != path.name:
        what = f"uri: the file is the record of {short(record.uri)}, whose name is {record_name(record.uri)}"
        return None, [Finding("SPEC003", what, "rename it, or delete it and add its model again", place)]
    return record, secrets


def with_records(model: Model, source: YamlSource, folders: Sequence[Path]) -> tuple[Model, list[Finding]]:
    """`model` with the records of its weights, draft model and adapters, from the first of `folders` that has
    them; and findings about records that cannot be read, or are of another revision."""
    findings: list[Finding] = []

    def recorded(part: R, at: FieldPath) -> R:
        uri = str(getattr(part, "uri", ""))
        paths = [path for folder in folders if (path := record_path(folder, uri)).exists()]
        if not paths:
            return part
        record, problems = read_record(paths[0])
        findings.extend(problems)
        if record is None:
            return part
        if record.uri != uri:
            what = f"uri: the file is the record of {short(record.uri)}, and {short(uri)} has the same name"
            findings.append(Finding("SPEC003", what, "delete it", Location(str(paths[0]))))
            return part
        stated = str(getattr(part, "revision", ""))
        if "revision" in part.model_fields_set and record.revision and not record.agrees_with(stated):
            findings.append(_other_revision(model, source, record, stated, (*at, "revision")))
        if isinstance(part, Weights) and part.file is None and record.tensors is None and record.files:
            known = ", ".join(list(record.files)[:3])
            what = f"model.file: {uri} has GGUF files, and the file names none of them"
            findings.append(
                Finding("SPEC003", what, f"name one, such as {known}", source.locate(("model",)), model.name)
            )
        return part.recorded(record)

    changed: dict[str, Any] = {"model": recorded(model.model, ("model",))}
    if model.adapters:
        changed["adapters"] = tuple(
            recorded(adapter, ("adapters", number)) for number, adapter in enumerate(model.adapters)
        )
    drafts = model.speculative_decoding
    if drafts is not None and drafts.model is not None:
        draft = recorded(drafts.model, ("speculativeDecoding", "model"))
        changed["speculative_decoding"] = drafts.model_copy(update={"model": draft})
    before = {name: getattr(model, name) for name in changed}
    return (model if before == changed else model.model_copy(update=changed)), findings


def _other_revision(
    model: Model, source: YamlSource, record: CheckpointRecord, stated: str, field: FieldPath
) -> Finding:
    commit = str(record.revision)
    return Finding(
        "MODEL006",
        f"the file states revision {short(stated)}, the record of {record.uri} is of {commit[:12]}",
        f"leave the revision out to serve {commit[:12]}, or record the other one: modelyard model add {record.uri} "
        f"--revision {short(stated)}",
        source.locate(field),
        model.name,
    )


def record_text(record: CheckpointRecord) -> str:
    """The content of the record's file: a line for each tensor and each field of the config, sorted."""
    data = record.model_dump(mode="json", by_alias=True, exclude_none=True)
    fixed = {"schema": 1, **{key: value for key, value in data.items() if value not in ([], {})}}
    fixed["gated"] = record.gated
    if record.config_from == "config.json":
        fixed.pop("configFrom")
    return f"{_pretty(fixed, 0)}\n"


def _pretty(value: Any, depth: int) -> str:
    if isinstance(value, dict) and value:
        indent = "  " * (depth + 1)
        keys = sorted(value) if depth else value
        rows = (f"{indent}{json.dumps(key)}: {_pretty(value[key], depth + 1)}" for key in keys)
        return "{\n" + ",\n".join(rows) + f"\n{'  ' * depth}}}"
    return json.dumps(value, sort_keys=True)
