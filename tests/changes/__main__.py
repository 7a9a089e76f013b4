"""Write docs/reference/changes.md: `python -m tests.changes`."""

from __future__ import annotations

from tests.changes.page import PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
