"""Names that change with what they name."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(content: Any) -> str:
    """Eight characters that differ when `content`, plain data, does."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
