"""Fuzzes one reader: `python -m tests.fuzz.one NAME SECONDS CORPUS CRASHES`, one process per reader.

Anything but the documented exceptions ends the run and saves the input in CRASHES: any other exception,
including SystemExit, and more than a second of CPU time.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["modelyard", "ruamel"]):
    from tests.fuzz.readers import READERS

MOST_SECONDS = 1.0
LONGEST_INPUT = 16 << 10
MOST_MIB = 1024  # coverage and the corpus included; the benchmark measures the product alone
_WORDS = (
    *(
        "\\x00",
        "\\xef\\xbb\\xbf",
        "&a ",
        "*a",
        "<<: *a",
        "!!int ",
        "!!binary ",
        "%YAML 1.1\\x0a",
        "---\\x0a",
        "? ",
        "- ",
    ),
    *(
        "[[[[",
        "{{{{",
        "]]]]",
        ": ",
        "\\x0a  ",
        "1e999",
        "-1",
        "NaN",
        "Infinity",
        "\\\\ud800",
        "0x",
        "1_",
        ".nan",
        "null",
    ),
    *(
        "99999999999999999999999999",
        "true",
        '\\"\\"',
        "{}",
        "[]",
        "re:(",
        "auto",
        "hf://a/b",
        "config: /dev/zero",
    ),
)


class TooSlow(Exception):
    """An input that takes longer than a hostile file may."""


def main() -> None:
    name, seconds, corpus, crashes = sys.argv[1:]
    reader = READERS[name]
    folder = Path(corpus)
    for number, seed in enumerate(reader.seeds()):
        (folder / f"seed-{number}").write_bytes(seed)
    words = folder.parent / "words"
    words.write_text("".join(f'"{word}"\n' for word in _WORDS), encoding="utf-8")

    def seconds_of(content: bytes) -> float:
        began = time.process_time()
        with contextlib.suppress(*reader.refuses):
            reader.read(content)
        return time.process_time() - began

    def once(content: bytes) -> None:
        # Twice, since the first input that needs a table has it read.
        if seconds_of(content) > MOST_SECONDS and (took := seconds_of(content)) > MOST_SECONDS:
            raise TooSlow(f"{took:.1f} s for {len(content)} bytes")

    options = {
        "max_total_time": seconds,
        "max_len": str(LONGEST_INPUT),
        "timeout": "30",
        "rss_limit_mb": str(MOST_MIB),
        "artifact_prefix": crashes,
        "dict": str(words),
        "print_final_stats": "1",
    }
    atheris.Setup([sys.argv[0], *(f"-{key}={value}" for key, value in options.items()), corpus], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
