"""An environment's stacks, synthesised in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelyard.spec import Environment

ROOT = Path(__file__).parents[1]


def empty_tree(folder: Path) -> Path:
    """`folder` as a rendered tree without objects: templates then differ by the stacks alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kustomization.yaml").write_text("resources: []\n", encoding="utf-8")
    return folder


def synthesise_into(out: Path, environment: Environment, tree: Path) -> None:
    """Write the cloud assembly, with the pinned feature flags and without CDK's built-in validation."""
    import aws_cdk as cdk

    from infra.platform import add_platform

    flags = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    app = cdk.App(outdir=str(out), context=flags, builtin_cloud_formation_validation=False)
    add_platform(app, environment, tree=tree)
    app.synth()
