"""This organisation's own objects, in addition to Modelyard's; `modelyard.yaml` names this package.

`render`, `cdk8s synth` and `cdk deploy` all call `compose`. A part is a list of plain objects or a cdk8s
chart; see docs/how-to/add-objects.md.
"""

from __future__ import annotations

from modelyard.objects.composition import Composition


def compose(composition: Composition) -> None:
    """Add or replace objects in the folders of an environment's tree: none so far."""
