"""Location of the real engine, and what happens without it."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
_STAMP = ROOT / ".venv-vllm" / ".installed"


def require() -> None:
    """Skip the importing module where the engine is not installed, or only half."""
    if not _STAMP.is_file():
        pytest.skip("the real engine is not installed: python3 .ci/install_vllm.py", allow_module_level=True)
