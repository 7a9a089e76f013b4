"""Names that mark a value as a secret, and values that are harmless under any name."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from modelyard.secret_values.randomness import random_values

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class Vocabulary:
    """The words of `data/names.json`."""

    passwords: frozenset[str]
    certain: frozenset[str]
    """Passwords and other names whose value is certainly a secret."""
    one_word: tuple[str, ...]
    """Names in one word, with or without a prefix: PGPASSWORD, authtoken."""
    opens: frozenset[str]
    """Words before `key` that make it a secret; a cache also has keys."""
    likely: frozenset[str]
    """Names with any kind of value, which is a secret if it looks like a key."""
    describes: frozenset[str]
    """Last words that describe a secret instead: where a token is, its lifetime, its issuer."""
    tails: frozenset[str]
    """Last words that do not change the meaning."""
    of_text: frozenset[str]
    """Kinds of text token, as in tokenizers and templates."""
    switches: frozenset[str]
    """First words of a boolean setting."""


@cache
def _vocabulary() -> Vocabulary:
    table = json.loads(files(__package__).joinpath("data/names.json").read_text(encoding="utf-8"))
    return Vocabulary(
        passwords=frozenset(table["passwords"]),
        certain=frozenset(table["certain"]) | frozenset(table["passwords"]),
        one_word=tuple(table["oneWord"]),
        opens=frozenset(table["opens"]),
        likely=frozenset(table["likely"]),
        describes=frozenset(table["describes"]),
        tails=frozenset(table["tails"]),
        of_text=frozenset(table["ofText"]),
        switches=frozenset(table["switches"]),
    )


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


@lru_cache(maxsize=1 << 12)
def names_a_secret(name: str) -> str:
    """`certain` or `likely` if `name` marks a secret, else empty."""
    known, words = _vocabulary(), _words(name)
    while len(words) > 1 and words[-1] in known.tails:
        words.pop()
    if not words or words[-1] in known.describes:
        return ""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "token" and before in known.of_text:
        return ""
    if last in ("tokens", "base"):  # max-tokens counts, API_TOKENS lists; SECRET_KEY_BASE is a key
        return "certain" if before in ("access", "api", "auth", "bearer", "key", "refresh") else ""
    if words[0] in known.switches:
        return "likely"
    if last == "key" and (before in known.opens or before in known.certain):
        return "certain"
    if last in known.certain or last.endswith(known.one_word) or _has_password(words):
        return "certain"
    return "likely" if last in known.likely or words[-2:] == ["connection", "string"] else ""


def is_password(name: str) -> bool:
    """Whether `name` means a password, which may be a number."""
    words = _words(name)
    return _has_password(words) or bool(words and words[-1].endswith("password"))


def _has_password(words: list[str]) -> bool:
    return any(word in _vocabulary().passwords and word not in ("pass", "pin") for word in words)


_NOTHING = re.compile(
    r"(?i)(?:true|false|yes|no|on|off|none|null|nil|auto|default|required|optional|enabled?|disabled?|never|always|"
    r"n/?a|anonymous|read|write|empty|unset|redacted|masked|hidden|placeholder|secret|password|token|[x*.…-]+|\d{1,5})"
)
# ${X}, $(X), {{ x }}, <x>, your-token: placeholders.
_PLACEHOLDER = re.compile(
    r"\$\w+|\$\{[^}]*\}|\$\([\w.-]*\)|\{\{.*\}\}|<[^>]*>|%\w+%|(?i:your|insert|enter|replace)[-_ ].*|.*(?i:[-_]here)|\w*[xX]{3,}"
)
# References to a value, in the notations of secret stores and loaders.
_REFERENCE = re.compile(
    r"(?:arn:|os\.environ/|env:|vault:|op://|ssm:|sm://|awssm|gcpsm|azurekv|keyvault|kms://|ref\+|secretsmanager:|secret://|"
    r"file:|efs://|s3://|hf://)\S+|https?://\S+"
)
_PATH = re.compile(r"(?:\.{0,2}|~)/[\w.@+-]+(?:/[\w.@+-]+)*/?")
_PUBLIC = re.compile(
    r"\s*(?:ssh-(?:rsa|ed25519|dss) |ecdsa-sha2-\S+ |-----BEGIN (?:CERTIFICATE|(?:\w+ )?PUBLIC KEY))"
)
_CODE = re.compile(r".*[|&;(){}].*", re.DOTALL)


def is_harmless(name: str, value: object) -> bool:
    """Whether `value` is no secret although `name` says so: a switch, a number, a reference, or plain
    text."""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return not is_password(name) and abs(value) < 10**9
    if not isinstance(value, str):
        return True
    text = value.strip()
    if is_password(name) and text.isdigit():
        return False
    if not text or _NOTHING.fullmatch(text) or _PLACEHOLDER.fullmatch(text):
        return True
    if _REFERENCE.fullmatch(text) or _PUBLIC.match(text):
        return True
    if random_values(text):
        return False
    return bool(_PATH.fullmatch(text)) or (names_a_secret(name) == "likely" and not _keyish(text))


def _keyish(text: str) -> bool:
    """Whether a value under an ambiguous name looks like a key: long, one word, letters and digits."""
    return bool(re.fullmatch(r"(?=.*[A-Za-z])(?=.*\d.*\d)[A-Za-z0-9+/=_.~-]{16,}", text)) and "-" not in text
