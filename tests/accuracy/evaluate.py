"""Error of the memory model against the logs of real engines: `make accuracy`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import median

from modelyard.engines import MemoryFacts, memory_facts
from modelyard.memory.estimate import Estimate, estimate
from modelyard.spec.estimate import EstimateRequest
from tests.accuracy.calibrate import adjusted, calibration
from tests.accuracy.measurements import FAILED, STARTED, Measurement, measurements

KAITO_WEIGHTS, KAITO_OVERHEAD_GIB = 1.02, 2.3
SORTS = "0.12"  # engines/vllm/memory.yaml: PyTorch's sort samples

Adjust = Callable[[MemoryFacts], MemoryFacts]


@dataclass(frozen=True)
class Answer:
    """A measurement and what the model says of it."""

    measured: Measurement
    estimate: Estimate

    @property
    def weight_error(self) -> float | None:
        """Share of the measured weights."""
        ledger, weights = self.estimate.ledger, self.measured.weights
        return None if ledger is None or weights is None else ledger.weights.in_gib / weights - 1

    @property
    def kv_error(self) -> float | None:
        """Share of the GPU's memory; positive where too much is promised."""
        ledger, measured = self.estimate.ledger, measured_kv(self.measured, self.estimate)
        if ledger is None or measured is None:
            return None
        return (ledger.kv_cache.in_gib - measured) / self.measured.total

    @property
    def token_error(self) -> float | None:
        ledger, tokens = self.estimate.ledger, self.measured.kv_tokens
        if ledger is None or not tokens:
            return None
        return ledger.kv_tokens(self.estimate.max_model_len) / tokens - 1


def measured_kv(measured: Measurement, said: Estimate) -> float | None:
    """The cache that the log states, in GiB, or that its blocks amount to."""
    if measured.kv_cache is not None:
        return measured.kv_cache
    if measured.kv_tokens and said.ledger and not measured.tokens_are_logged:
        layout = said.ledger.layout
        return measured.kv_tokens / layout.block_size * layout.bytes_per_block / (1 << 30)
    return None


def answers(rows: Iterable[Measurement], adjust: Adjust = lambda facts: facts) -> list[Answer]:
    return [
        Answer(row, estimate(EstimateRequest.model_validate(row.question), sampled(row, adjust)))
        for row in rows
    ]


def sampled(row: Measurement, adjust: Adjust) -> Adjust:
    """`adjust`, and the sampler of the version that sorts for a log whose install had no FlashInfer."""
    if not row.sorts:
        return adjust
    sorting = memory_facts("vllm", SORTS)
    return lambda facts: replace(adjust(facts), sampler_bytes=adjust(sorting).sampler_bytes)


def quantile(values: list[float], share: float) -> float:
    """The value below which `share` of `values` lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def errors(found: Iterable[Answer], of: Callable[[Answer], float | None]) -> list[float]:
    return [error for answer in found if (error := of(answer)) is not None]


def report(found: list[Answer]) -> dict[str, float]:
    """The figures that the model is held to."""
    complete = [answer for answer in found if answer.measured.complete]
    weights = [abs(e) for e in errors(complete, lambda a: a.weight_error)]
    kv = errors(complete, lambda a: a.kv_error)
    tokens = [abs(e) for e in errors(complete, lambda a: a.token_error)]
    failed = [a for a in complete if a.measured.outcome in FAILED]
    started = [a for a in complete if a.measured.outcome == STARTED]
    return {
        "rows": len(complete),
        "weights, median": median(weights),
        "weights, p90": quantile(weights, 0.9),
        "KV of GPU memory, median": median(abs(e) for e in kv),
        "KV of GPU memory, p90": quantile([abs(e) for e in kv], 0.9),
        "KV promised > 2 % too much": sum(e > 0.02 for e in kv) / len(kv),
        "KV tokens, median": median(tokens),
        "failed rows called so": sum(not a.estimate.fits for a in failed) / max(1, len(failed)),
        "started rows called so": sum(a.estimate.fits for a in started) / max(1, len(started)),
    }


def baselines(found: list[Answer]) -> dict[str, dict[str, float]]:
    """The same on the same rows given the true weights: weights subtracted, and KAITO's published formula."""
    table: dict[str, dict[str, float]] = {}
    for name, factor, overhead in (
        ("weights only", 1.0, 0.0),
        ("KAITO", KAITO_WEIGHTS, KAITO_OVERHEAD_GIB),
    ):
        off = []
        for answer in found:
            row, measured = answer.measured, measured_kv(answer.measured, answer.estimate)
            if row.complete and row.weights and measured is not None:
                promised = row.total * row.question["gpuMemoryUtilization"] - row.weights * factor - overhead
                off.append((promised - measured) / row.total)
        table[name] = {
            "KV of GPU memory, median": median(abs(e) for e in off),
            "KV of GPU memory, p90": quantile([abs(e) for e in off], 0.9),
            "KV promised > 2 % too much": sum(e > 0.02 for e in off) / len(off),
        }
    return table


def held_out(rows: Iterable[Measurement]) -> list[Answer]:
    """Answers for each family of models with constants that come from the others alone."""
    every = tuple(rows)
    found: list[Answer] = []
    for family in sorted({row.family for row in every}):
        adjust = adjusted(calibration(every, without=family))
        found += answers((row for row in every if row.family == family), adjust)
    return found


REQUIRED = {
    "weights, median": ("<=", 0.01),
    "weights, p90": ("<=", 0.05),
    "KV of GPU memory, median": ("<=", 0.010),
    "KV of GPU memory, p90": ("<=", 0.04),
    "KV promised > 2 % too much": ("<=", 0.05),
    "KV tokens, median": ("<=", 0.05),
    "failed rows called so": (">=", 0.90),
    "started rows called so": (">=", 0.97),
}
"""What the model is held to, on the logs that state GPU, tensor parallelism and utilization."""


def main() -> None:
    rows = measurements()
    found = answers(rows)
    apart = of_family(found, "gpt-oss")
    if "--rows" in sys.argv:
        for answer in found:
            show(answer)
    columns = {"in-sample": report(found), "held-out": report(held_out(rows)), **baselines(found)}
    print(
        f"{len(rows)} logs of real start-ups, {columns['in-sample']['rows']} of which state GPU, ranks and utilization"
    )
    print(f"{'':<28}{'required':>10}" + "".join(f"{name:>14}" for name in columns))
    for name, (sign, limit) in REQUIRED.items():
        cells = "".join(
            f"{values[name]:>14.2%}" if name in values else f"{'':>14}" for values in columns.values()
        )
        print(f"{name:<28}{sign + f' {limit:.1%}':>10}{cells}")
    print(f"\ngpt-oss, {len(apart)} logs, no constant from any of them (measured / predicted)")
    for answer in apart:
        show_apart(answer)
    print("held-out: constants for each family of models come from the logs of the others.")
    print("weights only, KAITO: given the true weights; KAITO is weights x 1.02 and 2.3 GiB.")


def of_family(found: Iterable[Answer], family: str) -> list[Answer]:
    return [answer for answer in found if answer.measured.family == family]


def show_apart(answer: Answer) -> None:
    row, ledger = answer.measured, answer.estimate.ledger
    assert ledger is not None
    measured = measured_kv(row, answer.estimate) if row.complete else None
    weights = (
        f"{row.weights:7.2f} / {ledger.weights.in_gib:7.2f} GiB {answer.weight_error:+.2%}"
        if row.weights
        else ""
    )
    cache = f"{measured:6.2f} / {ledger.kv_cache.in_gib:6.2f} GiB {answer.kv_error:+.2%}" if measured else ""
    print(
        f"{row.id} {row.question['model']:20} v{row.question['engineVersion']:7} {row.question['computeCapability']}"
        f" tp{row.question['tensorParallel']}  weights {weights:29}  cache {cache}"
    )


def show(answer: Answer) -> None:
    row, ledger = answer.measured, answer.estimate.ledger
    codes = " ".join(f.code for f in answer.estimate.findings)
    if ledger is None:
        print(
            f"{row.id} {row.question['model'][:40]:40} {row.outcome:16} {codes} {[f.message for f in answer.estimate.findings]}"
        )
        return
    kv, kv_error = measured_kv(row, answer.estimate), answer.kv_error
    print(
        f"{row.id} {'*' if row.complete else ' '} {row.question['model'][:36]:36} "
        f"v{row.question['engineVersion']:7} tp{row.question['tensorParallel']}"
        f" w {ledger.weights.in_gib:6.2f}/{row.weights or 0:6.2f} act {ledger.activation.in_gib:5.2f}/{row.activation or 0:5.2f}"
        f" nt {ledger.non_torch.in_gib:4.2f}/{row.non_torch or 0:4.2f} cg {ledger.cuda_graphs.in_gib:4.2f}/{row.graphs or 0:4.2f}"
        f" kv {ledger.kv_cache.in_gib:6.2f}/{kv or 0:6.2f} {'' if kv_error is None else f'{kv_error:+.2%}':>8}"
        f" tok {'' if answer.token_error is None else f'{answer.token_error:+.1%}':>7} {row.outcome} "
        f"{'fits' if answer.estimate.fits else 'NOT'} {codes}"
    )


if __name__ == "__main__":
    main()
