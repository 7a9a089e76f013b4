"""The thin charts of this organisation: which constructs make up an environment, and how they are written."""

from charts.environment import RenderError, environment_objects, render

__all__ = ["RenderError", "environment_objects", "render"]
