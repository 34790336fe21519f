"""What is said beside sound numbers: which of them it is about, and why, in a sentence each."""

from counterbalance.contrasts.names import contrast_id
from counterbalance.report.mcq.parts import is_part
from counterbalance.report.numbers import CellNumbers, Number
from counterbalance.report.text import listing, plural
from counterbalance.stats.estimate import few_items

_NAMES = {
    "accuracy": "accuracy",
    "accuracy.slot": "accuracy by slot",
    "picks.slot": "picks by slot",
    "picks_when_wrong.slot": "picks when wrong",
    "label_logprob.slot": "log-probability by slot",
    "slot_bonus.slot": "slot bonus",
    "label_prior.slot": "prior of the label",
    "label_mass": "probability of all labels together",
    "V.corrected": "V",
    "V.published": "V (published)",
    "V.published.question": "V by item (published)",
    "V.bergsma": "V (Bergsma)",
    "V.bergsma.question": "V by item (Bergsma)",
    "rho.published": "ρ (published)",
    "rho.published.question": "ρ by item (published)",
    "chi2.published": "χ² (published)",
    "relabelling.accuracy": "the test of accuracy by slot",
    "relabelling.picks": "the test of picks by slot",
    "recentred.accuracy": "the recentred test of accuracy",
    "shape.linear": "contrasts of the shape",
    "shape.first": "contrasts of the shape",
    "shape.last": "contrasts of the shape",
    "shape.middle": "contrasts of the shape",
    "consistency": "same option in every order",
    "flip_rate": "items whose option changes",
    "usual_share": "share of an item’s usual option",
    "unstable_items": "items whose accuracy differs by slot",
    "detectable_V": "smallest V it would have shown, tested alone",
    "detectable_V.family": "smallest V it would have shown",
    "relabelling.unanswered": "the test of calls without an answer by slot",
    "disagreement.same_order": "disagreement in the same order",
    "disagreement.other_order": "disagreement in another order",
    "disagreement.excess": "the difference of the two disagreements",
}


def caveats(numbers: CellNumbers) -> list[str]:
    """Return a sentence for each caveat of a cell's sound numbers; the reason of a label stands beside the label."""
    about: dict[str, list[str]] = {}
    few: dict[int, list[str]] = {}
    for name, number in numbers.items():
        if is_part(name) or number.reason is None or number.status != "ok" or number.label is not None:
            continue
        if number.reason == few_items(number.n_items):
            few.setdefault(number.n_items, []).append(_name(name, number))
        else:
            about.setdefault(number.reason, []).append(_name(name, number))
    narrow = [
        f"Intervals of {_listed(names)} tend to be too narrow, for they rest on only {plural(n, 'item')}."
        for n, names in few.items()
    ]
    return narrow + [f"{_started(_listed(names))}: {reason}." for reason, names in about.items()]


def _listed(names: list[str]) -> str:
    return listing(list(dict.fromkeys(names)))


def _name(quantity: str, number: Number) -> str:
    name, _, size = quantity.partition("@k=")
    stem, by_slot, _ = name.partition(".slot_")
    if planned := contrast_id(name):
        said = f"planned contrast {planned}"
    else:
        said = _NAMES.get(f"{stem}.slot" if by_slot else name.partition("@")[0], name)
    return f"{said} (items with {size} options)" if size else said


def _started(text: str) -> str:
    """Begin with a capital, Greek letters left as they are."""
    return f"{text[:1].upper()}{text[1:]}" if text[:1].isascii() else text
