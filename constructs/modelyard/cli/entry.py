"""The console script: Ctrl-C ends it quietly from its first moment on."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run `modelyard`; see `modelyard.cli.main` for its exit codes."""
    # While modules are loaded there is nothing to tidy up, and compiled ones would swallow Python's exception.
    usual = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from modelyard.cli.main import main as run
    except Exception as problem:  # what a model file may say depends on the installed engines
        from modelyard.engines.registry import UnusableEngine

        if not isinstance(problem, UnusableEngine):
            raise
        print(f"modelyard: {problem}", file=sys.stderr)
        sys.exit(1)

    signal.signal(signal.SIGINT, usual)
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(130)
