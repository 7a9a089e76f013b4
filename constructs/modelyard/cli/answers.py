"""Output of the memory model: one line of JSON in the format of `modelyard estimate`, or a chart of the
ledger."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from modelyard.cli.ledger_bar import has_colours, ledger_bar, ledger_parts, terminal_bar_width
from modelyard.findings import Finding
from modelyard.hardware import Memory
from modelyard.memory.estimate import Estimate, estimate
from modelyard.memory.ledger import MemoryLedger
from modelyard.spec.question import Question


@dataclass(frozen=True)
class Answer:
    """The model's answer to one question. `estimate` is None if the question could not be read."""

    id: str | int | None
    estimate: Estimate | None
    findings: tuple[Finding, ...]

    @property
    def ledger(self) -> MemoryLedger | None:
        return self.estimate.ledger if self.estimate else None

    @property
    def fits(self) -> bool:
        return self.estimate is not None and self.estimate.fits


def answer(question: Question) -> Answer:
    """Answer `question`; what goes wrong becomes a finding."""
    if question.request is None:
        return Answer(question.id, None, question.findings)
    try:
        found = estimate(question.request)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as problem:
        # A last resort: a batch continues after any failure.
        unknown = Finding(
            "MODEL002",
            f"no memory follows from this question ({type(problem).__name__}: {problem})",
            "please report it with the question",
        )
        return Answer(question.id, None, (unknown,))
    return Answer(question.id, found, found.findings)


def answer_json(found: Answer) -> dict[str, Any]:
    """The JSON format: GiB of one GPU; null for values that cannot be computed. A negative cache is 0."""
    ledger, said = found.ledger, found.estimate
    figures: dict[str, Any] = dict.fromkeys(
        (
            "weightsGiB",
            "activationGiB",
            "nonTorchGiB",
            "cudaGraphGiB",
            "kvCacheGiB",
            "kvCacheTokens",
            "maxConcurrency",
        )
    )
    if ledger is not None and said is not None:
        left = ledger.kv_cache > Memory(0)
        figures = {
            "weightsGiB": _gib(ledger.weights + ledger.adapters),
            "activationGiB": _gib(ledger.activation),
            "nonTorchGiB": _gib(ledger.non_torch),
            "cudaGraphGiB": _gib(ledger.cuda_graphs),
            "kvCacheGiB": _gib(ledger.kv_cache) if left else 0.0,
            "kvCacheTokens": ledger.kv_tokens(said.max_model_len) if left else 0,
            "maxConcurrency": _finite(ledger.concurrency(said.max_model_len)) if left else 0.0,
        }
    return {
        "id": found.id,
        **figures,
        "fits": found.fits,
        "longestLen": said.longest if said is not None else 0,
        "findings": [{"code": f.code, "message": f"{f.message}; {f.fix}"} for f in found.findings],
    }


def answer_line(found: Answer) -> str:
    """One line of JSON, in ASCII, since a model's name may hold any characters."""
    return json.dumps(answer_json(found), allow_nan=False) + "\n"


def answer_row(found: Answer, position: int) -> str:
    """One table line for people."""
    name = _printable(str(position if found.id is None else found.id))
    if (ledger := found.ledger) is None or found.estimate is None:
        reasons = "; ".join(f"{f.code} {f.message}" for f in found.findings)
        return f"{name:<24} no answer     {_printable(reasons)}"
    codes = " ".join(f.code for f in found.findings)
    verdict = "fits" if found.fits else "does not fit"
    return (
        f"{name:<24} {verdict:<12}  weights {ledger.weights.in_gib:7.2f}  KV cache {ledger.kv_cache.in_gib:7.2f} GiB"
        f"  longest {found.estimate.longest:>8}  {codes}".rstrip()
    )


def print_answer(out: Console, title: str, said: Estimate, ledger: MemoryLedger) -> None:
    """The ledger as a bar and as numbers, and the lengths and requests that fit."""
    request = ledger.request
    facts = request.facts
    out.print(
        f"{title} on {request.accelerator.name}, {facts.engine} {facts.version}, "
        f"utilization {request.gpu_memory_utilization:g}: {'fits' if said.fits else 'does not fit'}\n",
        style="bold",
        soft_wrap=True,
    )
    print_ledger(out, ledger)
    length = said.max_model_len
    if ledger.kv_cache > Memory(0):
        out.print(
            f"\n{ledger.kv_tokens(length):,} tokens of KV cache: {ledger.concurrency(length):.2f} requests of {length:,} "
            f"tokens at once; the longest length that fits is {said.longest:,}.",
            soft_wrap=True,
        )


def print_ledger(out: Console, ledger: MemoryLedger) -> None:
    """The bar, and one line per part."""
    colours = has_colours(out)
    out.print(ledger_bar(ledger, terminal_bar_width(), colours=colours), soft_wrap=True)
    for part in ledger_parts(ledger):
        if part.amount.in_bytes or part.key in ("weights", "kvCache"):
            line = Text("█ " if colours else f"{part.plain} ", style=part.colour if colours else "")
            line.append(f"{part.name:<20}{part.amount.in_gib:>9.2f} GiB", style="default" if colours else "")
            out.print(line)
    whole = "memory of one GPU" if ledger.request.accelerator.cores == 1 else "memory of one core"
    out.print(f"  {whole:<20}{ledger.total.in_gib:>9.2f} GiB")


def _printable(text: str) -> str:
    """Without characters that move a terminal's cursor or cannot be encoded: names are untrusted input."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _gib(amount: Memory) -> float:
    return round(amount.in_gib, 4)


def _finite(requests: float) -> float | None:
    return round(requests, 2) if math.isfinite(requests) else None
