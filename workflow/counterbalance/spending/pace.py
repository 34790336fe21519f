"""The pace of an account: token buckets for requests and tokens a minute, and pauses that a server asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from counterbalance.config.vendors import Account
from counterbalance.vendors.base import TokenBounds

# A bucket holds what may be sent in this time, so that a run never opens with a minute's worth at once.
BURST_S = 2.0
# Waits are no shorter than this, or the caller would ask again for nothing.
_LEAST_WAIT_S = 0.005


@dataclass(frozen=True)
class Bucket:
    """How much fits and how fast it fills, in requests or tokens and seconds."""

    holds: float
    per_s: float

    @classmethod
    def of(cls, per_minute: int) -> Self:
        """Make a bucket that lets through at most `per_minute` in any minute, its first fill included."""
        holds = max(1.0, float(per_minute * BURST_S // 60))
        return cls(holds, (per_minute - holds + 1.0) / 60.0)

    def filled(self, level: float | None, seconds: float) -> float:
        """Return the level after some time; a bucket never used is full."""
        return self.holds if level is None else min(self.holds, level + self.per_s * seconds)

    def lets_through(self, level: float, amounts: Sequence[int]) -> tuple[int, float]:
        """Return how many amounts, in order, may go out now, and the seconds until the next one may.

        An amount larger than the bucket goes out when the bucket is full; what it took too much is paid back after.
        """
        for count, amount in enumerate(amounts):
            needed = min(amount, self.holds)
            if level < needed:
                return count, (needed - level) / self.per_s
            level -= amount
        return len(amounts), 0.0


@dataclass(frozen=True)
class Level:
    """An account's buckets and pause as last left; times in epoch seconds."""

    requests: float | None
    tokens: float | None
    filled_at: float
    paused_at: float = 0.0
    paused_until: float = 0.0

    def pause_left(self, now: float) -> float:
        """Return how long nothing may be sent; a pause set in the future means that the clock was put back."""
        return 0.0 if now < self.paused_at else max(0.0, self.paused_until - now)

    def paused(self, now: float, seconds: float) -> "Level":
        """Return the level with a pause from now on."""
        return replace(self, paused_at=now, paused_until=now + seconds)


@dataclass(frozen=True)
class Limits:
    """The buckets of an account; None where the study file sets no limit."""

    requests: Bucket | None
    tokens: Bucket | None

    @classmethod
    def of(cls, account: Account) -> Self:
        """Take the limits of an account. Batches are not sent call by call, so they have none."""
        if account.mode == "batch":
            return cls(None, None)
        rpm, tpm = account.requests_per_minute, account.tokens_per_minute
        return cls(None if rpm is None else Bucket.of(rpm), None if tpm is None else Bucket.of(tpm))

    @property
    def none(self) -> bool:
        return self.requests is None and self.tokens is None

    def fill(self, level: Level | None, now: float) -> Level:
        """Return the buckets as they are now."""
        level = level or Level(None, None, now)
        seconds = max(0.0, now - level.filled_at)
        requests = None if self.requests is None else self.requests.filled(level.requests, seconds)
        tokens = None if self.tokens is None else self.tokens.filled(level.tokens, seconds)
        return replace(level, requests=requests, tokens=tokens, filled_at=now)

    def take(self, level: Level, wanted: Sequence[TokenBounds]) -> tuple[int, Level, float | None]:
        """Take as many calls as the buckets allow now.

        Returns
        -------
        tuple
            Calls taken from the front of `wanted`, the level after them, and the seconds until the next one may
            follow; None if all were taken.
        """
        if self.none:
            return len(wanted), level, None
        amounts = [bounds.input_about + bounds.output_most for bounds in wanted]
        taken, wait = len(wanted), 0.0
        requests, tokens = level.requests, level.tokens
        if self.requests is not None and requests is not None:
            taken, wait = self.requests.lets_through(requests, [1] * taken)
        if self.tokens is not None and tokens is not None:
            count, longer = self.tokens.lets_through(tokens, amounts)
            # The bucket that lets fewer through is the one to wait for; at a tie, the slower one.
            taken, wait = min((taken, -wait), (count, -longer))
            wait = -wait
        requests = None if requests is None else requests - taken
        tokens = None if tokens is None else tokens - sum(amounts[:taken])
        after = replace(level, requests=requests, tokens=tokens)
        return taken, after, None if taken == len(wanted) else max(wait, _LEAST_WAIT_S)
