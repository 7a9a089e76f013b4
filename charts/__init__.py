"""The thin charts of this organisation: which constructs make up an environment, and how they are written."""

from charts.environment import RenderError, environment_objects, render
from charts.targets import render_target, target_contents, target_objects

__all__ = [
    "RenderError",
    "environment_objects",
    "render",
    "render_target",
    "target_contents",
    "target_objects",
]
