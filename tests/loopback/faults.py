"""Scripted faults: which request gets which.

A rule is ``{"fault": {"kind": ...}}`` with any of these conditions, all of which must hold:

``vendor``, ``model``
    Only requests of this vendor, or for this model.
``text``
    Only prompts that contain this text.
``at``
    Ordinals (from 0) of the requests of this vendor.
``sending``
    Ordinals (from 1) of the sendings of one and the same body: ``[1]`` fails each request once.
``share``, ``seed``
    This share of requests, drawn by seed and ordinal; ``faults`` in place of ``fault`` draws one of a list.
``times``
    At most so many requests in all.

Kinds that are refused before any work, and not billed: ``rate_limit`` (``hint``: seconds, date, ms, google, garbage or
none; ``wait_s``), ``overload``, ``server`` (``status``), ``reset``, ``html_error`` (``status``), ``unauthorized``,
``forbidden``, ``no_model``, ``bad_parameter`` (``parameter``), ``unsupported``, ``too_long``, ``filter``,
``out_of_funds``, ``no_credit``.

Kinds in which the work was done and billed but the client gets nothing it can use: ``reset_after``, ``timeout``
(``sleep_s``), ``html_200``, ``empty_200``, ``cut_body``, ``broken_json``.

Kinds that bend a delivered and billed reply: ``refusal``, ``filtered``, ``prompt_block``, ``no_text``, ``empty_text``,
``no_choices``, ``unknown_finish``, ``null_logprobs``, ``labels_absent``, ``no_usage``, ``other_model`` (``model``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from .respondent import Ask
from .settings import Json, draw

REFUSED = {
    *("rate_limit", "overload", "server", "unauthorized", "forbidden", "no_model", "bad_parameter", "unsupported"),
    *("too_long", "filter", "out_of_funds", "no_credit"),
}
UNBILLED = REFUSED | {"reset", "html_error"}
UNDELIVERED = {"reset_after", "timeout", "html_200", "empty_200", "cut_body", "broken_json"}
BENT = {
    *("refusal", "filtered", "prompt_block", "no_text", "empty_text", "no_choices", "unknown_finish"),
    *("null_logprobs", "labels_absent", "no_usage", "other_model"),
}
NONE: Mapping[str, Json] = {"kind": None}


class Script:
    """Applies the rules in their order; the first that fits wins."""

    def __init__(self, rules: Sequence[Mapping[str, Json]]) -> None:
        self._rules = list(rules)
        self._used: Counter[int] = Counter()
        for rule in self._rules:
            for fault in rule.get("faults") or [rule["fault"]]:
                if fault["kind"] not in UNBILLED | UNDELIVERED | BENT:
                    raise ValueError(f"no such fault: {fault['kind']!r}")

    def pick(self, ask: Ask, ordinal: int, sending: int) -> Mapping[str, Json]:
        """Return the fault of a request."""
        for index, rule in enumerate(self._rules):
            if self._fits(index, rule, ask, ordinal, sending):
                self._used[index] += 1
                choices = rule.get("faults") or [rule["fault"]]
                chosen: Mapping[str, Json] = choices[int(draw(rule.get("seed", 0), "kind", ordinal) * len(choices))]
                return chosen
        return NONE

    def _fits(self, index: int, rule: Mapping[str, Json], ask: Ask, ordinal: int, sending: int) -> bool:
        return (
            rule.get("vendor", ask.vendor) == ask.vendor
            and rule.get("model", ask.model) == ask.model
            and rule.get("text", "") in ask.text
            and ordinal in rule.get("at", (ordinal,))
            and sending in rule.get("sending", (sending,))
            and ("times" not in rule or self._used[index] < rule["times"])
            and ("share" not in rule or draw(rule.get("seed", 0), "share", ask.vendor, ordinal) < rule["share"])
        )
