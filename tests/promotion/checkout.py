"""A fresh checkout of this repository that uses the tools installed here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.promotion.conftest import ROOT

_INSTALLED = (".venv", ".venv-localcloud", ".venv-scanners", ".tools", "node_modules")
_MADE = shutil.ignore_patterns(
    ".git",
    ".venv*",
    ".tools",
    ".modelyard",
    "node_modules",
    "dist",
    "cdk.out*",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
)
"""What .gitignore names, and Git itself: CodePipeline hands its builds the files of a commit without a
repository."""

_PINS = ("uv.lock", "pyproject.toml", "package-lock.json", ".ci/install_uv.py")
"""What make installs again when it is newer than what is installed."""


def check_out(folder: Path) -> Path:
    """Copy what Git would check out into `folder`, beside links to what `make install` has made here."""
    shutil.copytree(ROOT, folder, ignore=_MADE)
    for name in _INSTALLED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    for name in _PINS:
        os.utime(folder / name, (0, 0))
    # Otherwise it would be installed through the links: this repository's own environment, from a folder that
    # goes.
    planned = subprocess.run(
        ["make", "--dry-run", "install"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    if "sync" in planned or "npm" in planned:
        raise RuntimeError(f"what is installed here is older than its pins; run `make install`:\n{planned}")
    return folder
