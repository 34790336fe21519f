"""How fast one lane sends: how many calls at once, how long after trouble, and when a call is given up for now."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from counterbalance.config.vendors import Account

# A dead key or an empty account is to cost this many calls at most before anybody knows.
_FIRST = 4
_LANE_PAUSE_S = 0.1


@dataclass(frozen=True)
class RetryPolicy:
    """How often one session sends a call, and how long it waits (seconds) before it does so again.

    The wait is drawn between nothing and a limit that doubles with each further try, so that calls which failed
    together do not come back together. What the server asked for is waited for in any case, before that.

    Attributes
    ----------
    tries
        Most sendings of one call.
    pause_s, longest_pause_s
        Limit of the wait before the second sending, and of any wait.
    timeout_s
        Longest one sending may take in all; None for vendors in this process.
    deadline_s
        No call is sent again later than this after its first sending; None for no limit.
    timeouts
        A call is not sent again after this many time-outs: each may have been paid for.
    """

    tries: int = 3
    pause_s: float = 0.5
    longest_pause_s: float = 30.0
    timeout_s: float | None = None
    deadline_s: float | None = None
    timeouts: int = 3

    @classmethod
    def of(cls, account: Account) -> Self:
        """Take what the study file says of an account."""
        # A sending that was cut short may have been paid for, so a deadline cuts none but those it is too short for.
        timeout_s = min(account.timeout_s, account.deadline_s)
        return cls(tries=account.tries, timeout_s=timeout_s, deadline_s=account.deadline_s)

    def allows(self, tries: int, timeouts: int, age_s: float) -> bool:
        """Tell whether a call may be sent again after so many tries, `age_s` seconds after its first sending."""
        in_time = self.deadline_s is None or age_s <= self.deadline_s
        return tries < self.tries and timeouts < self.timeouts and in_time

    def pause(self, tries: int) -> float:
        """Return the wait after that many tries, beyond what the server asked for."""
        return random.uniform(0.0, min(self.pause_s * 2.0 ** (tries - 1), self.longest_pause_s))


class Lane:
    """How many calls may be under way: grows while all goes well, is halved by rate limits and overload.

    It starts with a few, doubles with each window of replies until the first trouble, and from then on gains one a
    window. A window is what was under way at one moment; however much trouble it brings, it halves the lane once.

    Parameters
    ----------
    most
        Never more than this at once.
    retry
        Gives the longest pause.
    clock
        Seconds from any origin, never going back.
    """

    def __init__(self, most: int, retry: RetryPolicy, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._retry, self._clock = most, retry, clock
        self._limit = min(_FIRST, most)
        self._doubling = True
        self._gained = 0
        self._next = 0
        self._window = 0
        self._level = 0
        self._opens = clock()

    @property
    def limit(self) -> int:
        """Calls that may be under way now."""
        return self._limit

    def opens_in(self) -> float:
        """Return in how many seconds anything may be sent; 0 if now."""
        return max(0.0, self._opens - self._clock())

    def launch(self) -> int:
        """Number a sending."""
        self._next += 1
        return self._next - 1

    def succeeded(self, number: int) -> None:
        """Take in that a sending brought a reply."""
        if number >= self._window:
            self._level = 0
        self._gained += self._limit if self._doubling else 1
        if self._gained >= self._limit and self._limit < self._most:
            self._limit += 1
            self._gained = 0

    def troubled(self, number: int, wait_s: float | None) -> float | None:
        """Take in that a sending met a rate limit or overload.

        Parameters
        ----------
        number
            The sending.
        wait_s
            What the server asked to wait (seconds).

        Returns
        -------
        float or None
            For how long (seconds) nothing is sent now; None if no longer than was known before.
        """
        first = number >= self._window
        if first:
            self._limit = max(1, self._limit // 2)
            self._doubling, self._gained = False, 0
            self._window = self._next
            self._level += 1
        elif wait_s is None:
            return None
        longest = min(_LANE_PAUSE_S * 2.0 ** (self._level - 1), self._retry.longest_pause_s)
        pause = (wait_s or 0.0) + random.uniform(0.0, longest)
        # The jitter of a second hint in one window is no news.
        if not first and (wait_s or 0.0) <= self.opens_in():
            return None
        opens = self._clock() + pause
        if opens <= self._opens:
            return None
        self._opens = opens
        return pause
