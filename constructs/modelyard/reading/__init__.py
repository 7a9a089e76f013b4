"""Reading of untrusted files and responses: regular files of limited size, JSON of limited shape."""

from modelyard.reading.file import (
    CHECKPOINT,
    CONFIG,
    DEFINITIONS,
    PAGE,
    PRICES,
    RECORD,
    SPEC,
    FileKind,
    read_file,
)
from modelyard.reading.json_text import NotJson, parse_json
from modelyard.reading.words import closest, short, suggestion

__all__ = [
    "CHECKPOINT",
    "CONFIG",
    "DEFINITIONS",
    "PAGE",
    "PRICES",
    "RECORD",
    "SPEC",
    "FileKind",
    "NotJson",
    "closest",
    "parse_json",
    "read_file",
    "short",
    "suggestion",
]
