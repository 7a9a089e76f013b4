"""Pod Security Standard `restricted`, for every pod that Modelyard renders."""

from __future__ import annotations

from typing import Any

# The user `vllm` of the vLLM image; Python's getpwuid fails for an id without an entry. The EFS access point
# enforces the same uid, so the server can read what the fetch Job writes.
UID = 2000


def pod_security_context() -> dict[str, Any]:
    return {
        "runAsNonRoot": True,
        "runAsUser": UID,
        "runAsGroup": UID,
        "fsGroup": UID,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security_context() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def security_levels(level: str = "restricted") -> dict[str, str]:
    """Namespace labels for a Pod Security level."""
    return {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}
