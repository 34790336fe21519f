import pytest

from counterbalance.config.vendors import Account
from counterbalance.spending.pace import BURST_S, Bucket, Level, Limits
from counterbalance.vendors.base import TokenBounds

CALL = TokenBounds(input_about=90, input_most=200, output_most=10)


def limits(**settings: object) -> Limits:
    return Limits.of(Account(id="purse", key_env=None, **settings))


def send(
    pace: Limits, seconds: float, *, call: TokenBounds = CALL, step: float = 0.01, at_once: int = 50
) -> list[float]:
    """Ask for calls all the time; return when each went out."""
    level, sent, now = None, [], 0.0
    while now < seconds:
        granted, level, _ = pace.take(pace.fill(level, now), [call] * at_once)
        sent += [now] * granted
        now += step
    return sent


def busiest_minute(times: list[float]) -> int:
    return max(sum(start <= time < start + 60.0 for time in times) for start in set(times))


@pytest.mark.parametrize("per_minute", [1, 3, 60, 600])
def test_no_minute_has_more_requests_than_the_limit_and_little_is_wasted(per_minute) -> None:
    sent = send(limits(requests_per_minute=per_minute), 180.0, step=0.05)
    assert busiest_minute(sent) <= per_minute
    assert len(sent) >= 0.95 * per_minute * 3 - 1


def test_a_run_opens_with_a_few_seconds_worth_not_a_minutes() -> None:
    sent = send(limits(requests_per_minute=600), 1.0)
    assert len([time for time in sent if time == 0.0]) == 600 * BURST_S / 60
    assert len(sent) <= 600 * (BURST_S + 1) / 60


def test_tokens_are_counted_as_estimated_input_and_the_whole_output() -> None:
    sent = send(limits(tokens_per_minute=6_000), 120.0)
    # 100 tokens a call: 60 a minute.
    assert 2 * 55 <= len(sent) <= 2 * 60
    assert busiest_minute(sent) <= 60


def test_both_limits_hold_together() -> None:
    sent = send(limits(requests_per_minute=600, tokens_per_minute=3_000), 60.0)
    assert 25 <= len(sent) <= 30


def test_a_call_larger_than_the_bucket_goes_out_when_the_bucket_is_full_and_is_paid_back() -> None:
    big = TokenBounds(input_about=1_000, input_most=1_000, output_most=0)
    sent = send(limits(tokens_per_minute=600), 300.0, call=big, step=0.1)
    assert 3 <= len(sent) <= 4


def test_the_wait_is_how_long_the_next_call_really_takes() -> None:
    pace = limits(requests_per_minute=60)
    granted, level, wait = pace.take(pace.fill(None, 0.0), [CALL] * 5)
    assert granted == 2
    assert wait == pytest.approx(60 / 59)
    assert pace.take(pace.fill(level, wait + 1e-9), [CALL])[0] == 1
    assert pace.take(pace.fill(level, wait - 0.1), [CALL])[0] == 0


def test_without_limits_and_in_batches_all_calls_go() -> None:
    for pace in (limits(), limits(mode="batch", requests_per_minute=1, tokens_per_minute=1)):
        assert pace.none
        assert pace.take(pace.fill(None, 0.0), [CALL] * 1000)[0] == 1000


def test_a_clock_that_was_put_back_neither_fills_a_bucket_nor_lengthens_a_pause() -> None:
    bucket = Bucket.of(60)
    pace = Limits(bucket, None)
    level = pace.fill(Level(0.0, None, filled_at=1000.0, paused_at=1000.0, paused_until=1030.0), 400.0)
    assert level.requests == 0.0
    assert level.pause_left(400.0) == 0.0
    assert level.pause_left(1010.0) == 20.0


def test_a_limit_set_later_starts_with_a_full_bucket() -> None:
    pace = limits(requests_per_minute=60)
    assert pace.fill(Level(None, None, 0.0), 5.0).requests == pytest.approx(2.0)
