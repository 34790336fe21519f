import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.config.models import Account
from counterbalance.pacing import Lane, RetryPolicy


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def window(lane: Lane) -> list[int]:
    """Send as much as the lane takes."""
    return [lane.launch() for _ in range(lane.limit)]


def test_it_starts_with_a_few_and_doubles_up_to_the_most(clock: Clock) -> None:
    lane = Lane(100, RetryPolicy(), clock=clock)
    widths = []
    for _ in range(7):
        widths.append(lane.limit)
        for number in window(lane):
            lane.succeeded(number)
    assert widths == [4, 8, 16, 32, 64, 100, 100]


def test_a_narrow_vendor_is_never_asked_more_at_once(clock: Clock) -> None:
    lane = Lane(2, RetryPolicy(), clock=clock)
    for _ in range(20):
        for number in window(lane):
            lane.succeeded(number)
    assert lane.limit == 2


def test_trouble_halves_once_a_window_and_one_is_gained_a_window(clock: Clock) -> None:
    lane = Lane(64, RetryPolicy(), clock=clock)
    for _ in range(3):
        for number in window(lane):
            lane.succeeded(number)
    assert lane.limit == 32
    for number in window(lane):
        lane.troubled(number, None)
    assert lane.limit == 16
    for number in window(lane):
        lane.troubled(number, None)
    assert lane.limit == 8
    for expected in (9, 10, 11):
        for number in window(lane):
            lane.succeeded(number)
        assert lane.limit == expected


def test_one_call_is_always_allowed(clock: Clock) -> None:
    lane = Lane(4, RetryPolicy(), clock=clock)
    for _ in range(5):
        lane.troubled(lane.launch(), None)
    assert lane.limit == 1


def test_a_hint_is_a_floor_and_only_a_longer_one_changes_it(clock: Clock) -> None:
    lane = Lane(8, RetryPolicy(), clock=clock)
    first, second, third = [lane.launch() for _ in range(3)]
    pause = lane.troubled(first, 20.0)
    assert pause is not None
    assert 20.0 <= pause <= 20.1
    assert lane.opens_in() == pytest.approx(pause)
    assert lane.troubled(second, 5.0) is None
    clock.now += 1
    assert lane.opens_in() == pytest.approx(pause - 1)
    longer = lane.troubled(third, 30.0)
    assert longer is not None
    assert lane.opens_in() == pytest.approx(longer)
    assert longer >= 30.0
    clock.now += 31
    assert lane.opens_in() == 0.0


def test_without_a_hint_pauses_grow_until_a_reply_comes(clock: Clock) -> None:
    def longest(lane: Lane) -> float:
        number = lane.launch()
        pause = lane.troubled(number, None)
        clock.now += 1000
        return pause or 0.0

    most = 0.0
    for _ in range(200):
        lane = Lane(8, RetryPolicy(longest_pause_s=3.0), clock=clock)
        pauses = [longest(lane) for _ in range(8)]
        for level, pause in enumerate(pauses):
            assert pause <= min(0.1 * 2**level, 3.0)
        most = max(most, *pauses)
        lane.succeeded(lane.launch())
        assert longest(lane) <= 0.1
    assert most > 2.0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=200), st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_whatever_happens_the_lane_stays_between_one_and_the_most(steps: list[tuple[bool, bool]], most: int) -> None:
    lane = Lane(most, RetryPolicy(), clock=Clock())
    for good, send in steps:
        number = lane.launch() if send else 0
        if good:
            lane.succeeded(number)
        else:
            lane.troubled(number, None)
        assert 1 <= lane.limit <= most


def test_waits_are_drawn_from_nothing_to_a_limit_that_doubles() -> None:
    policy = RetryPolicy(pause_s=1.0, longest_pause_s=6.0)
    for tries, limit in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 6.0), (9, 6.0)):
        pauses = [policy.pause(tries) for _ in range(300)]
        assert 0.0 <= min(pauses) < 0.1 * limit
        assert 0.9 * limit < max(pauses) <= limit


def test_an_account_says_how_often_and_how_long() -> None:
    account = Account(id="a", key_env=None, tries=5, timeout_s=60.0, deadline_s=200.0)
    policy = RetryPolicy.of(account)
    assert (policy.tries, policy.timeout_s, policy.deadline_s) == (5, 60.0, 200.0)
    hurried = RetryPolicy.of(account.model_copy(update={"deadline_s": 20.0}))
    assert (hurried.timeout_s, hurried.deadline_s) == (20.0, 20.0)


def test_a_call_is_given_up_after_its_tries_its_time_outs_or_its_time() -> None:
    policy = RetryPolicy(tries=6, timeouts=3, deadline_s=100.0)
    assert policy.allows(5, 2, 100.0)
    assert not policy.allows(6, 0, 0.0)
    assert not policy.allows(3, 3, 0.0)
    assert not policy.allows(1, 0, 100.1)
    assert RetryPolicy(tries=6).allows(5, 0, 1e9)
