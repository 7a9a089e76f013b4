"""This organisation's own objects, beside those that Modelyard composes; `modelyard.yaml` names this package.

`render`, `cdk8s synth` and `cdk deploy` all call `compose`. A part is a list of plain objects or a cdk8s
chart; see docs/how-to/add-objects.md.
"""

from __future__ import annotations

from modelyard.objects.composition import Composition


def compose(composition: Composition) -> None:
    """Add to, or replace, the folders of an environment's tree: nothing so far."""
