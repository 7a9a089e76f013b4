"""What an environment costs besides its models: a line for each thing that is billed whether or not a model
runs, and the unit prices of what depends on use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from modelyard.hardware import platform_facts
from modelyard.hardware.service_prices import ServicePrices, service_prices
from modelyard.memory.weights import checkpoint_size
from modelyard.names import METRICS_VOLUME_GIB, SILENCES_VOLUME_GIB, SYSTEM_VOLUME_GIB
from modelyard.planning.records import Plan
from modelyard.releases import minors
from modelyard.spec import Environment
from modelyard.spec.endpoints import Endpoints, interface_endpoints
from modelyard.spec.storage import lustre_capacity_gib

_ISTIO = "istio"


@dataclass(frozen=True)
class FixedCost:
    """`count` of `name`, as the stacks and the tree make them. `usd`: of one, for an hour or a month (`per`);
    None if no price is known. `usd_per_month`: of all of them."""

    name: str
    count: float
    detail: str
    usd: float | None
    per: Literal["hour", "month"]
    usd_per_month: float | None


@dataclass(frozen=True)
class UsePrice:
    """What depends on use, and US dollars for one `unit` of it; None if no price is known."""

    name: str
    unit: str
    usd: float | None


@dataclass(frozen=True)
class Saving:
    """US dollars a month that another `network.endpoints` saves."""

    endpoints: Endpoints
    usd_per_month: float


@dataclass(frozen=True)
class EnvironmentCost:
    """US dollars a month of one environment. `day`: when its prices were read."""

    region: str
    day: str
    lines: tuple[FixedCost, ...]
    by_use: tuple[UsePrice, ...]
    savings: tuple[Saving, ...]

    @property
    def usd_per_month(self) -> float:
        """The sum of the lines with a price."""
        return sum(line.usd_per_month or 0 for line in self.lines)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Lines that the sum leaves out."""
        return tuple(line.name for line in self.lines if line.usd_per_month is None)

    @property
    def known(self) -> bool:
        """Whether any price is known in this region."""
        return len(self.unpriced) < len(self.lines)


def environment_cost(planned: Plan, today: date) -> EnvironmentCost:
    """The cost of a plan's environment; `today` decides whether its Kubernetes version is in extended
    support."""
    environment = planned.environment
    prices = service_prices(environment.region)
    counting = _Counting(prices, platform_facts().hours_per_month)
    return EnvironmentCost(
        region=environment.region,
        day=prices.day,
        lines=(
            *(() if environment.cluster.existing else _control_plane(counting, environment, today)),
            *_capabilities(counting, environment),
            *_network(counting, environment),
            *_nodes(counting, environment),
            *_storage(counting, planned),
            *_small(counting, environment),
        ),
        by_use=tuple(_by_use(prices, environment)),
        savings=tuple(_savings(counting, environment)),
    )


@dataclass(frozen=True)
class _Counting:
    prices: ServicePrices
    hours: int

    def hourly(self, name: str, count: float, price: str, detail: str) -> FixedCost:
        return self._line(name, count, detail, self.prices.prices.get(price), "hour")

    def monthly(self, name: str, count: float, price: str, detail: str) -> FixedCost:
        return self._line(name, count, detail, self.prices.prices.get(price), "month")

    def instances(self, name: str, count: int, instance_type: str) -> FixedCost:
        return self._line(name, count, instance_type, self.prices.instances.get(instance_type), "hour")

    def without_price(self, name: str, count: float, detail: str) -> FixedCost:
        return self._line(name, count, detail, None, "hour")

    def _line(
        self, name: str, count: float, detail: str, usd: float | None, per: Literal["hour", "month"]
    ) -> FixedCost:
        times = self.hours if per == "hour" else 1
        return FixedCost(name, count, detail, usd, per, None if usd is None else count * usd * times)


def _control_plane(counting: _Counting, environment: Environment, today: date) -> Iterator[FixedCost]:
    cluster = environment.cluster
    yield counting.hourly("EKS control plane", 1, "controlPlaneHour", f"Kubernetes {cluster.version}")
    ends = minors()[cluster.version].support_ends
    # With `standard`, EKS upgrades the cluster on that day.
    if ends and today >= ends and cluster.support_type == "extended":
        yield counting.hourly("EKS extended support", 1, "extendedSupportHour", f"since {ends}")
    if cluster.control_plane_tier != "standard":
        yield counting.without_price(
            "EKS control plane tier",
            1,
            f"{cluster.control_plane_tier}; see https://aws.amazon.com/eks/pricing/",
        )


def _capabilities(counting: _Counting, environment: Environment) -> Iterator[FixedCost]:
    if environment.git and environment.git.managed:
        yield counting.without_price(
            "EKS capability Argo CD",
            1,
            "by the hour and by Application; see https://aws.amazon.com/eks/pricing/",
        )


def _network(counting: _Counting, environment: Environment) -> Iterator[FixedCost]:
    network, zones = environment.network, len(environment.availability_zones)
    if endpoints := len(interface_endpoints(network.endpoints)):
        detail = f"{endpoints} ({network.endpoints}) in {zones} zones"
        yield counting.hourly("interface endpoints", endpoints * zones, "endpointZoneHour", detail)
    addresses = 0
    if network.vpc is None:
        gateways = min(network.nat_gateways, zones)
        addresses += gateways
        yield counting.hourly("NAT gateways", gateways, "natGatewayHour", f"in {gateways} of {zones} zones")
    public, internal = environment.gateways.public, environment.gateways.internal
    balanced = [gateway for gateway in (internal, public) if gateway and gateway.class_name == _ISTIO]
    if balanced:
        yield counting.hourly("load balancers", len(balanced), "loadBalancerHour", "of the gateways")
    if public in balanced:
        addresses += zones
    if addresses:
        yield counting.hourly(
            "public IPv4 addresses", addresses, "publicAddressHour", "of what faces the internet"
        )


def _nodes(counting: _Counting, environment: Environment) -> Iterator[FixedCost]:
    if environment.cluster.auto_mode or environment.cluster.existing:
        return
    nodes = environment.cluster.system_nodes
    yield counting.instances("system nodes", nodes.count, nodes.instance_types[0])
    yield counting.monthly(
        "disks of system nodes, GiB",
        nodes.count * SYSTEM_VOLUME_GIB,
        "gp3GibMonth",
        f"{SYSTEM_VOLUME_GIB} GiB a node",
    )


def _storage(counting: _Counting, planned: Plan) -> Iterator[FixedCost]:
    environment, cache = planned.environment, planned.environment.cache
    if cache.file_system == "lustre":
        speed = cache.lustre_mb_per_second_per_tib
        yield counting.monthly(
            "FSx for Lustre, GiB",
            lustre_capacity_gib(cache.size_gib),
            f"lustre{speed}GibMonth",
            f"{speed} MB/s per TiB, in one zone, used or not",
        )
    elif cache.file_system_id is None:
        stored = {
            (each.model.model.uri, getattr(each.model.model, "revision", None)): checkpoint_size(
                each.serving.arch
            )
            for each in planned.models
            if each.model.cache_strategy != "s3-stream"
        }
        gib = round(sum(size.in_gib for size in stored.values()), 1)
        detail = f"weights of {len(stored)} checkpoints, once for all zones"
        if cache.file_system == "efs":
            yield counting.monthly("EFS, GiB", gib, "efsGibMonth", detail)
        else:
            yield counting.monthly("S3, GiB", gib, "s3GibMonth", detail)
            yield counting.without_price(
                "S3 Files", 1, "the file system over the bucket; see https://aws.amazon.com/s3/pricing/"
            )
    monitoring = environment.monitoring
    if monitoring.enabled and monitoring.install:
        yield counting.monthly(
            "volumes of metrics, GiB",
            METRICS_VOLUME_GIB + SILENCES_VOLUME_GIB,
            "gp3GibMonth",
            "Prometheus and Alertmanager",
        )


def _small(counting: _Counting, environment: Environment) -> Iterator[FixedCost]:
    topics = [each.sns for each in environment.monitoring.receivers.values() if each.sns]
    cache = environment.cache
    keys = {
        "cluster": environment.cluster.existing is None,
        "model cache": cache.file_system_id is None and cache.file_system != "s3-files",
        "secrets": bool(environment.secrets),
        "alerts": any(topic.emails for topic in topics),
        "metrics": environment.monitoring.managed,
        "cost": bool(environment.cost.emails),
    }
    of = [name for name, made in keys.items() if made]
    if of:
        yield counting.monthly("KMS keys", len(of), "keyMonth", f"of {', '.join(of)}")
    if secrets := len(set(environment.secrets.values())):
        yield counting.monthly("secrets", secrets, "secretMonth", "in Secrets Manager")
    watched = {each.id for pool in environment.pools.values() for each in pool.reservations}
    if watched and environment.cost.emails:
        yield counting.monthly("CloudWatch alarms", len(watched), "alarmMonth", "of reservations")


def _by_use(prices: ServicePrices, environment: Environment) -> Iterator[UsePrice]:
    price, cache = prices.prices.get, environment.cache
    if environment.network.vpc is None:
        yield UsePrice("traffic through NAT gateways", "GB", price("natGatewayGb"))
    if environment.network.endpoints != "none":
        yield UsePrice("traffic through interface endpoints", "GB", price("endpointGb"))
    logs = {"control plane": not environment.cluster.existing, "flow": environment.network.flow_logs}
    if kept := [name for name, ours in logs.items() if ours]:
        yield UsePrice(f"{' and '.join(kept)} logs", "GB", price("logGb"))
    if cache.file_system == "efs" and cache.file_system_id is None:
        yield UsePrice("reads of EFS, each start of a replica", "GB", price("efsReadGb"))
        yield UsePrice("writes to EFS, each first download", "GB", price("efsWriteGb"))
        yield UsePrice("compiled kernels and old revisions on EFS", "GiB-month", price("efsGibMonth"))
    if environment.cluster.auto_mode:
        yield UsePrice("nodes of EKS Auto Mode, and its fee", "hour", None)
    elif environment.cluster.general_vcpu:
        yield UsePrice("general nodes that Karpenter adds", "hour", None)
    if environment.gateways.internal or environment.gateways.public:
        yield UsePrice("what load balancers process", "NLCU-hour", None)
    if environment.monitoring.managed:
        yield UsePrice("samples in Amazon Managed Service for Prometheus", "10 million", None)
    if environment.monitoring.managed_grafana:
        yield UsePrice("users of Amazon Managed Grafana", "user-month", None)
    yield UsePrice("traffic between zones and to the internet", "GB", None)


def _savings(counting: _Counting, environment: Environment) -> Iterator[Saving]:
    price = counting.prices.prices.get("endpointZoneHour")
    if price is None:
        return
    kept = len(interface_endpoints(environment.network.endpoints))
    choices: tuple[Endpoints, ...] = ("essential", "none")
    for choice in choices:
        fewer = kept - len(interface_endpoints(choice))
        if fewer > 0:
            usd = fewer * len(environment.availability_zones) * price * counting.hours
            yield Saving(choice, usd)
