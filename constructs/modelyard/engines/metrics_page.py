"""A table of metrics from a real /metrics page: `python -m modelyard.engines.metrics_page PAGE ENGINE VERSION
SINCE DATE`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from modelyard.findings import Finding
from modelyard.reading import PAGE, read_file

_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+\S+$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
# Labels whose few values the engine defines; other labels take values from models or clients.
_CHOSEN = frozenset({"finished_reason", "reason", "sleep_state", "source"})
_PARTS = ("_bucket", "_count", "_sum")


def read_page(text: str) -> dict[str, dict[str, Any]]:
    """Family to type, labels, values of engine-defined labels, and histogram bounds.

    Creation times (`*_created`) are left out: no query uses them.
    """
    families: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, _, kind = line.removeprefix("# TYPE ").strip().partition(" ")
            if not name.endswith("_created"):
                families[name] = {"type": kind, "labels": set(), "values": {}, "bounds": []}
        elif line and not line.startswith("#") and (sample := _SAMPLE.match(line)):
            family = _family(sample["name"], families)
            if family is not None:
                _add(family, _LABEL.findall(sample["labels"] or ""))
    return {name: _row(family) for name, family in sorted(families.items())}


def _family(sample: str, families: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    for part in _PARTS:  # first: a histogram may be called X_total, and X_total_sum is a sample of it
        whole = sample.removesuffix(part)
        if whole != sample and families.get(whole, {}).get("type") in ("histogram", "summary"):
            return families[whole]
    return families.get(sample)


def _add(family: dict[str, Any], labels: list[tuple[str, str]]) -> None:
    for label, value in labels:
        if label == "le":
            if value not in family["bounds"]:
                family["bounds"].append(value)
            continue
        family["labels"].add(label)
        if label in _CHOSEN:
            family["values"].setdefault(label, set()).add(value)


def _row(family: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"type": family["type"], "labels": sorted(family["labels"])}
    if family["values"]:
        row["values"] = {label: sorted(values) for label, values in sorted(family["values"].items())}
    if family["bounds"]:
        row["bounds"] = family["bounds"]
    return row


def table(text: str, *, engine: str, version: str, since: str, recorded: str) -> str:
    """The content of an engine's `metrics.json` for a page that is valid from release `since` on."""
    document = {
        "exporter": engine,
        "version": version,
        "since": since,
        "recorded": recorded,
        "source": f"the /metrics page of {engine} {version}, after completions, chat and streaming",
        "metrics": read_page(text),
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def main(arguments: list[str]) -> int:
    page, engine, version, since, recorded = arguments
    text = read_file(Path(page), PAGE)
    if isinstance(text, Finding):
        print(text, file=sys.stderr)
        return 1
    print(table(text, engine=engine, version=version, since=since, recorded=recorded), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
