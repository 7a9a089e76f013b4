"""Queries of the memory model as JSON: one object, or JSON Lines of any length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from modelyard.findings import Finding
from modelyard.reading import NotJson, closest, parse_json
from modelyard.secret_values import mask, shown
from modelyard.spec.estimate import EstimateRequest
from modelyard.spec.messages import nearest, problem

LONGEST_LINE = 4 << 20
"""Maximum bytes of one line: the largest published config.json, with a list of quantized layers, has 2
MiB."""


@dataclass(frozen=True)
class Question:
    """One request, or the findings that say why there is none. `id` is repeated in the answer; None if the
    question has no readable ID."""

    request: EstimateRequest | None
    findings: tuple[Finding, ...] = ()
    id: str | int | None = None


def read_question(record: object) -> Question:
    """Validate `record`, a JSON value whose keys are spelled as in JSON."""
    if not isinstance(record, dict):
        what = type(record).__name__ if record is not None else "null"
        return Question(
            None, (Finding("YAML001", f"not an object but {what}", "write {…} with the question's keys"),)
        )
    asked = record.get("id")
    name = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
    if isinstance(name, str):  # the answer repeats it
        name = mask(name)
    try:
        request = EstimateRequest.model_validate(_whole(record), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        found: dict[tuple[str, ...], Finding] = {}  # one a key: a value can fail as text and as a number
        for detail in error.errors(include_url=False):
            found.setdefault(tuple(map(str, detail["loc"][:1])), _explain(record, detail))
        return Question(None, tuple(found.values()), name)
    return Question(request, (), name)


def read_questions(lines: BinaryIO) -> Iterator[Question]:
    """One question per line of JSON Lines, as a stream; findings name the line. Empty lines are skipped."""
    number = 0
    while line := lines.readline(LONGEST_LINE + 1):
        number += 1
        whole = len(line) <= LONGEST_LINE
        while not line.endswith(b"\n") and len(line) > LONGEST_LINE:
            line = lines.readline(LONGEST_LINE + 1)
        if not whole:
            long = Finding(
                "YAML001", f"line {number}: more than {LONGEST_LINE} bytes", "write one question a line"
            )
            yield Question(None, (long,))
        elif line.strip(b"\xef\xbb\xbf \t\r\n"):
            yield _question(line, number)


def _question(line: bytes, number: int) -> Question:
    try:
        found = read_question(parse_json(line, repeated_keys=True, halves=True))
    except NotJson as problem:
        return Question(
            None, (Finding("YAML001", f"line {number}: not JSON: {problem}", "correct the line"),)
        )
    if not found.findings:
        return found
    placed = (Finding(f.code, f"line {number}: {f.message}", f.fix, field=f.field) for f in found.findings)
    return Question(None, tuple(placed), found.id)


def _whole(record: dict[str, Any]) -> dict[str, Any]:
    """JSON has one number type, so 2.0 means 2."""
    return {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in record.items()}


def _explain(record: dict[str, Any], detail: ErrorDetails) -> Finding:
    key = str(detail["loc"][0]) if detail["loc"] else ""
    known = [info.alias or name for name, info in EstimateRequest.model_fields.items()]
    if detail["type"] == "extra_forbidden":
        close = closest(key, known)
        fix = f"did you mean '{close[0]}'?" if close else f"known keys are {', '.join(known)}"
        return Finding("SPEC001", f"unknown key {shown(key)}", fix, field=(mask(key),))
    message = problem(detail)
    if not key:
        pairs = (("config", "model"), ("accelerator", "acceleratorMemoryGiB"))
        absent = any(all(record.get(name) is None for name in pair) for pair in pairs)
        return Finding("SPEC002" if absent else "SPEC003", message, "state exactly one of the two")
    got = detail["input"]
    repeats = detail["type"] == "value_error" and shown(got) in message
    said = f", got {shown(got)}" if isinstance(got, str | int | float) and not repeats else ""
    meant = nearest(detail)
    fix = f"did you mean '{meant}'?" if meant else "correct the value, or leave the key out"
    return Finding("SPEC003", f"{key}: {message}{said}", fix, field=(mask(key),))
