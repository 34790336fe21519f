"""Names of batches and of the calls in them, sizes of batches, and what can become of them."""

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self

from counterbalance.errors import CounterbalanceError, InputError, VendorError
from counterbalance.vendors.base import Reply, TransportError

# The vendors take 50,000 requests and 200 MB (OpenAI), 100,000 and 256 MB (Anthropic), 2 GB (Google). Smaller batches
# keep memory low, lose less when one is turned down, and cost the same.
MOST_REQUESTS = 25_000
MOST_BYTES = 64_000_000

# How far the clocks here and at a vendor may be apart: a local time taken for UTC, and then some.
_SKEW = timedelta(hours=26)

_RUN_ID = re.compile(r"cb-(\d{8}T\d{6}Z)-(\d+)-([0-9a-f]{12})")


class BatchGoneError(VendorError):
    """The vendor no longer has a batch, or no longer has its results."""


class HopelessError(TransportError):
    """What became of one call of a batch: no reply, and no other call like it can succeed either.

    Parameters
    ----------
    stop
        What to raise once the other results are saved.
    """

    def __init__(self, stop: CounterbalanceError) -> None:
        super().__init__(str(stop))
        self.stop = stop


class Line(NamedTuple):
    """One line of a batch's results.

    Attributes
    ----------
    custom_id
        None if the line has none.
    outcome
        What became of the call; of kind `garbled` if that cannot be read.
    place
        Where the line stands, in words.
    raw
        The line as it came, without keys.
    """

    custom_id: str | None
    outcome: Reply | TransportError
    place: str
    raw: str


@dataclass(frozen=True)
class RunId:
    """Our name of a batch, which is stored with it at the vendor.

    Attributes
    ----------
    began
        When it was made (UTC, whole seconds).
    calls
        How many calls the batch has.
    tag
        Twelve hexadecimal digits, drawn at random; they end every custom id of the batch, so that a vendor that stores
        no name with a batch can still tell whose it is by its results.
    """

    began: datetime
    calls: int
    tag: str

    @classmethod
    def new(cls, calls: int) -> Self:
        """Make a name that nobody has used."""
        return cls(datetime.now(UTC).replace(microsecond=0), calls, secrets.token_hex(6))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name back.

        Raises
        ------
        InputError
            If it is not one of ours.
        """
        found = _RUN_ID.fullmatch(text)
        if found is None:
            raise InputError(f"{text!r} is not the name of a batch, expected cb-<time>-<calls>-<12 hexadecimal digits>")
        began, calls, tag = found.groups()
        return cls(datetime.strptime(began, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC), int(calls), tag)

    @property
    def oldest(self) -> float:
        """Epoch seconds before which no vendor can have made this batch; 0 if the clock was put back meanwhile."""
        return 0.0 if self.began > datetime.now(UTC) else (self.began - _SKEW).timestamp()

    def __str__(self) -> str:
        return f"cb-{self.began:%Y%m%dT%H%M%SZ}-{self.calls}-{self.tag}"

    def custom_id(self, call_sha256: str) -> str:
        """Return the name of a call in this batch: 64 characters, 51 of the call's hash and the tag."""
        return f"{call_sha256.removeprefix('sha256:')[:51]}-{self.tag}"
