"""Orders: pure, all different, balanced where they promise it, and refused where there would be too many."""

from collections import Counter
from itertools import pairwise, permutations
from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.arrangements import arrange, count_arrangements
from counterbalance.errors import ConfigError


def ids(k: int) -> list[str]:
    return [f"o{number}" for number in range(1, k + 1)]


def orders(scheme, k, n=None, *, seed=7, item_id="geo-017", option_ids=None, limit=10_000):
    return arrange(scheme, n, seed=seed, item_id=item_id, option_ids=option_ids or ids(k), max_arrangements=limit)


def positions(found) -> Counter[tuple[str, int]]:
    return Counter((option, slot) for order in found for slot, option in enumerate(order))


def neighbours(found) -> Counter[tuple[str, str]]:
    return Counter(pair for order in found for pair in pairwise(order))


def test_exhaustive_is_every_order_once_from_the_sources_own() -> None:
    found = orders("exhaustive", 4)
    assert found[0] == ("o1", "o2", "o3", "o4")
    assert found[1] == ("o1", "o2", "o4", "o3")
    assert found[-1] == ("o4", "o3", "o2", "o1")
    assert found == sorted(permutations(ids(4)))


def test_lexicographic_means_by_place_and_not_by_name() -> None:
    found = orders("exhaustive", 3, option_ids=["o9", "o10", "o1"])
    assert found[0] == ("o9", "o10", "o1")
    assert found[1] == ("o9", "o1", "o10")


def test_cyclic_and_identity_reverse() -> None:
    assert orders("cyclic", 3) == [("o1", "o2", "o3"), ("o2", "o3", "o1"), ("o3", "o1", "o2")]
    assert orders("identity_reverse", 3) == [("o1", "o2", "o3"), ("o3", "o2", "o1")]


@pytest.mark.parametrize("k", range(2, 11))
def test_williams_squares_balance_positions_and_neighbours(k) -> None:
    found = orders("williams", k)
    times = 1 if k % 2 == 0 else 2
    assert len(found) == len(set(found)) == k * times
    assert positions(found) == {(option, slot): times for option in ids(k) for slot in range(k)}
    assert neighbours(found) == {(a, b): times for a in ids(k) for b in ids(k) if a != b}


@pytest.mark.parametrize("scheme", ["exhaustive", "cyclic"])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_every_option_stands_equally_often_in_every_slot(scheme, k) -> None:
    found = orders(scheme, k)
    assert set(positions(found).values()) == {len(found) // k}


@settings(max_examples=40, deadline=None)
@given(
    scheme=st.sampled_from(["williams", "sampled"]),
    k=st.integers(2, 8),
    seed=st.integers(0, 2**53 - 1),
    item_id=st.text(min_size=1, max_size=8, alphabet=st.characters(exclude_categories=["Cs"])),
    data=st.data(),
)
def test_drawn_orders_do_not_depend_on_the_order_of_the_ids(scheme, k, seed, item_id, data) -> None:
    n = min(factorial(k), 5) if scheme == "sampled" else None
    shuffled = data.draw(st.permutations(ids(k)))
    first = orders(scheme, k, n, seed=seed, item_id=item_id)
    assert first == orders(scheme, k, n, seed=seed, item_id=item_id, option_ids=list(shuffled))
    assert all(sorted(order) == sorted(ids(k)) for order in first)
    assert len(set(first)) == len(first)


@settings(max_examples=30, deadline=None)
@given(k=st.integers(2, 6), seed=st.integers(0, 1000), data=st.data())
def test_a_larger_sample_begins_with_the_smaller_one(k, seed, data) -> None:
    n = data.draw(st.integers(1, min(factorial(k), 60)))
    m = data.draw(st.integers(1, n))
    assert orders("sampled", k, n, seed=seed)[:m] == orders("sampled", k, m, seed=seed)


def test_sampling_all_orders_gives_all_orders() -> None:
    assert sorted(orders("sampled", 4, 24)) == sorted(permutations(ids(4)))


def test_sampled_orders_are_uniform_over_all_orders() -> None:
    # 2,400 single draws over 24 orders: chi-squared has 23 degrees of freedom, and 49.7 is its .999 quantile.
    counts = Counter(orders("sampled", 4, 1, item_id=f"item-{n}")[0] for n in range(2400))
    assert sum((counts[order] - 100) ** 2 / 100 for order in permutations(ids(4))) < 49.7


def test_williams_bases_differ_between_items_and_seeds() -> None:
    firsts = {orders("williams", 4, item_id=f"item-{n}")[0] for n in range(100)}
    assert len(firsts) > 20
    assert orders("williams", 4, seed=1) != orders("williams", 4, seed=2)


def test_a_golden_order_per_drawn_scheme_is_rederived_by_hand() -> None:
    """The published orders of a study must not move: the drawing is done again here, step by step."""
    import hashlib
    import json

    def digest(value: object) -> str:
        text = json.dumps(value, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    a, b, c, d = sorted(ids(4), key=lambda option: digest(["williams", 7, "geo-017", ids(4), option]))
    assert orders("williams", 4) == [(a, b, d, c), (b, c, a, d), (c, d, b, a), (d, a, c, b)]

    def number(step: int) -> int:
        return int("".join(digest(["sampled", 7, "geo-017", ids(4), step, part])[7:] for part in (0, 1)), 16)

    ranks = list(range(24))
    for step in range(3):
        other = step + number(step) % (24 - step)
        ranks[step], ranks[other] = ranks[other], ranks[step]
    every = sorted(permutations(ids(4)))
    assert orders("sampled", 4, 3) == [every[rank] for rank in ranks[:3]]


@pytest.mark.parametrize(
    ("scheme", "k", "n", "limit", "expected"),
    [
        ("exhaustive", 6, None, 120, r"'geo-017': the scheme `exhaustive` gives 6! = 720 orders of its 6 options, more "
         r"than `limits.max_arrangements` = 120; `williams` gives 6, `cyclic` gives 6, `identity_reverse` gives 2"),
        ("exhaustive", 26, None, 120, r"26! = 403291461126605635584000000 .*`williams` gives 26"),
        ("exhaustive", 5, None, 6, r"5! = 120 .*= 6; `cyclic` gives 5, `identity_reverse` gives 2"),
        ("williams", 7, None, 7, r"gives 14 orders .*`cyclic` gives 7"),
        ("sampled", 5, 100, 50, r"gives 100 orders .*`williams` gives 10"),
        ("cyclic", 4, None, 1, r"gives 4 orders .*`sampled` gives the `n` you choose"),
        ("sampled", 3, 7, 120, r"'geo-017': 7 different orders of 3 options .*only 3! = 6; lower `arrangement.n`"),
        ("sampled", 3, None, 120, r"`arrangement.n` is needed"),
        ("cyclic", 1, None, 120, r"'geo-017': 1 options"),
    ],
)  # fmt: skip
def test_what_cannot_be_arranged_names_item_numbers_and_a_way_out(scheme, k, n, limit, expected) -> None:
    with pytest.raises(ConfigError, match=expected):
        orders(scheme, k, n, limit=limit)


def test_the_same_option_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="all different"):
        orders("cyclic", 2, option_ids=["o1", "o1"])


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("scheme", ["exhaustive", "cyclic", "williams", "identity_reverse"])
def test_the_count_is_told_beforehand(scheme, k) -> None:
    assert count_arrangements(scheme, None, k) == len(orders(scheme, k))
