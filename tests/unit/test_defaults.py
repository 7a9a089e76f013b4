"""Every documented default, in one place: a change here is a change for every user."""

from __future__ import annotations

from typing import Any

from modelyard.spec import Environment, Model, Pool
from modelyard.spec.descriptions import descriptions
from tests.unit.given import a_model, an_environment

MODEL: dict[str, Any] = {
    "schema": 1,
    "name": "qwen",
    "description": None,
    "owner": None,
    "model": {
        "uri": "hf://Qwen/Qwen3-32B-FP8",
        "revision": "main",
        "architecture": None,
        "config": None,
        "file": None,
        "servedNames": (),
        "auth": None,
        "trustRemoteCode": None,
    },
    "accelerator": {"type": "l40s", "count": None},
    "replicas": {"min": 2, "max": 2},
    "task": "generate",
    "pool": None,
    "parallelism": None,
    "disaggregation": None,
    "batch": None,
    "cache": None,
    "engine": {
        "name": "auto",
        "backend": None,
        "quantization": "auto",
        "gpuLayers": None,
        "version": None,
        "maxModelLen": None,
        "concurrency": 1,
        "maxNumSeqs": None,
        "maxNumBatchedTokens": None,
        "gpuMemoryUtilization": 0.9,
        "dtype": "auto",
        "kvCacheDtype": "auto",
        "enforceEager": False,
        "args": {},
        "env": {},
    },
    "features": {
        "tools": False,
        "reasoning": False,
        "prefixCaching": True,
        "imagesPerPrompt": None,
        "videosPerPrompt": None,
        "structuredOutputs": "auto",
        "kvOffload": None,
        "sleep": False,
    },
    "adapters": (),
    "speculativeDecoding": None,
    "scaling": {
        "metric": "waiting",
        "target": 5,
        "scaleDownAfter": 600,
        "schedule": (),
        "activator": None,
    },
    "rollout": {"strategy": "auto"},
    "availability": None,
    "drain": 60,
    "startup": {"budget": None},
    "access": {"exposure": "cluster", "host": None, "allowFrom": (), "apiKey": None},
    "observability": {
        "scrapeInterval": 15,
        "slo": {"ttftP95": None, "itlP95": None, "e2eP95": None, "errorRate": None},
        "dashboard": True,
        "tracing": False,
    },
    "patches": (),
}

ENVIRONMENT: dict[str, Any] = {
    "name": "lab",
    "account": "123456789012",
    "region": "us-east-2",
    "availabilityZones": ("us-east-2a", "us-east-2b"),
    "policy": "relaxed",
    "removal": "retain",
    "permissionsBoundary": None,
    "network": {
        "vpc": None,
        "cidr": "10.64.0.0/16",
        "podCidr": None,
        "prefixDelegation": False,
        "natGateways": 1,
        "endpoints": "all",
        "flowLogs": True,
    },
    "cluster": {
        "name": None,
        "existing": None,
        "version": "1.36",
        "supportType": "standard",
        "controlPlaneTier": "standard",
        "deletionProtection": None,
        "zonalShift": False,
        "compute": "karpenter",
        "nodeRepair": True,
        "addonVersions": {},
        "publicAccessCidrs": (),
        "admins": (),
        "viewers": (),
        "systemNodes": {"instanceTypes": ("m7g.large", "m6g.large"), "count": 2, "releaseVersion": None},
        "generalNodes": {"vcpuLimit": None, "ami": "al2023@v20260714"},
        "logRetentionDays": 90,
    },
    "teams": {},
    "pools": {},
    "secrets": {},
    "cache": {
        "fileSystem": "efs",
        "sizeGib": 2048,
        "lustreMbPerSecondPerTib": 250,
        "backups": None,
        "fileSystemId": None,
        "accessPointId": None,
        "weightsBucket": False,
        "readBuckets": (),
        "sweep": None,
        "sweepAfterDays": 30,
    },
    "cost": {
        "monthlyUsd": None,
        "alertAtPercent": (50, 80, 100),
        "anomalyUsd": None,
        "anomalyMonitor": None,
        "emails": (),
    },
    "officeHours": None,
    "monitoring": {
        "enabled": True,
        "namespace": "monitoring",
        "labels": {"release": "kube-prometheus-stack"},
        "prometheus": None,
        "install": True,
        "managed": False,
        "managedGrafana": False,
        "otlpEndpoint": None,
        "runbooks": None,
        "receivers": {},
    },
    "gateways": {"internal": None, "public": None},
    "litellm": None,
    "registry": None,
    "checks": {"smoke": True, "bench": False},
    "delivery": "flux",
    "publishers": (),
    "git": None,
    "namespace": "models",
    "quotas": {},
    "tags": {},
    "acknowledge": (),
    "overrides": {},
}

POOL: dict[str, Any] = {
    "accelerator": "l40s",
    "instanceTypes": (),
    "capacity": ("on-demand",),
    "reservations": (),
    "prices": {},
    "fabric": "none",
    "zones": (),
    "nodes": None,
    "placementGroup": None,
    "limit": 8,
    "ami": "al2023@v20260714",
    "rootVolumeGib": None,
}


def test_three_lines_are_a_whole_model() -> None:
    assert a_model().model_dump() == MODEL


def test_the_whole_form_equals_the_three_lines() -> None:
    written = MODEL | {"replicas": 2, "drain": "1m", "startup": {"budget": "auto"}}

    assert Model.model_validate(written) == a_model()


def test_short_forms_equal_long_forms() -> None:
    long = a_model(accelerator={"type": "l40s", "count": 4}, replicas={"min": 2, "max": 2})

    assert a_model(accelerator="l40s:4") == long


def test_an_environment_needs_an_account_a_region_and_zones() -> None:
    assert an_environment(pools={}).model_dump() == ENVIRONMENT
    required = {info.alias for info in Environment.model_fields.values() if info.is_required()}
    assert required == {"name", "account", "region", "availabilityZones"}


def test_a_pool_needs_an_accelerator_and_a_limit() -> None:
    assert Pool.model_validate({"accelerator": "l40s", "limit": 8}).model_dump() == POOL


def test_every_field_says_in_words_what_it_means() -> None:
    """The JSON Schema shows these texts in editors; names that say everything need none."""
    spoken = {"schema_version", "name", "model", "accelerator", "replicas", "pool", "availability", "drain"}
    assert spoken <= descriptions(Model).keys()
    assert descriptions(Pool).keys() == Pool.model_fields.keys()
