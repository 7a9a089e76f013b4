"""Playing beside a test, or beside a person: the same again and again, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PERIOD = 0.2  # seconds


class Rounds:
    """What went wrong is told in the thread of who asks."""

    def __init__(self) -> None:
        self._lost: list[Exception] = []

    def check(self) -> None:
        """Raises what ended the rounds."""
        for error in self._lost:
            raise error

    def end_with(self, error: Exception) -> None:
        self._lost.append(error)


@contextmanager
def rounds(play: Callable[[], None]) -> Iterator[Rounds]:
    """Call `play` until the block ends.

    Raises:
        Exception: what went wrong in it.
    """
    made, stop = Rounds(), threading.Event()

    def work() -> None:
        while not stop.wait(_PERIOD):
            try:
                play()
            except Exception as error:  # noqa: BLE001 - told at the end, in the other thread
                made.end_with(error)
                return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        stop.set()
        thread.join()
    made.check()
