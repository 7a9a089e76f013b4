"""The charts of the project in the working directory, loaded when a command renders."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from modelyard.cli.workspace import CommandError


def project_charts() -> Any:
    """The charts of the project in the working directory: the composition is its own, like its CDK app."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module("charts")
    except ModuleNotFoundError as error:
        if error.name not in ("charts", "cdk8s", "constructs"):
            raise
        what = "no charts/ package here" if error.name == "charts" else f"{error.name} is not installed"
        raise CommandError(
            f"{what}; run in the project's root, with the extra modelyard[k8s] installed"
        ) from error
