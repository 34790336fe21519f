"""Names of batches and of the calls in them, sizes of batches, and what can become of them."""

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from counterbalance.errors import CounterbalanceError, InputError, VendorError
from counterbalance.vendors.base import TransportError

# The vendors take 50,000 requests and 200 MB (OpenAI), 100,000 and 256 MB (Anthropic), 2 GB (Google). Smaller batches
# keep memory low, lose less when one is turned down, and cost the same.
MOST_REQUESTS = 25_000
MOST_BYTES = 64_000_000

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

    def __str__(self) -> str:
        return f"cb-{self.began:%Y%m%dT%H%M%SZ}-{self.calls}-{self.tag}"

    def custom_id(self, call_sha256: str) -> str:
        """Return the name of a call in this batch: 64 characters, 51 of the call's hash and the tag."""
        return f"{call_sha256.removeprefix('sha256:')[:51]}-{self.tag}"
