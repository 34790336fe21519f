"""What an answer of a server means: one reading of statuses, bodies and breakdowns for all vendors.

Nothing here raises; a verdict is returned, so that whoever asked can raise it where no frame of an SDK, which holds
the key, is part of the traceback.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from counterbalance.canonical import Json, utf8_text
from counterbalance.errors import CounterbalanceError, KeyRefusedError, OutOfFundsError, VendorError
from counterbalance.keys import redact
from counterbalance.vendors.base import CallRefusedError, Reply, TransportError, Trouble
from counterbalance.vendors.fields import as_list, as_text, dig
from counterbalance.vendors.waiting import google_delay, wait_hint

Verdict = Reply | TransportError | CounterbalanceError

_LONGEST_MESSAGE = 500
_KEPT_HEADERS = ("x-request-id", "request-id", "retry-after-ms", "retry-after", "date")
_READ_OF_A_BODY = 4000
_HOUR_S = 3600.0

_OUT_OF_FUNDS = {
    *("credit_balance_exhausted", "organization_spend_limit_exceeded", "project_spend_limit_exceeded"),
    *("organization_usage_limit_exceeded", "insufficient_quota", "billing_hard_limit_reached", "billing_not_active"),
    *("enforced_spend_limit_reached", "contract_spend_limit_reached", "billing_error", "billing_disabled"),
}
_KEY_REFUSED = {"api_key_invalid", "invalid_api_key", "organization_on_hold", "account_deactivated"}
_NO_MODEL = {"model_not_found", "not_found_error", "not_found"}
_BLOCKED = {"content_filter", "content_policy_violation", "invalid_prompt", "responsibleaipolicyviolation"}
_TOO_LONG = {
    *("context_length_exceeded", "string_above_max_length", "request_too_large", "exceed_context_size_error"),
}
_OVERLOADED = {"overloaded_error", "overloaded", "slow_down", "unavailable"}

# Several vendors have no code for these, only a sentence.
_SAYS_OUT_OF_FUNDS = re.compile(
    r"used all available credits|credit balance|(?:insufficient|not enough|out of) (?:credits?|balance|funds)"
    r"|credits? (?:are|is|have been|has been) (?:depleted|exhausted)|spend(?:ing)? limit"
    r"|reached your (?:specified )?(?:api )?usage limits?|have any credits|enable billing|spending cap",
    re.IGNORECASE,
)
_SAYS_WRONG_PLACE = re.compile(
    r"(?:location|country|region|territory) is not supported|not (?:available|supported) in your (?:country|region)",
    re.IGNORECASE,
)
_SAYS_DISABLED = re.compile(
    r"organization has been disabled|account (?:has been|is|was) (?:deactivated|disabled|suspended|blocked)", re.I
)
_SAYS_BLOCKED = re.compile(
    r"content filter|content management policy|content polic|flagged as potentially|content violates"
    r"|violat\w+ (?:\w+ )*usage (?:polic|guidelines)",
    re.IGNORECASE,
)
_SAYS_TOO_LONG = re.compile(
    r"maximum context length|context (?:limit|size|window)|prompt is too long|input is too long"
    r"|token count .{0,60}exceeds",
    re.IGNORECASE,
)
_TEXT_FIELDS = ("messages", "input", "prompt", "system", "questions", "contents")
_LIMIT_FIELDS = {"max_tokens", "max_completion_tokens"}
_ZERO_QUOTA = re.compile(r"\blimit: 0\b")


@dataclass(frozen=True)
class Received:
    """What a server answered: without keys, and with no header that names an organisation."""

    status: int
    headers: Mapping[str, str]
    text: str

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], body: bytes | str) -> Self:
        """Take in an answer.

        Raises
        ------
        UnicodeDecodeError
            If a successful answer is not UTF-8.
        """
        if isinstance(body, bytes):
            body = body.decode("utf-8", "strict" if _is_success(status) else "replace")
        kept = {name: redact.take_out(headers[name]) for name in _KEPT_HEADERS if name in headers}
        return cls(status, kept, redact.take_out(body))

    @property
    def succeeded(self) -> bool:
        """Whether the server says that it did what was asked, and so may charge it."""
        return _is_success(self.status)

    @property
    def request_id(self) -> str | None:
        """What the vendor calls this request."""
        return self.headers.get("x-request-id") or self.headers.get("request-id")


def _is_success(status: int) -> bool:
    return 200 <= status < 300


def open_body(vendor: str, received: Received, shape: frozenset[str]) -> dict[str, Json] | Verdict:
    """Return the JSON object of a success, or what it means that there is none.

    Parameters
    ----------
    vendor, received
        Who answered what.
    shape
        Fields of which an answer of this vendor has at least one.
    """
    try:
        body = json.loads(received.text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict) and (body.get("error") or body.get("object") == "error"):
        verdict = _judge_within(vendor, received, dig(body, "error", "code"))
        if isinstance(verdict, TransportError):
            verdict.maybe_billed = True
        return verdict
    if isinstance(body, dict) and not shape.isdisjoint(body):
        return body
    said = _cut(f"{vendor}: HTTP {received.status} without an answer in it: {_excerpt(received.text)}")
    return TransportError(said, kind="garbled", maybe_billed=True)


def _judge_within(vendor: str, received: Received, code: Json) -> Verdict:
    """Return what a failure means that came as a success: by the status in its text, or else by its words."""
    known = isinstance(code, int) and 400 <= code < 600
    verdict = judge(vendor, replace(received, status=code if known else 400))
    if known or isinstance(verdict, Reply | OutOfFundsError | KeyRefusedError):
        return verdict
    return judge(vendor, replace(received, status=500))


def judge(vendor: str, received: Received) -> Verdict:
    """Return what an answer other than a success means.

    Returns
    -------
    Reply
        If it is final for this call: a content filter, or a prompt that is too long.
    TransportError
        If the call may be sent again.
    OutOfFundsError, KeyRefusedError
        If the account cannot be used any more.
    CallRefusedError
        If the vendor finds fault with the call.
    VendorError
        If no call of this kind can succeed.
    """
    fault = _Fault.of(received)
    status, said = received.status, fault.describe(vendor)
    if fault.is_out_of_funds(vendor):
        return OutOfFundsError(said)
    if fault.is_about_the_key:
        return KeyRefusedError(said)
    if status in (400, 403, 422) and fault.says(_BLOCKED, _SAYS_BLOCKED):
        return Reply("blocked", reason=said, finish_reason=fault.code, request_id=received.request_id)
    if status == 413 or (status in (400, 422) and fault.is_too_long):
        return _turned_away(f"the prompt is too long: {said}", fault, received)
    if status in (401, 403) and not fault.words & _NO_MODEL:
        return KeyRefusedError(said)
    kind = _trouble(status, fault.words)
    if kind is not None:
        return TransportError(said, kind=kind, wait_s=wait_hint(received.headers, fault.details))
    advice = _advise(said, status, fault)
    if status in (400, 422) and not fault.words & _NO_MODEL and fault.may_be_about_the_text:
        return CallRefusedError(advice, _turned_away(f"the vendor refused this call: {said}", fault, received))
    return VendorError(advice)


def _turned_away(why: str, fault: "_Fault", received: Received) -> Reply:
    # Nothing is charged for what no model has seen.
    return Reply(
        "unavailable",
        reason=_cut(why),
        finish_reason=fault.code,
        request_id=received.request_id,
        input_tokens=0,
        output_tokens=0,
    )


def _trouble(status: int, words: frozenset[str]) -> Trouble | None:
    if status == 429:
        return "rate_limit"
    if status in (503, 529) or (status >= 500 and words & _OVERLOADED):
        return "overload"
    return "server" if status in (408, 409, 425) or status >= 500 else None


def _advise(said: str, status: int, fault: "_Fault") -> str:
    if _SAYS_WRONG_PLACE.search(fault.message):
        what = "the vendor does not serve the place that this machine's address belongs to; ask from another"
    elif status == 404 or fault.words & _NO_MODEL:
        what = "correct the model's `model` or `base_url` in the study"
    elif 300 <= status < 400:
        what = "redirects are not followed: write the final address as the model's `base_url`"
    else:
        what = (
            "every call of this kind would fail: change the read or the model's settings, or list a parameter that "
            "the model refuses under its `does_not_accept`"
        )
    return f"{_cut(said, _LONGEST_MESSAGE - len(what) - 2)}; {what}"


def explain_breakdown(vendor: str, error: BaseException) -> TransportError | VendorError:
    """Return what it means that an SDK raised something other than an HTTP status.

    The SDKs wrap the exceptions of their HTTP libraries, and one of them calls a dropped connection a time-out; so the
    whole chain of causes is looked at.
    """
    chain = list(_causes(error))
    names = {base.__name__ for entry in chain for base in type(entry).__mro__}
    said = _cut(f"{vendor}: {', '.join(type(entry).__name__ for entry in chain)}: {str(chain[-1]) or 'no text'}")
    # Python's own word for a host with an empty or too long part is a bare UnicodeError.
    if names & _BAD_ADDRESS or any(type(entry) is UnicodeError for entry in chain):
        return VendorError(f"{said}; write the server's address as the model's `base_url`, as in https://host/v1")
    for wanted, kind, billed in _BREAKDOWNS:
        if names & wanted:
            return TransportError(said, kind=kind, maybe_billed=billed)
    return VendorError(f"{said}; this was not expected: please report it")


_BAD_ADDRESS = {"InvalidURL", "InvalidUrlClientError", "NonHttpUrlClientError", "UnsupportedProtocol"}

# Names, because each SDK brings its own HTTP library. The first line that fits any exception of the chain decides, so
# what is surely not billed comes first, and a class comes before the wider one that another library made of it.
_BREAKDOWNS: list[tuple[set[str], Trouble, bool]] = [
    ({"ConnectionRefusedError", "ClientConnectorError", "ClientProxyConnectionError", "gaierror"}, "connection", False),
    ({"PoolTimeout", "ConnectionTimeoutError"}, "timeout", False),
    ({"SocketTimeoutError", "ServerTimeoutError", "ReadTimeout", "WriteTimeout"}, "timeout", True),
    ({"ServerDisconnectedError", "ClientPayloadError", "ClientOSError", "ConnectionError"}, "connection", True),
    ({"ReadError", "WriteError", "RemoteProtocolError", "ClientConnectionError"}, "connection", True),
    ({"ConnectError", "ProxyError", "ClientHttpProxyError"}, "connection", False),
    ({"ConnectTimeout"}, "timeout", False),
    ({"JSONDecodeError", "RecursionError", "UnicodeDecodeError", "UnicodeEncodeError"}, "garbled", True),
    ({"DecodingError", "ContentTypeError"}, "garbled", True),
    ({"ClientResponseError", "UnknownApiResponseError"}, "garbled", True),
    ({"TimeoutError", "TimeoutException", "APITimeoutError"}, "timeout", True),
    ({"OSError", "APIConnectionError", "TransportError", "ClientError"}, "connection", True),
]


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


@dataclass(frozen=True)
class _Fault:
    """An error body, taken apart; total over any text."""

    status: int
    message: str
    code: str | None
    param: str | None
    words: frozenset[str]
    details: list[Json]

    @classmethod
    def of(cls, received: Received) -> Self:
        try:
            body = json.loads(received.text)
        except (ValueError, RecursionError):
            body = None
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
        inner = dig(body, "error") if isinstance(dig(body, "error"), dict) else body
        details = as_list(dig(inner, "details"))
        named = [dig(inner, "code"), dig(inner, "type"), dig(inner, "status"), dig(inner, "details", "error_code")]
        named += [dig(inner, "innererror", "code"), dig(body, "code"), *(dig(entry, "reason") for entry in details)]
        words = [word for word in named if isinstance(word, str) and word]
        message = as_text(dig(inner, "message")) or as_text(dig(body, "error")) or as_text(dig(body, "detail"))
        return cls(
            received.status,
            _excerpt(message or received.text),
            redact(words[0]) if words else None,
            as_text(dig(inner, "param")),
            frozenset(word.lower() for word in words),
            details,
        )

    def describe(self, vendor: str) -> str:
        code = f" {self.code}" if self.code else ""
        param = f" (parameter {redact(self.param)})" if self.param else ""
        return _cut(f"{vendor}: HTTP {self.status}{code}{param}: {self.message}")

    def says(self, codes: set[str], sentence: re.Pattern[str]) -> bool:
        return bool(self.words & codes) or sentence.search(self.message) is not None

    def is_out_of_funds(self, vendor: str) -> bool:
        if self.status == 402:
            return True
        if self.status not in (400, 403, 429):
            return False
        if self.says(_OUT_OF_FUNDS, _SAYS_OUT_OF_FUNDS):
            return True
        return vendor == "google" and self.status == 429 and self._has_no_quota_left()

    def _has_no_quota_left(self) -> bool:
        broken = [entry for detail in self.details for entry in as_list(dig(detail, "violations"))]
        used_up = any("perday" in str(dig(entry, "quotaId")).lower() for entry in broken)
        none_given = any(str(dig(entry, "quotaValue")) == "0" for entry in broken)
        delay = google_delay(self.details)
        far = delay is not None and delay >= _HOUR_S
        return used_up or none_given or far or _ZERO_QUOTA.search(self.message) is not None

    @property
    def is_about_the_key(self) -> bool:
        return self.status in (400, 401, 403) and self.says(_KEY_REFUSED, _SAYS_DISABLED)

    @property
    def may_be_about_the_text(self) -> bool:
        return self.param is None or self.param.startswith(_TEXT_FIELDS)

    @property
    def is_too_long(self) -> bool:
        return self.param not in _LIMIT_FIELDS and self.says(_TOO_LONG, _SAYS_TOO_LONG)


def _excerpt(text: str) -> str:
    # Redacted before it is cut, so that no half of a key is left.
    plain = redact(text[:_READ_OF_A_BODY])
    if plain.lstrip().startswith("<"):
        plain = re.sub(r"<[^<>]{0,500}>", " ", plain)
    return " ".join(plain.split()) or "an empty body"


def _cut(text: str, most: int = _LONGEST_MESSAGE) -> str:
    # What a server says goes into ledgers and logs, which hold UTF-8 only.
    text = " ".join(redact(utf8_text(text)).split())
    return text if len(text) <= most else text[: most - 3] + "..."
