"""Platform overhead per node, account quotas, and start-up times until the first token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from packaging.version import Version

from modelyard.hardware.memory import Memory
from modelyard.hardware.tables import yaml_table


@dataclass(frozen=True)
class Quota:
    """An EC2 entry in Service Quotas, in vCPU, for some instance families."""

    name: str
    families: tuple[str, ...]
    on_demand: str
    spot: str


@dataclass(frozen=True)
class StartupFacts:
    """Seconds, and throughputs in MiB/s, from Pending pod to first token."""

    node_seconds: int
    image_pull_seconds: int
    efs_mib_per_second: float
    s3_mib_per_second: float
    nvme_mib_per_second: float
    hub_mib_per_second: float
    compile_seconds: int
    neuron_compile_seconds: int
    safety_factor: float
    least_budget_seconds: int


@dataclass(frozen=True)
class PlatformFacts:
    daemon_cpu_milli: int
    daemon_memory: Memory
    quotas: tuple[Quota, ...]
    startup: StartupFacts
    image_disk: Memory
    system_disk: Memory
    usable_disk_share: float
    parallel_pull: Mapping[str, str]
    karpenter_resources: frozenset[str]
    hours_per_month: int

    def pulls_in_parallel(self, ami: str) -> bool:
        """Whether an AMI alias such as `al2023@v20260714` supports unpacking image layers in parallel."""
        family, _, release = ami.partition("@")
        if family not in self.parallel_pull:
            return False
        if release == "latest":
            return True
        return Version(release) >= Version(self.parallel_pull[family])

    def quota(self, family: str) -> Quota:
        """The quota of an instance family such as `g6e`.

        Raises:
            LookupError: the table has no quota for the family.
        """
        letters = "".join(c for c in family.partition("-")[0] if not c.isdigit())
        for size in range(len(letters), 0, -1):
            for quota in self.quotas:
                if letters[:size] in quota.families:
                    return quota
        raise LookupError(f"no vCPU quota is known for instance family {family}")


@cache
def platform_facts() -> PlatformFacts:
    table = yaml_table("platform.yaml")
    startup = table["startup"]
    return PlatformFacts(
        daemon_cpu_milli=sum(row["cpuMilli"] for row in table["daemonSets"]),
        daemon_memory=Memory.mib(sum(row["memoryMib"] for row in table["daemonSets"])),
        quotas=tuple(
            Quota(row["name"], tuple(row["families"]), row["onDemand"], row["spot"])
            for row in table["quotas"]
        ),
        startup=StartupFacts(
            node_seconds=startup["nodeSeconds"],
            image_pull_seconds=startup["imagePullSeconds"],
            efs_mib_per_second=startup["efsMibPerSecond"],
            s3_mib_per_second=startup["s3MibPerSecond"],
            nvme_mib_per_second=startup["nvmeMibPerSecond"],
            hub_mib_per_second=startup["hubMibPerSecond"],
            compile_seconds=startup["compileSeconds"],
            neuron_compile_seconds=startup["neuronCompileSeconds"],
            safety_factor=startup["safetyFactor"],
            least_budget_seconds=startup["leastBudgetSeconds"],
        ),
        image_disk=Memory.gib(table["disk"]["imageGib"]),
        system_disk=Memory.gib(table["disk"]["systemGib"]),
        parallel_pull=MappingProxyType(table["parallelPull"]),
        karpenter_resources=frozenset(table["karpenterResources"]),
        usable_disk_share=table["disk"]["usableShare"],
        hours_per_month=table["hoursPerMonth"],
    )
