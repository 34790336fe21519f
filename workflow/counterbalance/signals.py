"""Stopping kindly: the first SIGINT or SIGTERM is a request, a second one ends the process at once."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_CAUGHT = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping_kindly(stop: Callable[[str], None]) -> Iterator[None]:
    """Call `stop` with a text that says which signal came, in the running event loop; then let signals be as before.

    Outside the main thread of a process no signal can be taken, and nothing happens.
    """
    loop = asyncio.get_running_loop()

    def first(number: signal.Signals) -> None:
        stop(f"stopped by {number.name}")
        for entry in _CAUGHT:
            loop.remove_signal_handler(entry)

    with suppress(ValueError, RuntimeError, NotImplementedError):
        for number in _CAUGHT:
            loop.add_signal_handler(number, first, number)
    try:
        yield
    finally:
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in _CAUGHT:
                loop.remove_signal_handler(number)
