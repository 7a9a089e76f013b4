"""The console script: Ctrl-C ends it quietly from its first moment on."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Run `modelyard`; see `modelyard.cli.main` for its exit codes."""
    # What a command makes lives until its end: the collector would walk over it a hundred times for nothing.
    gc.set_threshold(50_000, 50, 100)
    # While modules are loaded there is nothing to tidy up, and compiled ones would swallow Python's
    # exception.
    usual = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from modelyard.cli.main import main as run

    signal.signal(signal.SIGINT, usual)
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(130)
