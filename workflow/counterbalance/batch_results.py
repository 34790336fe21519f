"""What a batch brought: lines matched with the calls that were handed in, and what is wrong with the others."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from counterbalance.errors import CounterbalanceError, InputError
from counterbalance.exchange import reply_text
from counterbalance.vendors.base import CallRefusedError, Reply, TransportError
from counterbalance.vendors.batch_ids import HopelessError, Line

# Lines that a message names; more of them, and of what stands in them, is in the ledger.
_NAMED = 5
_EXCERPT = 80
# What the ledger keeps with the batch, in characters.
_KEPT = 1_000_000
_CUSTOM_ID = re.compile(r"[0-9a-f]{51}-[0-9a-f]{12}")


@dataclass
class Results:
    """What a batch brought, by call.

    Attributes
    ----------
    found
        What became of the calls that came back once.
    broken
        Lines that could not be read, in words, with where they stand.
    raw
        Those of them that hold the custom id of one call, by call.
    spare
        All lines that belong to no call, as they came: unreadable ones, unknown custom ids, and ids that came twice.
    doubled, unknown
        Custom ids that came more than once, and those that were not handed in, with the places of their lines.
    """

    found: dict[str, Reply | TransportError] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    raw: dict[str, str] = field(default_factory=dict)
    spare: list[str] = field(default_factory=list)
    doubled: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    @property
    def stop(self) -> CounterbalanceError | None:
        """Why no further call of this kind can succeed, if the vendor said so of some."""
        return next((found.stop for found in self.found.values() if isinstance(found, HopelessError)), None)

    @property
    def refused(self) -> dict[str, CallRefusedError]:
        """Calls that the vendor turned down as malformed."""
        stops = {key: found.stop for key, found in self.found.items() if isinstance(found, HopelessError)}
        return {key: stop for key, stop in stops.items() if isinstance(stop, CallRefusedError)}

    @property
    def answers(self) -> int:
        """How many of the calls the model has answered."""
        return sum(isinstance(found, Reply) and found.status != "unavailable" for found in self.found.values())

    @property
    def complaint(self) -> str | None:
        """What is wrong with the ids; None if nothing is."""
        said = []
        for ids, what in ((self.doubled, "came more than once"), (self.unknown, "were never handed in")):
            if ids:
                named = ", ".join(f"{name} at {place}" for name, place in sorted(ids.items())[:_NAMED])
                said.append(f"{len(ids)} custom ids {what} ({named})")
        return "; ".join(said) or None

    @property
    def unreadable(self) -> str | None:
        """What is wrong with lines that could not be read; None if nothing is."""
        if not self.broken:
            return None
        count = "1 line" if len(self.broken) == 1 else f"{len(self.broken)} lines"
        return f"{count} of its results cannot be read ({_some(self.broken)})"

    def looks_whole(self, calls: int) -> bool:
        """Tell whether this can be all of a batch of so many calls, and not a cut file or another page in its place."""
        unnamed = len(self.broken) - len(self.raw)
        ours = bool(self.found or self.doubled or not self.broken)
        return ours and (not self.broken or len(self.found) + len(self.doubled) + unnamed >= calls)

    @property
    def account_of_lines(self) -> str | None:
        """What the ledger keeps of what is wrong, with all lines that belong to no call; None if nothing is."""
        said = "; ".join(filter(None, [self.complaint, self.unreadable]))
        text = "\n".join(filter(None, [said, *self.spare]))
        cut = f"\n({len(text) - _KEPT} more characters were left out)" if len(text) > _KEPT else ""
        return text[:_KEPT] + cut or None


async def match_results(results: AsyncIterator[Line], ids: Mapping[str, str]) -> Results:
    """Match results with the calls that were handed in, in whatever order they come.

    Parameters
    ----------
    results
        Lines, in any order.
    ids
        Call hash of each custom id that was handed in.

    Raises
    ------
    TransportError, CounterbalanceError
        If the results could not be read to their end; nothing of them counts then.
    """
    matched = Results()
    first: dict[str, str] = {}
    async for line in results:
        outcome = line.outcome
        broken = isinstance(outcome, TransportError) and outcome.kind == "garbled"
        custom_id = line.custom_id or _id_within(line.raw, ids)
        if broken:
            matched.broken.append(f"{line.place}: {outcome}: {line.raw[:_EXCERPT]!r}")
        key = ids.get(custom_id or "")
        if custom_id is None or key is None:
            matched.spare.append(f"{line.place}: {line.raw}")
            if not broken:
                matched.unknown[custom_id or ""] = line.place
        elif key in first:
            before = matched.found.pop(key, None)
            if before is not None:
                matched.spare.append(f"{first[key]}: {matched.raw.pop(key, None) or _written(before)}")
            matched.spare.append(f"{line.place}: {line.raw}")
            matched.doubled[custom_id] = f"{matched.doubled.get(custom_id, first[key])} and {line.place}"
        else:
            first[key], matched.found[key] = line.place, outcome
            if isinstance(outcome, TransportError) and broken:
                matched.raw[key] = line.raw
                matched.found[key] = TransportError(f"{line.place}: {outcome}", kind="garbled", maybe_billed=True)
    return matched


def _id_within(raw: str, ids: Mapping[str, str]) -> str | None:
    """Return the one custom id of the batch that stands in a line which is no JSON."""
    named = {name for name in _CUSTOM_ID.findall(raw) if name in ids}
    return named.pop() if len(named) == 1 else None


def _written(outcome: Reply | TransportError) -> str:
    try:
        return reply_text(outcome) if isinstance(outcome, Reply) else str(outcome)
    except InputError as error:
        return str(error)


def _some(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more
