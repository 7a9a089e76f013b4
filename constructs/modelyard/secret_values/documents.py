"""Secrets in a file's data: by shape everywhere, by the name of their key, and by randomness."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modelyard.secret_values.names import is_harmless, names_a_secret
from modelyard.secret_values.randomness import random_values
from modelyard.secret_values.settings import settings
from modelyard.secret_values.shapes import HIDDEN, Sighting, mask, sightings

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Suspect:
    """A value, or part of one, that looks like a secret. `why`: the reason, without the value; `path`: its
    location."""

    path: Path
    piece: str
    why: str
    named: bool = False
    """Whether only the key's name marks it as a secret."""


def suspects(
    data: Any,
    *,
    is_name: Callable[[Path], bool] = lambda path: False,
    is_foreign: Callable[[Path], bool] = lambda path: False,
) -> list[Suspect]:
    """Everything in `data` (YAML or JSON) that looks like a secret.

    At paths where `is_name` holds, the field takes a secret's name, not its value. Below `is_foreign`, only
    shapes and randomness are checked, because the keys are not Modelyard's.
    """
    return [*_below(data, (), "", is_name, is_foreign, set())]


_MERGE = "merge of a Secret"  # a patch has the kind and the merged content under separate keys


def _below(
    node: Any,
    path: Path,
    name: str,
    is_name: Callable[[Path], bool],
    is_foreign: Callable[[Path], bool],
    seen: set[int],
) -> Iterator[Suspect]:
    if isinstance(node, dict | list):
        if id(node) in seen:  # an alias: reported once
            return
        seen.add(id(node))
    if isinstance(node, dict):
        whole = node.get("kind") == "Secret" or name == _MERGE
        entry = node.get("name") if isinstance(node.get("name"), str) and "value" in node else None
        for key, value in node.items():
            label = str(key)
            for sighting in _of_key(label):
                yield Suspect((*path, label), label[sighting.start : sighting.end], sighting.what)
            below = (*path, label)
            if whole and label in ("data", "stringData"):
                yield from _every_value(value, below)
                continue
            inner = entry if entry and label == "value" else _MERGE if whole and label == "merge" else label
            yield from _below(value, below, inner, is_name, is_foreign, seen)
    elif isinstance(node, list):
        for position, value in enumerate(node):
            yield from _below(value, (*path, position), name, is_name, is_foreign, seen)
    else:
        yield from _of_value(node, path, name, is_name(path), is_foreign(path))


def _of_key(key: str) -> tuple[Sighting, ...]:
    return sightings(key) or random_values(key)


def _every_value(node: Any, path: Path) -> Iterator[Suspect]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _every_value(value, (*path, str(key)))
    elif node not in (None, ""):
        yield Suspect(path, str(node), "the value of a Secret", named=True)


def _of_value(value: Any, path: Path, name: str, is_name: bool, is_foreign: bool) -> Iterator[Suspect]:
    if isinstance(value, str):
        found = [*sightings(value)] or [*(random_values(value) if is_foreign else ())]
        if found or is_foreign:
            yield from (Suspect(path, value[s.start : s.end], s.what) for s in found)
            return
    elif is_foreign:
        return
    sure = "" if is_name and _is_label(value) else names_a_secret(name)
    if sure and not is_harmless(name, value):
        yield Suspect(path, str(value), f"the value of {mask(name)}", named=True)
        return
    if isinstance(value, str) and not _is_digest(name):
        for sighting in (*settings(value), *random_values(value)):
            yield Suspect(path, value[sighting.start : sighting.end], sighting.what)


_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?")
_DIGEST = re.compile(r"(?i)(?:digest|checksum|etag|fingerprint|integrity|thumbprint|md5|sha\d*|hash)$")


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and bool(_LABEL.fullmatch(value)) and not random_values(value)


def _is_digest(name: str) -> bool:
    return bool(_DIGEST.search(name))


def mask_key(key: str) -> str:
    """`key`, safe for messages."""
    for sighting in reversed(_of_key(key)):
        key = key[: sighting.start] + sighting.shown + key[sighting.end :]
    return key


_TELLING = 6  # secrets of at least this length are masked everywhere, shorter ones only at their path


def without(data: Any, found: list[Suspect]) -> Any:
    """A copy of `data` without the secrets `found`."""
    pieces: dict[Path, list[str]] = {}
    for suspect in found:
        pieces.setdefault(suspect.path, []).append(suspect.piece)
    everywhere = sorted({s.piece for s in found if len(s.piece) >= _TELLING}, key=len, reverse=True)
    return _without(data, (), pieces, everywhere)


def _without(node: Any, path: Path, pieces: Mapping[Path, list[str]], everywhere: list[str]) -> Any:
    if isinstance(node, dict):
        return {
            (_hidden(mask_key(key), everywhere) if isinstance(key, str) else key): _without(
                value, (*path, str(key)), pieces, everywhere
            )
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [_without(value, (*path, at), pieces, everywhere) for at, value in enumerate(node)]
    own = pieces.get(path, [])
    if isinstance(node, str):
        return _hidden(mask(node), [*own, *everywhere])
    return HIDDEN if own or str(node) in everywhere else node


def _hidden(text: str, pieces: list[str]) -> str:
    for piece in pieces:
        text = text.replace(piece, HIDDEN)
    return text
