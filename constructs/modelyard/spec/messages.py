"""What is wrong with a value, in plain words: pydantic's speak of dictionaries, instances and expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic_core import ErrorDetails

from modelyard.reading import closest, short
from modelyard.spec.registry import CREDENTIAL_PATTERN, HOST_PATTERN, OCI_PATTERN, PLACE_PATTERN

FORMS: Mapping[str, str] = MappingProxyType(
    {
        r"^(?P<value>[0-9]+(\.[0-9]+)?)%$": "0.5%",
        r"^(?P<value>[0-9]+(\.[0-9]+)?)(?P<unit>ms|s)$": "800ms",
        r"^(?P<value>[0-9]{1,9})(?P<unit>s|m|h)$": "90s",
        r"^auto$|^(?P<value>[0-9]{1,9})(?P<unit>s|m|h)$": "20m",
        r"^([0-9]+\.[0-9]+(\.[0-9]+)?|b[0-9]+)$": "0.33.0",
        r"^(al2023|bottlerocket)@(latest|v[0-9][0-9.]*)$": "al2023@latest",
        r"^(hf://[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+|efs://[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*|"
        r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_.=-]+)*)$": "hf://Qwen/Qwen3-8B",
        r"^hf://[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$": "hf://Qwen/Qwen3-8B",
        r"^(https://|ssh://|git@).+": "https://github.com/acme/models",
        r"^[#@][A-Za-z0-9._-]{1,79}$": "#llm-on-call",
        r"^arn:aws[a-z-]*:sns:[a-z]{2}(-[a-z]+)+-[0-9]:[0-9]{12}:[A-Za-z0-9_-]{1,256}$": (
            "arn:aws:sns:us-east-2:123456789012:on-call"
        ),
        r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/(1[6-9]|2[0-2])$": "10.64.0.0/16",
        r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$": "203.0.113.0/24",
        r"^[0-9]{12}$": "123456789012",
        r"^[A-Z0-9]+$": "CAP004",
        r"^[A-Z][A-Z0-9_]*$": "VLLM_LOGGING_LEVEL",
        r"^[A-Za-z0-9/_+=.@-]{1,512}$": "modelyard/hf-token",
        r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*\.gguf$": "qwen3-8b-q4_k_m.gguf",
        r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$": "acme/models",
        r"^[^@\s]+@[^@\s]+\.[^@\s]+$": "llm-platform@example.com",
        r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$": "models.example.com",
        r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$": "acme-weights",
        r"^[a-z]{2}(-[a-z]+)+-[0-9]$": "us-east-2",
        r"^arn:aws[a-z-]*:(codeconnections|codestar-connections):[a-z0-9-]+:[0-9]{12}:connection/.+$": (
            "arn:aws:codeconnections:us-east-2:123456789012:connection/ID"
        ),
        r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/.+$": "arn:aws:iam::123456789012:role/NAME",
        r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$": "arn:aws:iam::123456789012:role/NAME",
        r"^[A-Za-z0-9+=,.@_-]{1,64}$": "KarpenterNodeRole-prod",
        r"^sg-[0-9a-f]{8,17}$": "sg-0123456789abcdef0",
        r"^v?[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?([-+][A-Za-z0-9.-]{1,40})?$": "1.14.1",
        r"^arn:aws[a-z-]*:ce::[0-9]{12}:anomalymonitor/[0-9a-f-]{36}$": (
            "arn:aws:ce::123456789012:anomalymonitor/0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f"
        ),
        CREDENTIAL_PATTERN: (
            "arn:aws:secretsmanager:us-east-2:123456789012:secret:ecr-pullthroughcache/docker-hub-AbCdEf"
        ),
        HOST_PATTERN: "quay.io",
        OCI_PATTERN: "oci://mirror.example.com/charts",
        PLACE_PATTERN: "mirror.example.com/all",
        r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$": "arn:aws:iam::123456789012:policy/NAME",
        r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$": "arn:aws:sns:us-east-2:123456789012:NAME",
        r"^1\.[0-9]{2,3}\.[0-9]+-[0-9]{8}$": "1.36.2-20260714",
        r"^arn:aws[a-z-]*:sso:::instance/ssoins-[0-9a-f]{16}$": "arn:aws:sso:::instance/ssoins-0123456789abcdef",
        r"^cr-[0-9a-f]{8,17}$": "cr-0123456789abcdef0",
        r"^efs://batches(/[A-Za-z0-9_.-]+)+$": "efs://batches/nightly/prompts.jsonl",
        r"^fs-[0-9a-f]{8,17}$": "fs-0123456789abcdef0",
        r"^fsap-[0-9a-f]{8,17}$": "fsap-0123456789abcdef0",
        r"^https?://.+": "https://prometheus.example.com",
        r"^https?://.+[^/]$": "https://runbooks.example.com",
        r"^https?://[a-z0-9-]+\.[a-z0-9-]+(\.svc[a-z0-9.-]*)?:[0-9]{2,5}(/.*)?$": "http://otel.monitoring:4317",
        r"^rtb-[0-9a-f]{8,17}$": "rtb-0123456789abcdef0",
        r"^subnet-[0-9a-f]{8,17}$": "subnet-0123456789abcdef0",
        r"^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$": "v1.21.1-eksbuild.3",
        r"^vpc-[0-9a-f]{8,17}$": "vpc-0123456789abcdef0",
    }
)
"""An example of a right value, by the expression that it must match."""

RULES: Mapping[str, str] = MappingProxyType(
    {
        r"^[a-z]([-a-z0-9]*[a-z0-9])?$": "must be lower-case letters, digits and dashes, the first a letter",
        r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$": "must be letters, digits, dots and dashes, 63 at most",
        r"^[A-Za-z0-9_./-]+$": "must be letters, digits, dots, dashes and slashes",
        r"^[A-Za-z0-9_./-]{1,80}$": "must be letters, digits, dots, dashes and slashes, 80 at most",
    }
)
"""What names must consist of, by expression: an example would say nothing."""

_NUMBER = "must be a number"
_WHOLE = "must be a whole number"
_LIST = "must be a list"
_MAPPING = "has the wrong shape"  # a mapping, or a short form that the field's description shows
_SAID: Mapping[str, str] = MappingProxyType(
    {
        "bool_parsing": "must be true or false",
        "bool_type": "must be true or false",
        "int_parsing": _WHOLE,
        "int_type": _WHOLE,
        "int_from_float": _WHOLE,
        "float_parsing": _NUMBER,
        "float_type": _NUMBER,
        "finite_number": "must be a finite number",
        "string_type": "must be text",
        "list_type": _LIST,
        "tuple_type": _LIST,
        "frozen_set_type": _LIST,
        "dict_type": "must be a mapping of keys to values",
        "model_type": _MAPPING,
        "model_attributes_type": _MAPPING,
        "date_type": "must be a date such as 2026-12-31",
        "date_parsing": "must be a date such as 2026-12-31",
        "date_from_datetime_parsing": "must be a date such as 2026-12-31",
        "date_from_datetime_inexact": "must be a date such as 2026-12-31",
        "greater_than": "must be more than {gt}",
        "greater_than_equal": "must be {ge} or more",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be {le} or less",
        "string_too_short": "must have {min_length} or more characters",
        "string_too_long": "must have {max_length} or fewer characters",
        "too_short": "must have {min_length} or more entries",
        "too_long": "must have {max_length} or fewer entries",
        "literal_error": "must be {expected}",
        "enum": "must be {expected}",
        "none_required": "must be left out",
    }
)


_NAMES = (
    "Karpenter",
    "Kubernetes",
    "LiteLLM",
    "OpenTelemetry",
    "Prometheus",
    "Grafana",
    "Flux",
    "Argo",
    "Git",
)


def problem(detail: ErrorDetails) -> str:
    """What is wrong, without the field's name and the value."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "string_pattern_mismatch":
        pattern = str(context["pattern"])
        return RULES.get(pattern) or f"must look like {FORMS.get(pattern, 'the description says')}"
    if kind in _SAID:
        return _SAID[kind].format(**context)
    return short(uncapitalized(detail["msg"].removeprefix("Value error, ")), 500)


def nearest(detail: ErrorDetails) -> str | None:
    """The allowed value that was probably meant, where a field allows a few; a number is never misspelled."""
    allowed = re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))
    found: Any = detail["input"]
    if not isinstance(found, str) or not any(letter.isalpha() for letter in found):
        return None
    return next(iter(closest(found, allowed)), None)


def uncapitalized(text: str) -> str:
    """`text` for the middle of a sentence: names such as `AWS` and `HF_TOKEN` keep their capitals."""
    keeps = text.startswith(_NAMES) or text[1:2].isupper() or text[1:2] == "_"
    return text if keeps else text[:1].lower() + text[1:]
