"""Version, flags and removed flags of the llama-server in .venv-llama, from its --help, in the format of
`engines/llama_server/releases`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / ".venv-llama" / "bin" / "llama-server"

_NAME = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")
_NO = re.compile(r"^no-")
_REMOVED = re.compile(r"the argument has been removed(?:\. use --([\w-]+)(?!\*))?")
_WORDS_TOO = re.compile(r"'(?:auto|all)'")
# The placeholder of a value follows the last spelling: `N`, `FNAME`, `<0|1>`, `[on|off|auto]`,
# `{none,linear}`.
_CLOSED = re.compile(r"^[<\[{]([\w+-]+(?:[|,][\w+-]+)+)[>\]}]$")
_BULLET = re.compile(r"^- ([\w+-]+): ")
_NUMBER = re.compile(r"^(?:N|P|INDEX|SIMILARITY|M|K|N0|PORT|SEED|SECONDS?|MiB)$")
_FLOAT = re.compile(r"\(default: -?\d+\.\d+")

# Spellings of earlier builds that this build rejects, and their replacements. Flags that it lists as removed,
# with a replacement, are read from its help.
REMOVED = {
    "mlock": "load-mode",
    "no-mmap": "load-mode",
    "mmap": "load-mode",
    "direct-io": "load-mode",
    "no-direct-io": "load-mode",
}


def help_text() -> str:
    return subprocess.run([SERVER, "--help"], check=True, capture_output=True, text=True).stdout


def entries(text: str) -> list[tuple[str, list[str]]]:
    """The spellings of each argument with its placeholder, and the lines of its description."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("-----"):
            continue
        if line.startswith("-"):
            # Two spaces may also separate a short spelling from the next: `-c,    --ctx-size N   size of …`.
            spelled = re.sub(r",\s+", ", ", line)
            left, _, right = spelled.partition("  ")
            found.append((left.strip(), [right.strip()] if right.strip() else []))
        elif line.strip() and found:
            found[-1][1].append(line.strip())
    return found


def flag(left: str, lines: list[str]) -> tuple[str, dict[str, Any]] | None:
    """Name and row of one argument; None without a long spelling."""
    names = [name.removeprefix("--") for name in _NAME.findall(left) if name.startswith("--")]
    if not names:
        return None
    tail = left.split("--")[-1].partition(" ")[2].strip()
    explained = " ".join(lines)
    positive = [name for name in names if not _NO.match(name)]
    name = max(positive or names, key=len)
    row: dict[str, Any] = {}
    choices = _choices(tail) or _choices_listed(lines) if tail else []
    if not tail:
        row["type"] = "boolean"
        negative = [other for other in names if _NO.match(other)]
        if not negative and positive:
            row["onlyOn"] = True
    elif choices and all(choice.isdecimal() for choice in choices):
        row["type"] = "integer"
        row["choices"] = [int(choice) for choice in choices]
    elif choices:
        row["type"] = "string"
        row["choices"] = choices
    elif _WORDS_TOO.search(explained):
        row["type"] = "string"
    elif _NUMBER.match(tail):
        row["type"] = (
            "number" if _FLOAT.search(explained) or "probability" in explained.lower() else "integer"
        )
    else:
        row["type"] = "string"
    aliases = [other for other in names if other != name and not (_NO.match(other) and positive)]
    if aliases:
        row["aliases"] = aliases
    return name, row


def _choices(tail: str) -> list[str]:
    match = _CLOSED.match(tail)
    return re.split(r"[|,]", match[1]) if match else []


def _choices_listed(lines: list[str]) -> list[str]:
    """Choices from `- mmap: …` bullets, or from `allowed values: f32, f16`."""
    bullets = [match[1] for line in lines if (match := _BULLET.match(line))]
    if len(bullets) > 1:
        return bullets
    if match := re.search(r"allowed values: ([\w, ]+?)(?= \(|$)", " ".join(lines)):
        return [value.strip() for value in match[1].split(",") if value.strip()]
    return []


def build() -> str:
    said = subprocess.run([SERVER, "--version"], check=True, capture_output=True, text=True)
    match = re.search(r"build (\d+)", said.stdout + said.stderr)
    assert match is not None, said
    return match[1]


def refused(name: str) -> bool:
    command = [SERVER, f"--{name}", "1", "--port", "1"]
    try:
        run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=5)
    except subprocess.TimeoutExpired:  # the flag was accepted, and the server runs
        return False
    return run.returncode != 0 and "invalid argument" in run.stdout + run.stderr


def table() -> dict[str, Any]:
    listed = entries(help_text())
    gone = {left: match[1] or "" for left, lines in listed if (match := _REMOVED.search(" ".join(lines)))}
    told = {
        name.removeprefix("--"): replacement
        for left, replacement in gone.items()
        for name in _NAME.findall(left)
        if name.startswith("--")
    }
    kept = [entry for entry in listed if entry[0] not in gone]
    flags = dict(sorted(found for entry in kept if (found := flag(*entry))))
    spellings = {*flags, *(alias for row in flags.values() for alias in row.get("aliases", ()))}
    if there := sorted(name for name in REMOVED if not refused(name)):
        raise SystemExit(f"not removed: {', '.join(there)}")
    if missing := sorted({*REMOVED.values(), *told.values()} - spellings - {""}):
        raise SystemExit(f"no such replacements: {', '.join(missing)}")
    return {"version": f"b{build()}", "removed": {**REMOVED, **dict(sorted(told.items()))}, "flags": flags}


if __name__ == "__main__":
    if not SERVER.is_file():
        sys.exit("no llama-server: python3 .ci/install_llama.py")
    print(json.dumps(table(), indent=1))
