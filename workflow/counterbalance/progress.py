"""Progress of the calls of one cell, on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

from counterbalance.spending.prices import show_usd


class Progress(Protocol):
    """What the engine tells whoever watches."""

    def start(self, name: str, *, total: int, done: int, most_nano_usd: int | None = None) -> None:
        """Begin a cell of `total` calls, `done` of which an earlier session has answered.

        `most_nano_usd` is what the caps let it spend in all, if no other cell spends anything meanwhile.
        """

    def advance(self, count: int) -> None:
        """Count replies that are saved."""

    def spend(self, nano_usd: int) -> None:
        """Say what the cell has cost so far, what is under way at its worst case (nano-USD)."""

    def finish(self) -> None:
        """End the cell, whether or not all calls are answered."""


def make_progress(kind: str, stream: TextIO | None = None) -> Progress:
    """Make a progress display.

    Parameters
    ----------
    kind
        ``auto``: a bar on a terminal, lines elsewhere; ``plain``: lines; ``none``: nothing.
    stream
        Where it is written; standard error by default.
    """
    stream = sys.stderr if stream is None else stream
    if kind == "none":
        return SilentProgress()
    return BarProgress(stream) if kind == "auto" and stream.isatty() else LineProgress(stream)


class SilentProgress:
    """Says nothing."""

    def start(self, name: str, *, total: int, done: int, most_nano_usd: int | None = None) -> None:
        return

    def advance(self, count: int) -> None:
        return

    def spend(self, nano_usd: int) -> None:
        return

    def finish(self) -> None:
        return


class Meter:
    """Count, rate and time left of one cell; calls answered by earlier sessions do not enter the rate.

    Parameters
    ----------
    most_nano_usd
        What the caps let the cell spend in all; None without caps.
    clock
        Seconds from any origin, never going back.
    """

    def __init__(
        self,
        name: str,
        *,
        total: int,
        done: int,
        most_nano_usd: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most_nano_usd
        self._name, self._total, self._resumed, self._clock = name, total, done, clock
        self._new = 0
        self._spent: int | None = None
        self._began = clock()

    @property
    def done(self) -> int:
        return self._resumed + self._new

    def advance(self, count: int) -> None:
        self._new += count

    def spend(self, nano_usd: int) -> None:
        self._spent = nano_usd

    def line(self) -> str:
        """Return the state in one line."""
        seconds = self._clock() - self._began
        parts = [f"{self._name}  {self.done}/{self._total} calls"]
        if self._new and seconds > 0:
            rate = self._new / seconds
            parts.append(f"{rate:.1f}/s")
            if self.done < self._total:
                parts.append(f"{duration((self._total - self.done) / rate)} left")
        if self._spent is not None:
            left = "" if self._most is None else f", at most {show_usd(max(0, self._most - self._spent))} left"
            parts.append(f"{show_usd(self._spent)} spent{left}")
        if self._resumed:
            parts.append(f"({self._resumed} from before)")
        return "  ".join(parts)


class LineProgress:
    """Writes a line at the start, about every `interval_s` seconds, and at the end."""

    def __init__(self, stream: TextIO, *, interval_s: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._interval_s, self._clock = stream, interval_s, clock
        self._lock = threading.Lock()
        self._meter: Meter | None = None
        self._next = 0.0

    def start(self, name: str, *, total: int, done: int, most_nano_usd: int | None = None) -> None:
        with self._lock:
            self._meter = Meter(name, total=total, done=done, most_nano_usd=most_nano_usd, clock=self._clock)
            self._write(self._meter)

    def advance(self, count: int) -> None:
        with self._lock:
            if self._meter is None:
                return
            self._meter.advance(count)
            if self._clock() >= self._next:
                self._write(self._meter)

    def spend(self, nano_usd: int) -> None:
        with self._lock:
            if self._meter is not None:
                self._meter.spend(nano_usd)

    def finish(self) -> None:
        with self._lock:
            if self._meter is not None:
                self._write(self._meter)
            self._meter = None

    def _write(self, meter: Meter) -> None:
        self._next = self._clock() + self._interval_s
        self._stream.write(meter.line() + "\n")
        self._stream.flush()


class BarProgress:
    """Draws a bar that is redrawn in place."""

    def __init__(self, stream: TextIO) -> None:
        self._bar = Bar(BarColumn(bar_width=24), TextColumn("{task.description}"), console=Console(file=stream))
        self._lock = threading.Lock()
        self._meter: Meter | None = None
        self._task = TaskID(0)

    def start(self, name: str, *, total: int, done: int, most_nano_usd: int | None = None) -> None:
        with self._lock:
            self._meter = Meter(name, total=total, done=done, most_nano_usd=most_nano_usd)
            self._task = self._bar.add_task(self._meter.line(), total=total, completed=done)
            self._bar.start()

    def advance(self, count: int) -> None:
        with self._lock:
            if self._meter is not None:
                self._meter.advance(count)
                self._bar.update(self._task, completed=self._meter.done, description=self._meter.line())

    def spend(self, nano_usd: int) -> None:
        with self._lock:
            if self._meter is not None:
                self._meter.spend(nano_usd)

    def finish(self) -> None:
        with self._lock:
            self._bar.stop()
            self._meter = None


def duration(seconds: float) -> str:
    """Write a time as a person would say it: ``7 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
