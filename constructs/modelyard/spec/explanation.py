"""Findings about what pydantic refuses: which key or value, where in the file, and what belongs there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic_core import ErrorDetails

from modelyard.findings import Finding, Location
from modelyard.reading import closest, short
from modelyard.secret_values import shown
from modelyard.spec.descriptions import descriptions
from modelyard.spec.document import Document
from modelyard.spec.messages import nearest, problem, uncapitalized
from modelyard.spec.yaml_reader import FieldPath
from modelyard.spec.yaml_source import YamlSource


def explained(
    document: type[Document], source: YamlSource, details: Sequence[ErrorDetails]
) -> Iterator[Finding]:
    """A finding per problem, without repetitions: both bounds of a short form such as `replicas: -1`, and a
    missing key beside its mistyped name."""
    paths = [_written(source.data, tuple(detail["loc"])) for detail in details]
    unknown = [
        path for path, detail in zip(paths, details, strict=True) if detail["type"] == "extra_forbidden"
    ]
    mistyped = {(*path[:-1], _known_key(document, path)) for path in unknown}
    seen: set[tuple[Location, str]] = set()
    for path, detail in zip(paths, details, strict=True):
        if detail["type"] == "extra_forbidden":
            yield _unknown_key(document, source, path)
        elif detail["type"] == "missing":
            if path not in mistyped:
                yield _missing_key(document, source, path)
        elif (field := (source.locate(path), _field_name(document, path))) not in seen:
            seen.add(field)
            yield _wrong_value(document, source, path, detail)


def holds(parent: Any, part: str | int) -> bool:
    """Whether `parent` is a mapping or list that has `part`."""
    if isinstance(parent, dict):
        return part in parent
    return isinstance(parent, list) and isinstance(part, int) and part < len(parent)


def _field_name(document: type[Document], path: FieldPath) -> str:
    """`path` as the file writes it, without pydantic's names for the branches of a union."""
    keys = {key for _, key in _steps(document, path)}
    named = ".".join(str(part) for part in path if part in keys or isinstance(part, int))
    return named or short(str(path[-1] if path else "the file"))


def _known_key(document: type[Document], path: FieldPath) -> str | None:
    """The key of the format that an unknown key was probably meant to be."""
    known = fields_of(document_at(document, path[:-1]) or document)
    return next(iter(closest(str(path[-1]), sorted(known))), None)


def _unknown_key(document: type[Document], source: YamlSource, path: FieldPath) -> Finding:
    key = str(path[-1])
    if len(path) == 1 and (elsewhere := _elsewhere(document, key)):
        fix = f"write it as {elsewhere}"
    elif meant := _known_key(document, path):
        fix = f"did you mean '{meant}'?"
    else:
        fix = f"known keys are {', '.join(sorted(fields_of(document_at(document, path[:-1]) or document)))}"
    return Finding("SPEC001", f"unknown key {shown(key)}", fix, source.locate(path, key=True))


def _missing_key(document: type[Document], source: YamlSource, path: FieldPath) -> Finding:
    about = _description(document, path)
    fix = f"add it: {about}" if about else "add it"
    return Finding("SPEC002", f"key '{path[-1]}' is missing", fix, source.locate(path[:-1]))


def _wrong_value(
    document: type[Document], source: YamlSource, path: FieldPath, detail: ErrorDetails
) -> Finding:
    message = problem(detail)
    got = None if _names_a_secret(path) else detail["input"]
    repeats = detail["type"] == "value_error" and (str(got) in message or shown(got) in message)
    if isinstance(got, str | int | float | bool) and not repeats:
        message += f", got {str(got).lower() if isinstance(got, bool) else shown(got)}"
    meant = nearest(detail)
    fix = f"did you mean '{meant}'?" if meant else _what_belongs(document, path)
    return Finding("SPEC003", f"{_field_name(document, path)}: {message}", fix, source.locate(path))


_SECRET_NAMES = frozenset({"apiKey", "auth", "certificate", "masterKey"})


def _what_belongs(document: type[Document], path: FieldPath) -> str:
    """What a field is for: its description, its keys, or the description of its parent."""
    if described := _description(document, path):
        return described
    if (inner := document_at(document, path)) and len([*_steps(document, path)]) == len(path):
        return f"its keys are {', '.join(sorted(fields_of(inner)))}"
    return _description(document, path[:-1]) or "correct the value"


def _written(data: Any, path: FieldPath) -> FieldPath:
    """`path` as far as the file has it: of a short form such as `replicas: 2` the parts have no place."""
    for end, key in enumerate(path[:-1]):
        data = data[key] if holds(data, key) else None
        if data is not None and not isinstance(data, dict | list):
            return path[: end + 1]
    return path


def _elsewhere(document: type[Document], key: str) -> str | None:
    """Where the format has `key`, one level down, such as `engine.env`; None if nowhere or in several
    places."""
    inner = ((name, _only_document(info.annotation)) for name, info in fields_of(document).items())
    found = [f"{name}.{key}" for name, each in inner if each is not None and key in fields_of(each)]
    return found[0] if len(found) == 1 else None


def _only_document(annotation: Any) -> type[Document] | None:
    """The document that a field holds, not a list or mapping of them."""
    return None if get_origin(annotation) in (tuple, dict) else _document_in(annotation)


def _names_a_secret(path: FieldPath) -> bool:
    """Whether the field takes a secret's name: users put the secret itself there."""
    return path[:1] == ("secrets",) or bool(_SECRET_NAMES.intersection(map(str, path)))


@cache
def fields_of(document: type[Document]) -> dict[str, Any]:
    """Fields by the key that files write."""
    return {info.alias or name: info for name, info in document.model_fields.items()}


def _steps(document: type[Document], path: FieldPath) -> Iterator[tuple[type[Document], str]]:
    """The documents along `path`, each with the key taken in it."""
    here: type[Document] | None = document
    for part in path:
        if here is None:
            return
        if isinstance(part, str) and part in fields_of(here):
            yield here, part
            here = _document_in(fields_of(here)[part].annotation)


def _document_in(annotation: Any) -> type[Document] | None:
    if isinstance(annotation, type) and issubclass(annotation, Document):
        return annotation
    if get_origin(annotation) in (Annotated, Union, UnionType, tuple, dict):
        found = (_document_in(argument) for argument in get_args(annotation))
        return next((document for document in found if document), None)
    return None


def document_at(document: type[Document], path: FieldPath) -> type[Document] | None:
    """The document that `path` leads to; None if it leads to a plain value."""
    steps = list(_steps(document, path))
    return _document_in(fields_of(steps[-1][0])[steps[-1][1]].annotation) if steps else document


def _description(document: type[Document], path: FieldPath) -> str:
    steps = list(_steps(document, path))
    if not steps:
        return ""
    owner, key = steps[-1]
    name = next(name for name, info in owner.model_fields.items() if key in (name, info.alias))
    text = " ".join(descriptions(owner).get(name, "").split())
    return uncapitalized(text.rstrip("."))
