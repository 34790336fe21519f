"""From tokens to money, exactly: US dollars per million tokens become whole nano-USD a call, rounded up."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Self

from counterbalance.config.vendors import Prices
from counterbalance.errors import InputError
from counterbalance.vendors.base import Reply, TokenBounds

NANO_USD = 1_000_000_000
_MILLION = 1_000_000


@dataclass(frozen=True)
class Tariff:
    """Prices as whole numbers of one small unit, so that no cost depends on how a float was rounded.

    Attributes
    ----------
    input, cached, output
        Price of one token, in units.
    units
        Units in one nano-USD.
    """

    input: int
    cached: int
    output: int
    units: int

    @classmethod
    def of(cls, prices: Prices, *, batch: bool) -> Self:
        """Take prices from the study file, with the discount if the calls go in batches."""
        share = 1 - _exact(prices.batch_discount) if batch else Fraction(1)
        cached = prices.input if prices.cached_input is None else prices.cached_input
        rates = [share * _exact(usd) * NANO_USD / _MILLION for usd in (prices.input, cached, prices.output)]
        units = lcm(*(rate.denominator for rate in rates))
        whole = [int(rate * units) for rate in rates]
        return cls(whole[0], whole[1], whole[2], units)

    def cost(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> int:
        """Return the nano-USD of a call, rounded up.

        Parameters
        ----------
        input_tokens
            All input, cached input included.
        cached_tokens
            The part of it that was cached.
        output_tokens
            All output, reasoning included.
        """
        fresh = input_tokens - cached_tokens
        return -(-(fresh * self.input + cached_tokens * self.cached + output_tokens * self.output) // self.units)

    def worst(self, bounds: TokenBounds) -> int:
        """Return the most that one sending of a call can cost, in nano-USD."""
        dearer = max(self.input, self.cached)
        return -(-(bounds.input_most * dearer + bounds.output_most * self.output) // self.units)

    def about(self, bounds: TokenBounds, *, output_tokens: int) -> int:
        """Return what a call may be expected to cost, in nano-USD, nothing of it cached."""
        return self.cost(bounds.input_about, 0, output_tokens)

    def charge(self, reply: Reply, bounds: TokenBounds) -> int:
        """Return what a reply cost, in nano-USD: by its usage if that is there and possible, else the worst case."""
        counted = usage(reply)
        return self.worst(bounds) if counted is None else self.cost(*counted)


def usage(reply: Reply) -> tuple[int, int, int] | None:
    """Return a reply's input, cached and output tokens; None if one is missing or they contradict each other."""
    cached = reply.cached_tokens or 0
    if reply.input_tokens is None or reply.output_tokens is None:
        return None
    if reply.text and not (reply.input_tokens and (reply.output_tokens or reply.top_tokens)):
        # Some servers write zeros where they did not count: no text came without a prompt, and none of no tokens.
        return None
    possible = 0 <= cached <= reply.input_tokens and reply.output_tokens >= (reply.reasoning_tokens or 0) >= 0
    return (reply.input_tokens, cached, reply.output_tokens) if possible else None


def nano_usd(usd: float) -> int:
    """Turn an amount of the study file into nano-USD; a cap is rounded down.

    Raises
    ------
    InputError
        If the amount is not a finite number from 0.
    """
    amount = Decimal(repr(usd))
    if not amount.is_finite() or amount < 0:
        raise InputError(f"{usd!r} is no amount of money; expected a number of US dollars from 0")
    return int(amount * NANO_USD)


def show_usd(amount: int) -> str:
    """Write nano-USD as dollars: cents where that is exact enough, else as many digits as the amount needs."""
    if amount % 10_000_000 == 0 or amount >= 100 * NANO_USD:
        return f"${Decimal(amount) / NANO_USD:,.2f}"
    digits = f"{Decimal(amount) / NANO_USD:.9f}".rstrip("0")
    return f"${digits}"


def _exact(number: float) -> Fraction:
    # The shortest decimal that reads as this float is what stands in the study file.
    return Fraction(repr(number))
