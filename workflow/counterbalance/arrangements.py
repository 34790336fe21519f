"""Orders of an item's options: a pure function of scheme, seed, item id and option ids.

No order depends on another item, so deleting a row of the data moves nothing else. What each scheme balances is told in
``docs/arrangements.md``.
"""

from collections.abc import Sequence
from itertools import permutations
from math import factorial
from typing import Literal

from counterbalance.canonical import Json, sha256_json
from counterbalance.errors import ConfigError

Scheme = Literal["exhaustive", "cyclic", "williams", "sampled", "identity_reverse"]
Order = tuple[str, ...]


def arrange(
    scheme: Scheme, n: int | None, *, seed: int, item_id: str, option_ids: Sequence[str], max_arrangements: int
) -> list[Order]:
    """Return the orders in which an item's options are shown.

    Parameters
    ----------
    scheme
        `exhaustive`: all k! orders, lexicographic by place in `option_ids`, so that the first is the source's own and
        neighbours share prefixes. `cyclic`: the k rotations of the source's order. `williams`: k orders for even k,
        2k for odd k, balanced for positions and for neighbours. `sampled`: `n` different orders, uniform over all k!.
        `identity_reverse`: the source's order and its reverse.
    n
        Number of orders for `sampled`, else None.
    seed, item_id
        With the set of option ids, what the drawn schemes (`williams`, `sampled`) depend on.
    option_ids
        Ids in the source's order, all different.
    max_arrangements
        More orders than this are refused.

    Returns
    -------
    list of tuple of str
        All different; option ids in slot order. For `sampled`, the first m of n orders are those of `n=m`.

    Raises
    ------
    ConfigError
        If the item has fewer than two options, if there are not `n` different orders, or if there would be too many;
        the message names the item, the numbers and a cheaper scheme.

    Notes
    -----
    Source: Williams, E. J. (1949), Australian Journal of Scientific Research A 2, 149-168, for the balanced squares.
    """
    k = len(option_ids)
    if k < 2 or len(set(option_ids)) != k:
        raise ConfigError(f"item {item_id!r}: {k} options {list(option_ids)!r}; expected at least 2, all different")
    count = count_arrangements(scheme, n, k)
    if scheme == "sampled" and count > factorial(k):
        raise ConfigError(
            f"item {item_id!r}: {count} different orders of {k} options are asked for, but there are only {k}! = "
            f"{factorial(k)}; lower `arrangement.n`, or use the scheme `exhaustive`"
        )
    if count > max_arrangements:
        raise ConfigError(_too_many(scheme, count, k, item_id, max_arrangements))
    match scheme:
        case "exhaustive":
            return list(permutations(option_ids))
        case "cyclic":
            return [tuple(option_ids[start:]) + tuple(option_ids[:start]) for start in range(k)]
        case "williams":
            return _williams(_shuffled(option_ids, ["williams", seed, item_id]))
        case "sampled":
            return _sampled(option_ids, count, ["sampled", seed, item_id, sorted(option_ids)])
        case "identity_reverse":
            return [tuple(option_ids), tuple(reversed(option_ids))]


def count_arrangements(scheme: Scheme, n: int | None, k: int) -> int:
    """Return how many orders a scheme gives for k options."""
    match scheme:
        case "exhaustive":
            return factorial(k)
        case "cyclic":
            return k
        case "williams":
            return k if k % 2 == 0 else 2 * k
        case "sampled":
            if n is None:
                raise ConfigError("`arrangement.n` is needed when the scheme is `sampled`")
            return n
        case "identity_reverse":
            return 2


def _too_many(scheme: Scheme, count: int, k: int, item_id: str, limit: int) -> str:
    written = f"{k}! = {count}" if scheme == "exhaustive" else f"{count}"
    cheaper = [
        f"`{name}` gives {count_arrangements(name, None, k)}"
        for name in ("williams", "cyclic", "identity_reverse")
        if count_arrangements(name, None, k) <= limit
    ]
    return (
        f"item {item_id!r}: the scheme `{scheme}` gives {written} orders of its {k} options, more than "
        f"`limits.max_arrangements` = {limit}; {', '.join(cheaper) or '`sampled` gives the `n` you choose'}; "
        "choose one of these, or raise the limit"
    )


def _shuffled(option_ids: Sequence[str], key: list[Json]) -> list[str]:
    """Return the ids in an order drawn by hash, whatever order they came in."""
    return sorted(option_ids, key=lambda option: sha256_json([*key, sorted(option_ids), option]))


def _williams(base: Sequence[str]) -> list[Order]:
    k = len(base)
    # 0, 1, k-1, 2, k-2, ...: neighbouring steps differ by every amount once (even k), or once each way (odd k).
    zigzag = [0, *((step + 1) // 2 if step % 2 else k - step // 2 for step in range(1, k))]
    square = [tuple(base[(place + row) % k] for place in zigzag) for row in range(k)]
    return square if k % 2 == 0 else square + [order[::-1] for order in square]


def _sampled(option_ids: Sequence[str], n: int, key: list[Json]) -> list[Order]:
    """Draw n of the k! orders without replacement: a Fisher-Yates shuffle of their ranks, of which n steps are done."""
    ids, total = sorted(option_ids), factorial(len(option_ids))
    moved: dict[int, int] = {}
    orders = []
    for step in range(n):
        chosen = step + _draw([*key, step], total - step)
        rank, moved[chosen] = moved.get(chosen, chosen), moved.get(step, step)
        orders.append(_unrank(rank, ids))
    return orders


def _draw(key: list[Json], below: int) -> int:
    """Return a whole number under `below` from a hash; 512 bits leave no bias that could be seen."""
    digest = sha256_json([*key, 0]) + sha256_json([*key, 1]).removeprefix("sha256:")
    return int(digest.removeprefix("sha256:"), 16) % below


def _unrank(rank: int, ids: Sequence[str]) -> Order:
    """Return the order of a lexicographic rank (its digits in the factorial number system)."""
    left, order = list(ids), []
    for size in range(len(left), 0, -1):
        digit, rank = divmod(rank, factorial(size - 1))
        order.append(left.pop(digit))
    return tuple(order)
