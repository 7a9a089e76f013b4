"""From the files of a checkpoint to its record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import Any

from modelyard.checkpoints import Architecture, UnreadableConfig, architectures, read_config
from modelyard.checkpoints.gguf_config import NoConfig, config_of
from modelyard.checkpoints.gguf_header import GgufHeader, read_gguf_header
from modelyard.checkpoints.safetensors_header import read_header
from modelyard.checkpoints.tensors import MOST_TENSORS, Tensors, WrongTensors, fold
from modelyard.engines import engines, newest_release
from modelyard.findings import Location
from modelyard.live.checkpoints.source import INDEX, NotRead, Source, whole
from modelyard.reading import CONFIG, NotJson, parse_json, short, suggestion
from modelyard.spec.checkpoint import CheckpointRecord, GgufFile
from modelyard.spec.refused_secrets import bare_config

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_MOST_SHARDS = 2_000
_MOST_INDEXED = 2_000_000
_AT_ONCE = 8
_GGUF_ENGINE = "llama-server"
_FIRST_PART = re.compile(r"-00001-of-(?P<parts>[0-9]{5})\.gguf$")
_LATER_PART = re.compile(r"-(?!00001-)[0-9]{5}-of-[0-9]{5}\.gguf$")

_Listed = dict[str, tuple[str, tuple[int, ...]]]


class NoConfigFile(NotRead):
    """Nothing at the place says what the model is made of."""


@dataclass(frozen=True)
class Asked:
    """What to record: `uri` as model files name it; `files`: GGUF files; `architecture`: id of a known model
    with the same config, for repositories without one."""

    uri: str
    files: tuple[str, ...] = ()
    architecture: str | None = None


def read_checkpoint(source: Source, asked: Asked, today: date) -> CheckpointRecord:
    """The record of the checkpoint at `source`.

    Raises:
        NotRead: the place does not answer, or the checkpoint cannot be described.
    """
    listed = source.files
    tensors = _safetensors(source, listed)
    headers = {file: _gguf(source, listed, file) for file in _chosen(source, listed, asked, bool(tensors))}
    config, made = _config(source, listed, asked, headers)
    facts, here = source.facts, Location(source.name)
    # A token that somebody published in a config is no fact of the model.
    config, _ = bare_config(config, "config", here)
    generation = _generation_config(source, listed)
    try:
        return CheckpointRecord(
            uri=asked.uri,
            revision=facts.revision,
            ref=facts.ref if facts.ref != facts.revision else None,
            date=today.isoformat(),
            license=facts.license,
            gated=facts.gated,
            pipeline_tag=facts.pipeline_tag,
            base_model=facts.base_model,
            config=config,
            config_from="gguf" if made else "config.json",
            generation_config=bare_config(generation, "generationConfig", here)[0] if generation else None,
            tensors=_folded(fold(tensors)) if tensors else None,
            files={file: GgufFile(tensors=_folded(fold(header.tensors))) for file, header in headers.items()},
        )
    except WrongTensors as problem:
        raise NotRead(f"the tensors of {source.name} cannot be listed: {problem}") from None


def described(record: CheckpointRecord, name: str) -> Architecture:
    """The architecture that the record's config describes.

    Raises:
        NotRead: the class or a format is not known.
    """
    try:
        return read_config(record.config, model_id=name)
    except UnreadableConfig as problem:
        served = engines_that_serve(record)
        known = f"{' and '.join(served)} would serve it; " if served else ""
        raise NotRead(
            f"nothing was written: {short(str(problem), 300)}; {known}record it with the config of a known model with the "
            "same layout: --architecture ID (`modelyard catalog models`)"
        ) from None


def engines_that_serve(record: CheckpointRecord) -> tuple[str, ...]:
    """Engines whose newest release knows the class that the config names, with that release."""
    named = record.config.get("architectures")
    kind = named[0] if isinstance(named, list) and named else named
    newest = [newest_release(name) for name in sorted(engines())]
    reads_gguf = record.tensors is None and bool(record.files)
    return tuple(
        f"{each.engine} {each.version}"
        for each in newest
        if kind in each.architectures and (each.engine == _GGUF_ENGINE) == reads_gguf
    )


def json_object(source: Source, file: str, content: bytes) -> dict[str, Any]:
    """`content` as the JSON object that `file` has to be.

    Raises:
        NotRead: it is not one.
    """
    try:
        found = parse_json(content, repeated_keys=True)
    except NotJson as problem:
        raise NotRead(f"the {file} of {source.name} is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise NotRead(f"the {file} of {source.name} is not a JSON object")
    return found


def _config(
    source: Source, listed: Mapping[str, int], asked: Asked, headers: Mapping[str, GgufHeader]
) -> tuple[dict[str, Any], bool]:
    """The config, and whether it was made from a GGUF file's metadata."""
    if asked.architecture is not None:
        table_id = architectures().called(asked.architecture)
        if table_id is None:
            near = suggestion(asked.architecture, architectures().repositories())
            raise NotRead(
                f"--architecture {asked.architecture} is not known: {near}`modelyard catalog models` lists them"
            )
        return architectures().config(table_id), False
    if "config.json" in listed:
        return json_object(source, "config.json", whole(source, "config.json", CONFIG)), False
    known = next((i for base in source.facts.base_model if (i := architectures().called(base))), None)
    if known and headers:
        return architectures().config(known), False
    why = ""
    for header in headers.values():
        try:
            return config_of(header), True
        except NoConfig as problem:
            why = f" ({problem})"
    raise NoConfigFile(f"{source.name} has no config.json{why}")


def _generation_config(source: Source, listed: Mapping[str, int]) -> dict[str, Any] | None:
    name = "generation_config.json"
    return json_object(source, name, whole(source, name, CONFIG)) if name in listed else None


def _safetensors(source: Source, listed: Mapping[str, int]) -> _Listed:
    """Type and shape of every tensor of the safetensors files that an engine loads."""
    files = _weight_files(source, listed)
    if missing := sorted(files - listed.keys()):
        raise NotRead(f"the index of {source.name} names {missing[0][:80]!r}, which is not there")
    if len(files) > _MOST_SHARDS:
        raise NotRead(f"{source.name} has {len(files):,} safetensors files; {_MOST_SHARDS:,} are the most")
    found: _Listed = {}
    with ThreadPoolExecutor(_AT_ONCE) as several:
        for header in several.map(lambda file: _header(source, file), sorted(files)):
            found.update(header)
            if len(found) > MOST_TENSORS:
                raise NotRead(f"{source.name} has more than {MOST_TENSORS:,} tensors")
    return found


def _weight_files(source: Source, listed: Mapping[str, int]) -> set[str]:
    if _INDEX in listed:
        try:
            index = parse_json(whole(source, _INDEX, INDEX), most=_MOST_INDEXED)
        except NotJson as problem:
            raise NotRead(f"the index of {source.name} is not JSON: {problem}") from None
        names = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
            raise NotRead(f"the index of {source.name} has no weight_map of tensors to files")
        return set(names.values())
    if _SINGLE in listed:
        return {_SINGLE}
    found = {name for name in listed if name.endswith(".safetensors") and "/" not in name}
    # Mistral publishes its weights twice; engines load the other form where it is there.
    return {name for name in found if not name.startswith(("adapter_", "consolidated"))} or found


def _header(source: Source, file: str) -> _Listed:
    try:
        return read_header(lambda start, length: source.read(file, start, length))
    except WrongTensors as problem:
        raise NotRead(f"{file} of {source.name}: {problem}") from None


def _chosen(
    source: Source, listed: Mapping[str, int], asked: Asked, has_safetensors: bool
) -> tuple[str, ...]:
    """GGUF files to record: those asked for, or the only one of a repository without safetensors."""
    found = [
        name
        for name in sorted(listed)
        if name.endswith(".gguf") and not _LATER_PART.search(name) and not name.startswith("mmproj")
    ]
    for file in asked.files:
        if file not in found:
            others = suggestion(file, found) or (f"it has {', '.join(found[:5])}" if found else "it has none")
            raise NotRead(f"{source.name} has no GGUF file {file}: {others.removesuffix(' ')}")
    if asked.files or has_safetensors or not found:
        return asked.files
    if len(found) > 1:
        raise NotRead(f"{source.name} has {len(found)} GGUF files: name one with --file, such as {found[0]}")
    return (found[0],)


def _gguf(source: Source, listed: Mapping[str, int], file: str) -> GgufHeader:
    """The header of `file`, with the tensors of all parts of a split model."""
    parts = [file]
    if (split := _FIRST_PART.search(file)) is not None:
        count = min(int(split["parts"]), _MOST_SHARDS)
        parts = [_FIRST_PART.sub(f"-{n:05d}-of-{split['parts']}.gguf", file) for n in range(1, count + 1)]
    headers = [_gguf_part(source, listed, each, file) for each in parts]
    tensors = {name: tensor for header in headers for name, tensor in header.tensors.items()}
    return GgufHeader(headers[0].metadata, tensors)


def _gguf_part(source: Source, listed: Mapping[str, int], part: str, file: str) -> GgufHeader:
    if part not in listed:
        raise NotRead(f"{source.name} has no {part}, a part of {file}")
    try:
        return read_gguf_header(lambda start, length: source.read(part, start, length))
    except WrongTensors as problem:
        raise NotRead(f"{part} of {source.name}: {problem}") from None


def _folded(tensors: tuple[Tensors, ...]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """By folded name; tensors of one name in several types or shapes never have the same indices."""
    return {each.name: (each.kind, each.shape) for each in tensors}
