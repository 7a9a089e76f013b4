"""The console script: Ctrl-C is answered from the first moment on, while modules are still loaded."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `modelyard`; see `modelyard.cli.main` for its exit codes."""
    try:
        from modelyard.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
