"""Modelyard: LLM inference on Amazon EKS as code.

The public Python API. Names are imported on first use, and none of them starts jsii.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelyard.findings import Finding as Finding
    from modelyard.library import plan as plan
    from modelyard.objects.rendering import render as render
    from modelyard.planning import ModelPlan as ModelPlan
    from modelyard.planning import Plan as Plan
    from modelyard.project import Project as Project
    from modelyard.project import load_project as load_project
    from modelyard.spec import Environment as Environment
    from modelyard.spec import Model as Model

_PLACES = {
    "Environment": "modelyard.spec",
    "Finding": "modelyard.findings",
    "Model": "modelyard.spec",
    "ModelPlan": "modelyard.planning",
    "Plan": "modelyard.planning",
    "Project": "modelyard.project",
    "load_project": "modelyard.project",
    "plan": "modelyard.library",
    "render": "modelyard.objects.rendering",
}

__all__ = [
    "Environment",
    "Finding",
    "Model",
    "ModelPlan",
    "Plan",
    "Project",
    "load_project",
    "plan",
    "render",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'modelyard' has no attribute {name!r}; it has {', '.join(_PLACES)}")
    found = getattr(import_module(_PLACES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
