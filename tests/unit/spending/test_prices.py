from decimal import ROUND_CEILING, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.config.models import Money
from counterbalance.config.vendors import Prices
from counterbalance.errors import InputError
from counterbalance.spending.prices import Tariff, nano_usd, show_usd, usage
from counterbalance.vendors.base import Reply, TokenBounds

BOUNDS = TokenBounds(input_about=80, input_most=100, output_most=16)


def tariff(*, batch: bool = False, **prices: float) -> Tariff:
    return Tariff.of(Prices(**prices), batch=batch)


def test_a_price_of_one_dollar_a_million_is_a_thousand_nano_dollars_a_token() -> None:
    assert tariff(input=1.0, output=4.0).cost(100, 0, 10) == 100 * 1_000 + 10 * 4_000


def test_a_call_is_rounded_up_once_not_token_by_token() -> None:
    # 0.1 nano-USD a token: 11 tokens are 1.1, so 2; by token it would be 11.
    assert tariff(input=0.0001, output=0.0).cost(11, 0, 0) == 2
    assert tariff(input=0.0001, output=0.0).cost(10, 0, 0) == 1
    assert tariff(input=0.0001, output=0.0).cost(0, 0, 0) == 0


def test_cached_input_has_its_own_price_or_that_of_other_input() -> None:
    assert tariff(input=2.0, cached_input=0.5, output=0.0).cost(100, 40, 0) == 60 * 2_000 + 40 * 500
    assert tariff(input=2.0, output=0.0).cost(100, 40, 0) == 100 * 2_000
    assert tariff(input=2.0, cached_input=0.0, output=0.0).cost(100, 100, 0) == 0


def test_the_discount_is_for_batches_only() -> None:
    prices = {"input": 1.0, "output": 4.0, "batch_discount": 0.5}
    assert tariff(**prices).cost(100, 0, 10) == 140_000
    assert tariff(batch=True, **prices).cost(100, 0, 10) == 70_000
    # 30% off 1 nano-USD a token (0.001 USD a million): 0.7 a token.
    assert tariff(batch=True, input=0.001, output=0.0, batch_discount=0.3).cost(10, 0, 0) == 7


def test_the_worst_case_is_all_input_at_the_dearer_price_and_the_whole_output() -> None:
    assert tariff(input=1.0, output=4.0).worst(BOUNDS) == 100 * 1_000 + 16 * 4_000
    assert tariff(input=1.0, cached_input=3.0, output=4.0).worst(BOUNDS) == 100 * 3_000 + 16 * 4_000


@settings(max_examples=50, deadline=None)
@given(
    price=st.decimals(min_value=0, max_value=200, places=6),
    discount=st.decimals(min_value=0, max_value=Decimal("0.99"), places=2),
    tokens=st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)),
)
def test_costs_are_exact_to_the_last_nano_dollar(price, discount, tokens) -> None:
    prices = Prices(input=float(price), output=float(price) * 2, batch_discount=float(discount))
    rates = [Decimal(repr(value)) * 1000 * (1 - discount) for value in (prices.input, prices.output)]
    exact = tokens[0] * rates[0] + tokens[1] * rates[1]
    expected = int(exact.to_integral_value(rounding=ROUND_CEILING))
    assert Tariff.of(prices, batch=True).cost(tokens[0], 0, tokens[1]) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"input_tokens": 10, "output_tokens": 2}, (10, 0, 2)),
        ({"input_tokens": 10, "cached_tokens": 4, "output_tokens": 2, "reasoning_tokens": 2}, (10, 4, 2)),
        ({"input_tokens": 0, "output_tokens": 0}, (0, 0, 0)),
        # Zeros of a server that does not count: the prompt of a text was not empty.
        ({"text": "B", "input_tokens": 0, "output_tokens": 0}, None),
        ({"text": "B", "input_tokens": 5, "output_tokens": 0}, None),
        ({}, None),
        ({"input_tokens": 10}, None),
        ({"output_tokens": 10}, None),
        ({"input_tokens": 10, "cached_tokens": 11, "output_tokens": 2}, None),
        ({"input_tokens": 10, "cached_tokens": -1, "output_tokens": 2}, None),
        ({"input_tokens": -1, "output_tokens": 2}, None),
        ({"input_tokens": 10, "output_tokens": 2, "reasoning_tokens": 3}, None),
        ({"input_tokens": 10, "output_tokens": -2}, None),
    ],
)
def test_usage_that_is_missing_or_impossible_is_charged_at_the_worst_case(counts, expected) -> None:
    reply, prices = Reply("ok", **counts), tariff(input=1.0, cached_input=0.5, output=4.0)
    assert usage(reply) == expected
    assert prices.charge(reply, BOUNDS) == (prices.worst(BOUNDS) if expected is None else prices.cost(*expected))


def test_usage_above_the_bounds_is_charged_as_it_is() -> None:
    reply = Reply("ok", input_tokens=1000, output_tokens=50)
    assert tariff(input=1.0, output=4.0).charge(reply, BOUNDS) == 1000 * 1_000 + 50 * 4_000


def test_a_cap_is_never_rounded_up() -> None:
    assert nano_usd(0.1) == 100_000_000
    assert nano_usd(1e-10) == 0
    assert nano_usd(20.0) == 20_000_000_000


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), -1.0])
def test_what_is_no_amount_of_money_is_refused(amount) -> None:
    with pytest.raises(InputError, match="no amount of money"):
        nano_usd(amount)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (100_000_000, "$0.10"),
        (0, "$0.00"),
        (123_456_789, "$0.123456789"),
        (1_500, "$0.0000015"),
        (20 * 10**9, "$20.00"),
    ],
)
def test_amounts_are_shown_in_full(amount, shown) -> None:
    assert show_usd(amount) == shown


def test_no_price_is_built_in() -> None:
    assert Money().prices == {}
