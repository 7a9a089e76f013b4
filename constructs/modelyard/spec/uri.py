"""URIs of weights: restricted to what the Hub, S3 and a file system accept, without path traversal."""

from __future__ import annotations

import re

_LONGEST_NAME = 96
_REPOSITORY = re.compile(
    r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?"
)


def check_uri(uri: str) -> str:
    """`uri`, if it is valid for its scheme.

    Raises:
        ValueError: a segment is `.` or `..`, or it is not a valid Hub repository name (the rules of
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
    """`path`, if none of its segments is `.` or `..`.

    Raises:
        ValueError: a segment is `.` or `..`: a name in an object store, but path traversal in a file system.
    """
    if any(segment in (".", "..") for segment in path.split("/")):
        raise ValueError("must not have '.' or '..' between its slashes: write the path itself")
    return path
