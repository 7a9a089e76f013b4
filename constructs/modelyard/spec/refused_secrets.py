"""SEC001: finds secret values in a file, and removes them from it.

Later steps only see the file without secrets, so no message, table or object can repeat one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from modelyard.findings import Finding, Location
from modelyard.reading import SPEC, read_file
from modelyard.secret_values import HIDDEN, Suspect, mask_key, settings, sightings, suspects, without
from modelyard.spec.yaml_reader import FieldPath
from modelyard.spec.yaml_source import YamlSource

# Fields with the logical name of a secret, or its name in AWS Secrets Manager.
_NAMES: tuple[tuple[str, ...], ...] = (
    ("model", "auth"),
    ("access", "apiKey"),
    ("overrides", "*", "access", "apiKey"),
    ("secrets", "*"),
    ("gateways", "*", "certificate"),
    ("litellm", "masterKey"),
    ("cluster", "existing", "has", "external-secrets"),  # a version
)
_CONFIGS: tuple[FieldPath, ...] = (("model", "config"), ("speculativeDecoding", "model", "config"))
_STORE = (
    "revoke it, put the new one into AWS Secrets Manager with `modelyard secrets set NAME`, and name it under the "
    "environment's secrets"
)
_FIX = f"{_STORE}; files refer to it by that NAME, such as model.auth: hf-token"
# For secrets that users put into server settings; a server only gets the secrets of two keys.
_FIX_SERVER = (
    f"{_STORE}; a server is given the ones that model.auth and access.apiKey name, and no others: "
    "take this one out here"
)
_FIX_PATCH = (
    f"{_STORE}; the Secret of that NAME is in the models' namespace: in the patch write "
    "valueFrom: {secretKeyRef: {name: NAME, key: value}} instead of the value"
)
_FIX_RANDOM = (
    f"if it is a secret: {_STORE}; if it is public, write where it comes from in front of it, as in sha256:…"
)


MOST_SECRETS = 100
"""Maximum secrets per file; a file with more is not read further, so nothing is removed from it."""


@dataclass(frozen=True)
class RefusedSecrets:
    """A file's secrets: the findings, the file without them, and the secret texts, to keep them out of
    messages."""

    source: YamlSource
    findings: tuple[Finding, ...]
    pieces: tuple[str, ...]


def refuse_secrets(source: YamlSource) -> RefusedSecrets:
    """Find every secret in `source`, comments included."""
    found = suspects(source.data, is_name=_is_name, is_foreign=_is_foreign)
    written = [*_written(source)]
    if not found and not written:
        return RefusedSecrets(source, (), ())
    findings = {location: finding for location, finding, _ in written}
    said = sorted((location, "".join(piece.split())) for location, _, piece in written)
    places = sorted({*source.keys.values(), *source.values.values()})
    said_at: dict[FieldPath, frozenset[str]] = {}  # the text of one value can hold thousands
    for suspect in found:
        if suspect.path not in said_at:
            starts = [source.locate(suspect.path, key=key) for key in (True, False)]
            said_at[suspect.path] = frozenset(
                piece for start in starts for piece in _said_at(start, places, said)
            )
        flat, within = "".join(suspect.piece.split()), said_at[suspect.path]
        if flat in within or any(flat in piece or (piece in flat and not suspect.named) for piece in within):
            continue
        location = _place(source, suspect)
        findings.setdefault(location, Finding("SEC001", _message(suspect), _fix(suspect), location))
    if len(findings) > MOST_SECRETS:
        return RefusedSecrets(source, tuple(findings.values()), ())
    pieces = tuple(dict.fromkeys([*(s.piece for s in found), *(piece for _, _, piece in written)]))
    return RefusedSecrets(_bare(source, found), tuple(findings.values()), pieces)


def bare_config(
    config: dict[str, Any], stated: str, location: Location
) -> tuple[dict[str, Any], list[Finding]]:
    """A config.json without its secrets, and findings located at the field that names the file."""
    found = suspects(config, is_foreign=lambda path: True)
    kinds = dict.fromkeys(suspect.why for suspect in found)
    return without(config, found) if found else config, [
        Finding("SEC001", f"{stated} holds a value that looks like a secret: {kind}", _FIX, location)
        for kind in kinds
    ]


def conceal(findings: Iterable[Finding], pieces: Iterable[str]) -> list[Finding]:
    """The same findings with the secrets `pieces` masked."""
    whole = sorted({piece for piece in pieces if piece.strip()}, key=len, reverse=True)
    return [
        replace(each, message=_concealed(each.message, whole), fix=_concealed(each.fix, whole))
        for each in findings
    ]


def unreadable(finding: Finding, path: Path) -> list[Finding]:
    """`finding` about invalid YAML, with the file's secrets masked: parsers quote their input."""
    text = read_file(path, SPEC)
    if isinstance(text, Finding):
        return [finding]
    found = [text[s.start : s.end] for s in (*settings(text), *sightings(text))]
    # Parsers quote aliases, anchors and tags without their sigil.
    return conceal([finding], [*found, *(piece.lstrip("*&!") for piece in found)])


def _concealed(text: str, pieces: Iterable[str]) -> str:
    for piece in pieces:
        # A short secret may be part of any word.
        anywhere = len(piece) > 5
        text = re.sub(re.escape(piece) if anywhere else rf"\b{re.escape(piece)}\b", HIDDEN, text)
    return text


def _is_name(path: tuple[str | int, ...]) -> bool:
    return any(
        len(path) == len(name) and all(part in ("*", step) for part, step in zip(name, path, strict=True))
        for name in _NAMES
    )


def _is_foreign(path: tuple[str | int, ...]) -> bool:
    return any(path[: len(config)] == config and len(path) > len(config) for config in _CONFIGS)


def _written(source: YamlSource) -> Iterator[tuple[Location, Finding, str]]:
    """Secrets in the raw text: known shapes anywhere, settings in comments."""
    text = source.text
    shaped = sightings(text)
    starts = [sighting.start for sighting in shaped]
    found = [*shaped]
    for comment in re.finditer(r"(?:^|(?<=\s))#(?P<said>.*)", text, re.MULTILINE):
        offset = comment.start("said")
        for sighting in settings(comment["said"]):
            moved = replace(sighting, start=sighting.start + offset, end=sighting.end + offset)
            beside = bisect_left(starts, moved.end) - 1  # the last shape that begins before the setting ends
            if beside < 0 or shaped[beside].end <= moved.start:
                found.append(moved)
    for sighting in sorted(found):
        location = _at(source, sighting.start)
        message = f"a value that looks like a secret: {sighting.what}"
        if sighting.shown != HIDDEN:
            message += f", {sighting.shown}"
        yield location, Finding("SEC001", message, _FIX, location), text[sighting.start : sighting.end]


def _message(suspect: Suspect) -> str:
    field = ".".join(mask_key(str(part)) for part in suspect.path)
    return f"{field}: {suspect.why}, written out" if suspect.named else f"{field}: {suspect.why}"


def _fix(suspect: Suspect) -> str:
    if suspect.path[:2] in (("engine", "env"), ("engine", "args")):
        return _FIX_SERVER
    if suspect.path[:1] == ("patches",):
        return _FIX_PATCH
    return _FIX_RANDOM if suspect.why.startswith("a random") else _FIX


def _said_at(first: Location, places: list[Location], said: list[tuple[Location, str]]) -> Iterator[str]:
    """The pieces of `said` within the key or value that starts at `first`, that is, before the next of
    `places`."""
    position = bisect_right(places, first)
    begin = bisect_left(said, (first, ""))
    end = bisect_left(said, (places[position], "")) if position < len(places) else len(said)
    yield from (piece for _, piece in said[begin:end])


def _place(source: YamlSource, suspect: Suspect) -> Location:
    """The location of the secret itself if it is in one piece in the file; else of its value."""
    value = source.locate(suspect.path)
    starts = _line_starts(source.text)
    if suspect.named or value.line > len(starts):  # YAML has more line breaks than text editors
        return value
    offset = source.text.find(suspect.piece, starts[value.line - 1] + value.column - 1)
    return _at(source, offset) if offset >= 0 else value


def _at(source: YamlSource, offset: int) -> Location:
    starts = _line_starts(source.text)
    line = bisect_right(starts, offset)
    return Location(source.file, line, offset - starts[line - 1] + 1)


@lru_cache(maxsize=4)
def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _bare(source: YamlSource, found: list[Suspect]) -> YamlSource:
    def masked(path: FieldPath) -> FieldPath:
        return tuple(mask_key(part) if isinstance(part, str) else part for part in path)

    return replace(
        source,
        data=without(source.data, found),
        keys={masked(path): place for path, place in source.keys.items()},
        values={masked(path): place for path, place in source.values.items()},
    )
