"""Random text: keys of an unknown issuer.

Digests and IDs are random too. They are recognised by their form: hexadecimal of a digest's length, a UUID,
text after `sha256:`, a URL path, base64 that decodes to a known format.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from modelyard.secret_values.shapes import HIDDEN, Sighting, sightings

SHORTEST = 24
"""Minimum length of a checked word, in characters: 18 bytes in base64."""
_CANDIDATE = re.compile(rf"[A-Za-z0-9+/_-]{{{SHORTEST},}}={{0,2}}")
# Public random text, by its context.
_PUBLIC = re.compile(
    r"-----BEGIN (?P<kind>CERTIFICATE(?: REQUEST)?|(?:[A-Z]+ )?PUBLIC KEY(?: BLOCK)?|X509 CRL|PGP SIGNATURE|DH PARAMETERS)-----"
    r"[\s\S]*?(?:-----END (?P=kind)-----|\Z)"
    r"|(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-[\w-]{1,40}|sk-[\w-]{1,40}@openssh\.com) +AAAA[A-Za-z0-9+/]+={0,2}"
    r"|(?i:\b(?:sha(?:1|224|256|384|512)|md5|h1|blake[23]b?|crc32c?))[-:= ]+[A-Za-z0-9+/_-]+={0,2}"
    r"|\barn:[\w-]{1,20}:[^\s\"',}\]]+"
    r"|\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s\"'<>]+"
)
_USER_ALONE = re.compile(rf"://(?P<user>[A-Za-z0-9_-]{{{SHORTEST},}})@")
_DIGEST_LENGTHS = frozenset({32, 40, 56, 64, 96, 128})  # of MD5, SHA-1, SHA-224, SHA-256, SHA-384, SHA-512
_LONGEST_ID = (
    36  # hexadecimal digits: trace ids, fingerprints and suffixes of resources are shorter than keys
)
_ENOUGH = 1024  # characters that suffice to judge a word


@lru_cache(maxsize=1 << 14)
def random_values(text: str) -> tuple[Sighting, ...]:
    """Every part of `text` that looks random and is not public by its form."""
    if not _CANDIDATE.search(text):
        return ()
    bare = _PUBLIC.sub(lambda match: " " * len(match[0]), text)
    found = [*_random(bare), *_random_users(text)]
    return tuple(sorted(found))


def _random(text: str) -> Iterator[Sighting]:
    for match in _CANDIDATE.finditer(text):
        if _drawn(match[0]):
            yield _sighting(match.start(), match.end())


def _random_users(text: str) -> Iterator[Sighting]:
    for match in _USER_ALONE.finditer(text):
        if _drawn(match["user"]):
            yield _sighting(*match.span("user"))


def _sighting(start: int, end: int) -> Sighting:
    return Sighting(start, end, f"a random value of {end - start} characters, as keys and tokens are", HIDDEN)


def _drawn(word: str) -> bool:
    core = word.rstrip("=")
    letters = core.replace("-", "").replace("_", "")
    if re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", letters):
        return (
            "-" not in core
            and len(letters) > _LONGEST_ID
            and len(letters) not in _DIGEST_LENGTHS
            and len(set(letters)) > 8
        )
    if (known := _decodes_to_something(word)) is not None:
        return not known
    return _by_chance(core[:_ENOUGH])


def _by_chance(word: str) -> bool:
    """Whether lower case, upper case and digits alternate without order, and no character is frequent.

    In words, names and identifiers most neighbouring characters are of the same class; in random text three
    in five are not. A capital at the start of a word does not count as a change: class names look like
    Eagle3MiniMaxM2ForCausalLM.
    """
    kinds = "".join(
        "a" if char.islower() else "A" if char.isupper() else "0" if char.isdigit() else "-" for char in word
    )
    pairs = ["".join(pair) for pair in pairwise(kinds) if "-" not in pair]
    if len(pairs) < SHORTEST * 2 // 3:
        return False
    changes = sum(pair[0] != pair[1] for pair in pairs) / len(pairs)
    if {"a", "A", "0"} <= set(kinds):
        breaks = sum(pair[0] != pair[1] and pair != "Aa" for pair in pairs) / len(pairs)
        return changes > 0.42 and breaks > (0.325 if len(word) < 32 else 0.29) and _entropy(word) > 3.6
    if len(word) < 32 or "-" in kinds or "0" not in kinds:
        return False
    return changes > 0.25 and _entropy(word) > 3.8


def _entropy(text: str) -> float:
    """Shannon entropy in bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


# Magic bytes of files that are not keys: images, PDF, zip, zstd, fonts, WebAssembly, SSH public keys,
# SafeTensors' JSON.
_KNOWN_BYTES = (
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"RIFF", b"wOF", b"\x00asm",
    b"\x00\x00\x00\x07ssh-", b"\x00\x00\x00\x0bssh-", b"\x00\x00\x00\x13ecdsa-",
)  # fmt: skip


def _decodes_to_something(word: str) -> bool | None:
    """Whether base64 `word` decodes to something public: text, a certificate, a picture. None if unknown."""
    core = word.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(core + "=" * (-len(core) % 4), validate=True)
    except binascii.Error:
        return None
    if data.startswith(b"\x1f\x8b"):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, 1 << 20)
        except zlib.error:
            return None
    if data.startswith(_KNOWN_BYTES):
        return True
    if len(data) > 64 and data[0] == 0x30 and data[1] & 0x80:
        # DER: certificates and public keys start with a structure, private keys with the integer 0 or 1.
        inner = 2 + (data[1] & 0x7F)
        return data[inner : inner + 2] != b"\x02\x01"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if sum(char.isprintable() or char in "\r\n\t" for char in text) < len(text):
        return None
    return not sightings(text)
