"""How files and answers that others wrote are taken in: regular files of a bounded size, JSON of a bounded
shape."""

from modelyard.reading.file import CONFIG, DEFINITIONS, PAGE, PRICES, RECORD, SPEC, FileKind, read_file
from modelyard.reading.json_text import NotJson, parse_json
from modelyard.reading.words import closest, short

__all__ = [
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
]
