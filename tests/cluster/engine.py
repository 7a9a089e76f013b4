"""A played engine: it takes the arguments of a rendered server, listens where they say, and invents answers.

Run as a program, `python -m tests.cluster.engine ARGUMENTS`; POD_IP holds the address of its pod on this
machine. Real are the port, the names, the length and the key; nothing is loaded and nothing is computed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from tests.contract.fake_openai import FakeOpenAI


def made(arguments: Sequence[str], address: str, key: str | None) -> tuple[FakeOpenAI, float]:
    """The server of these arguments, and the seconds for which requests may end after SIGTERM."""
    parser = ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", nargs="+", default=[])
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--shutdown-timeout", type=float, default=0)
    known, others = parser.parse_known_args(arguments)
    names = known.served_model_name or others[:1]
    says = f"{names[0]} is played here: nothing was computed."
    server = FakeOpenAI((address, known.port), key=key, models=names, length=known.max_model_len, says=says)
    return server, known.shutdown_timeout


def main() -> int:
    server, patience = made(sys.argv[1:], os.environ["POD_IP"], os.environ.get("VLLM_API_KEY"))

    def ended(*_: Any) -> None:
        threading.Thread(target=server.shutdown).start()  # it waits for the loop, which this thread is in

    signal.signal(signal.SIGTERM, ended)
    server.serve_forever(poll_interval=0.1)
    end = time.monotonic() + patience
    while server.running and time.monotonic() < end:
        time.sleep(0.05)
    return 0


if __name__ == "__main__":
    sys.exit(main())
