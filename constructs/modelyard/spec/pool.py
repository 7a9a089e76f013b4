"""Accelerator pools: the nodes that Karpenter can launch for models, and paid reservations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from modelyard.spec.cluster import AmiAlias
from modelyard.spec.document import DNS_LABEL, Document

CapacityType = Literal["reserved", "on-demand", "spot"]


class Reservation(Document):
    """Reserved EC2 capacity, paid for whether used or not."""

    id: Annotated[str, Field(pattern=r"^cr-[0-9a-f]{8,17}$")]
    """ID of the capacity reservation or Capacity Block, cr-…."""
    ends: datetime | None = None
    """End time, such as 2026-12-24T11:30:00Z; every Capacity Block has one. Default: no end."""

    @field_validator("ends")
    @classmethod
    def _has_a_zone(cls, value: datetime | None) -> datetime | None:
        if value and value.tzinfo is None:
            raise ValueError("needs a time zone, such as 2026-12-24T11:30:00Z")
        return value and value.astimezone(UTC)


def parse_reservation(value: object) -> object:
    return {"id": value} if isinstance(value, str) else value


class Pool(Document):
    """A Karpenter NodePool with one accelerator."""

    accelerator: str
    """Accelerator of every node in the pool, such as l40s, h100 or trn2 (`modelyard catalog` lists them)."""
    instance_types: tuple[str, ...] = ()
    """EC2 types to choose from; default: every type with this accelerator that Karpenter can launch."""
    capacity: Annotated[tuple[CapacityType, ...], Field(min_length=1)] = ("on-demand",)
    """Capacity types. Karpenter takes reserved before spot before on-demand; `reserved` needs
    `reservations`."""
    reservations: tuple[
        Annotated[Reservation, BeforeValidator(parse_reservation, json_schema_input_type=Reservation | str)],
        ...,
    ] = ()
    """On-demand capacity reservations or purchased Capacity Blocks: `cr-…`, or `{id: cr-…, ends:
    2026-12-24T11:30:00Z}`."""
    zones: tuple[str, ...] = ()
    """Availability zones of the pool; default: all zones of the environment."""
    nodes: Annotated[int, Field(ge=1)] | None = None
    """Keep this many nodes, used or not (a static pool); default: nodes scale with the models. Choose when
    the pool is created: Karpenter cannot convert one into the other."""
    fabric: Literal["none", "efa"] = "none"
    """`efa` attaches EFA interfaces, required for replicas over several nodes."""
    placement_group: Annotated[str, Field(pattern=DNS_LABEL)] | None = None
    """Name of an existing EC2 placement group, for nodes close to each other."""
    prices: dict[str, dict[CapacityType, Annotated[float, Field(ge=0, allow_inf_nan=False)]]] = Field(
        default_factory=dict
    )
    """US dollars per hour that your account actually pays, by type in `instanceTypes` and capacity type, such
    as `p5.48xlarge: {reserved: 34.6}`: discounts, spot, Capacity Blocks; default: the public on-demand price.
    With an on-demand price here, Karpenter also launches a type without a public price."""
    limit: Annotated[int, Field(ge=1)]
    """Maximum accelerators (GPUs, or Trainium chips) of the pool at once."""
    ami: AmiAlias = "al2023@v20260714"
    """AMI alias, pinned to a release; `@latest` replaces nodes whenever AWS publishes an image."""
    root_volume_gib: Annotated[int, Field(ge=100, le=16000)] | None = None
    """Root volume in GiB: container images, logs and disk-backed emptyDirs; default: from the size of the
    images of the pool's models."""

    @model_validator(mode="after")
    def _reserved_needs_reservations(self) -> Self:
        if ("reserved" in self.capacity) != bool(self.reservations):
            raise ValueError(
                "capacity 'reserved' and reservations go together: without the first a paid reservation stays "
                "unused, without the second nothing can be launched"
            )
        return self

    @model_validator(mode="after")
    def _prices_are_used(self) -> Self:
        for instance_type, prices in self.prices.items():
            if instance_type not in self.instance_types:
                raise ValueError(f"prices.{instance_type}: name the type under instanceTypes as well")
            if unused := sorted(set(prices) - set(self.capacity)):
                raise ValueError(
                    f"prices.{instance_type}: {', '.join(unused)} is not among the pool's capacity"
                )
        return self

    def has_price(self, instance_type: str) -> bool:
        """Whether this pool states an on-demand price for `instance_type`."""
        return "on-demand" in self.prices.get(instance_type, {})
