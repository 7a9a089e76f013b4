"""Entry point of the CDK CLI: see `infra.app`."""

from __future__ import annotations

import sys

from infra.app import main

if __name__ == "__main__":
    sys.exit(main())
