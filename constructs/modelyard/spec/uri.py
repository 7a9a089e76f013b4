"""Addresses of weights: what the Hub, a bucket and a file system take, and nothing that leads somewhere
else."""

from __future__ import annotations

import re

_LONGEST_NAME = 96
_REPOSITORY = re.compile(
    r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?"
)


def check_uri(uri: str) -> str:
    """`uri`, where its scheme's own rules admit it.

    Raises:
        ValueError: a segment is `.` or `..`, or the Hub has no repositories of such a name (the rules of
            huggingface_hub's validate_repo_id).
    """
    scheme, _, rest = uri.partition("://")
    check_path(rest)
    if scheme != "hf":
        return uri
    if not _REPOSITORY.fullmatch(rest) or max(map(len, rest.split("/"))) > _LONGEST_NAME:
        raise ValueError(
            "must be hf://ORG/REPO: letters, digits, '-', '_' and '.', neither '-' nor '.' at an end of a name, which has "
            f"{_LONGEST_NAME} characters at most"
        )
    if "--" in rest or ".." in rest or rest.endswith(".git"):
        raise ValueError("must be hf://ORG/REPO without '--', '..' and '.git': the Hub has no such names")
    return uri


def check_path(path: str) -> str:
    """`path`, where each of its segments names something.

    Raises:
        ValueError: one is `.` or `..`, which object stores take for a name and file systems for a way out.
    """
    if any(segment in (".", "..") for segment in path.split("/")):
        raise ValueError("must not have '.' or '..' between its slashes: write the path itself")
    return path
