"""All accelerators that fit a model, with maximum length, headroom and price, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modelyard.checkpoints import Architecture
from modelyard.findings import Finding
from modelyard.hardware import (
    Accelerator,
    InstanceType,
    Memory,
    Prices,
    accelerators,
    instance_types,
    types_with,
)
from modelyard.memory.serving import Serving, plan_serving
from modelyard.planning.admission import PoolTerms, default_volume_gib, shortages
from modelyard.planning.placement import pod_request
from modelyard.spec.model import Model

COUNTS = (1, 2, 4, 8, 16)
"""Accelerator counts per replica to try, where EC2 sells an instance with that many."""

_EVERY_CAPACITY = ("on-demand", "reserved", "spot")
# Which reason to show when several counts fail: nearly enough memory, then too little, then any other.
_TELLING = {"KV001": 2, "FIT001": 1}


@dataclass(frozen=True)
class Size:
    """An accelerator and count that fit the model.

    `longest`: the longest length at which the requested concurrency fits. `instance`: the cheapest of the
    fitting types with the fewest accelerators in the region, or None. Prices are US dollars per hour, None if
    AWS publishes none: of the accelerators' share, and of the whole instance.
    """

    serving: Serving
    longest: int
    instance: InstanceType | None
    share_price: float | None
    instance_price: float | None

    @property
    def label(self) -> str:
        return f"{self.serving.accelerator.name}:{self.serving.count}"


@dataclass(frozen=True)
class Rejected:
    """An accelerator that fits the model in no count, with the most useful reason; `count` is 0 if EC2 sells
    no instance that Modelyard supports."""

    accelerator: Accelerator
    count: int
    code: str
    reason: str


@dataclass(frozen=True)
class Sizing:
    """`sizes` are sorted by share price, then instance price; sizes without a price come last."""

    sizes: tuple[Size, ...]
    rejected: tuple[Rejected, ...]

    @property
    def smallest(self) -> tuple[Size, ...]:
        """The smallest count of each accelerator, in the same order."""
        least: dict[str, int] = {}
        for size in self.sizes:
            name, count = size.serving.accelerator.name, size.serving.count
            least[name] = min(count, least.get(name, count))
        return tuple(s for s in self.sizes if s.serving.count == least[s.serving.accelerator.name])


def size_model(model: Model, prices: Prices, known: Architecture | None = None) -> Sizing:
    """Try `model` on all accelerators, whatever its file states; `known` as in `plan_serving`."""
    sizes: list[Size] = []
    rejected: list[Rejected] = []
    for kind in accelerators().values():
        found = list(_tries(model, kind, prices, known))
        sizes += [each for each in found if isinstance(each, Size)]
        reasons = [each for each in found if isinstance(each, Rejected)]
        if len(reasons) == len(found):
            rejected.append(max(reasons, key=lambda r: (_TELLING.get(r.code, 0), r.count)))
    return Sizing(tuple(sorted(sizes, key=_price_first)), tuple(rejected))


def _price_first(size: Size) -> tuple[float, float, int, str]:
    share = float("inf") if size.share_price is None else size.share_price
    whole = float("inf") if size.instance_price is None else size.instance_price
    return share, whole, size.serving.count, size.serving.accelerator.name


def _tries(
    model: Model, kind: Accelerator, prices: Prices, known: Architecture | None
) -> Iterator[Size | Rejected]:
    sold = types_with(kind.name)
    if not sold:
        why = sorted({str(t.unsupported) for t in instance_types().values() if t.accelerator == kind})
        yield Rejected(
            kind, 0, "CAP003", f"EC2 sells no instance for it: {'; '.join(why) or 'none is known'}"
        )
    for count in COUNTS:
        if not any(instance.accelerator_count >= count for instance in sold):
            continue
        serving = plan_serving(model, kind, count, known=known)
        if isinstance(serving, list):
            yield _rejected(kind, count, serving)
        else:
            yield _placed(serving, sold, prices)


def _rejected(kind: Accelerator, count: int, findings: list[Finding]) -> Rejected:
    return Rejected(kind, count, findings[0].code, "; ".join(finding.message for finding in findings))


def _placed(serving: Serving, sold: tuple[InstanceType, ...], prices: Prices) -> Size | Rejected:
    kind, count = serving.accelerator, serving.count
    amounts = pod_request(serving).amounts
    disk = Memory.gib(default_volume_gib(count))
    terms = PoolTerms(kind.name, (), _EVERY_CAPACITY, COUNTS[-1], round(disk.in_gib), prices)
    admitted, reasons = [], []
    for instance in sold:
        volume = Memory.bytes(instance.local_nvme_gb * 1e9) if instance.local_nvme_gb else disk
        if lacks := shortages(instance, amounts, terms, volume):
            reasons.append((instance, "; ".join(lack.reason for lack in lacks)))
        else:
            admitted.append(instance)
    if not admitted and any(prices.region in instance.offered_regions for instance in sold):
        enough = [(i, reason) for i, reason in reasons if i.accelerator_count >= count]
        return Rejected(
            kind, count, "CAP003", f"no instance type admits the pod: {enough[-1][0].name} {enough[-1][1]}"
        )
    cheapest = min(admitted, key=lambda i: _cost_of(i, prices), default=None)
    price = prices.of(cheapest).usd_per_hour if cheapest else None
    return Size(
        serving=serving,
        longest=serving.longest,
        instance=cheapest,
        share_price=None if price is None or cheapest is None else price * count / cheapest.accelerator_count,
        instance_price=price,
    )


def _cost_of(instance: InstanceType, prices: Prices) -> tuple[int, float, int, str]:
    price = prices.of(instance).usd_per_hour
    return instance.accelerator_count, float("inf") if price is None else price, instance.vcpu, instance.name
