"""The console script: Ctrl-C ends it quietly, even during start-up."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Run `modelyard`; see `modelyard.cli.exit_codes`."""
    # A command keeps most objects until it ends: garbage collection would scan them a hundred times for
    # nothing.
    gc.set_threshold(50_000, 50, 100)
    # During imports there is nothing to clean up, and compiled modules would swallow KeyboardInterrupt.
    usual = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from modelyard.cli.main import main as run

    signal.signal(signal.SIGINT, usual)
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(130)
