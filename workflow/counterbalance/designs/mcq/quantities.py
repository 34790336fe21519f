"""What the mcq design's estimates are called, and what each means."""

from counterbalance.config import Experiment, Study
from counterbalance.errors import InputError

CONFIRMATORY = ("relabelling.accuracy", "relabelling.picks")

ANSWER = (
    ("accuracy", "accuracy", "estimate"),
    ("V", "V.corrected", "interval"),
    ("p (Holm)", "relabelling.accuracy", "p_adjusted"),
    ("verdict", "verdict", "label"),
    ("shape", "shape.label", "label"),
)

_MEANINGS = {
    "accuracy": "Share of scored answers that are right, over all orders.",
    "accuracy.slot": "Share of right answers when the correct option stands in this slot.",
    "picks.slot": "Share of answers that choose this slot, whatever stands there.",
    "picks_when_wrong.slot": "Share of wrong answers that choose this slot.",
    "chi2.published": "Pearson's chi-squared of slot against right or wrong, every call counted as independent.",
    "V.published": "Cramér's V of the same table, with the run-level interval of the published method.",
    "V.published.question": "The same V, with an interval that resamples items and keeps their calls together.",
    "V.bergsma": "Cramér's V with Bergsma's correction for its upward bias, with the run-level interval.",
    "V.bergsma.question": "The same corrected V, with an interval that resamples items.",
    "V.corrected": "Cramér's V freed of the part that chance and single items make, interval over items.",
    "rho.published": "Spearman's rank correlation of slot number and accuracy, with the run-level interval.",
    "rho.published.question": "The same correlation, with an interval that resamples items.",
    "mechanism.v0_1": "Label of the published classifier, version 0.1.",
    "mechanism.v0_2": "Label of the published classifier, version 0.2.",
    "relabelling.accuracy": "Test of equal accuracy in all slots: slots are relabelled within each item.",
    "relabelling.picks": "Test of equal choice of all slots: slots are relabelled within each item.",
    "recentred.accuracy": "Sensitivity check of the accuracy test: bootstrap over items, recentred to the null.",
    "shape.linear": "Linear trend of accuracy over slots, first to last.",
    "shape.first": "Accuracy in the first slot against the others.",
    "shape.last": "Accuracy in the last slot against the others.",
    "shape.middle": "Accuracy in the slots between first and last against these two.",
    "shape.support": "The shape that fits best, and in what share of resamples of items it does.",
    "shape.label": "The shape that explains the profile, or `undetermined` where two cannot be told apart.",
    "label_logprob.slot": "Mean log-probability of the option in this slot, in nats.",
    "slot_bonus.slot": "What standing in this slot adds to an option's log-probability, in nats per item.",
    "label_prior.slot": "Probability of this slot's label with the content taken out, mean of the items' own.",
    "label_mass": "Mean total probability of all labels: how much of the reply's first token was an answer at all.",
    "unstable_items": "Items whose accuracy differs between slots; only they can show an effect on accuracy.",
    "consistency": "Share of items answered with the same option in every order.",
    "flip_rate": "Share of items whose chosen option changes with the order.",
    "usual_share": "Share of an item's answers that choose its most frequent option, mean over items.",
    "disagreement.same_order": "Probability that two calls of an item in the same order choose different options.",
    "disagreement.other_order": "Probability that two calls of an item in different orders choose different options.",
    "disagreement.excess": "How much more often the model disagrees with itself when the order changes.",
    "detectable_V": "Smallest V that this cell could have shown with the planned power.",
    "band": "Capability band by accuracy; a description, not a gate.",
    "models_returned": "How many model ids the replies name; given only where they name more than one.",
    "verdict": "Whether the cell shows position bias, shows none, or could not have shown it.",
    "status": "Share of calls with this outcome.",
    "status.slot": "Share of calls with this outcome when the correct option stands in this slot.",
}


_READS = {
    "label_logprob.slot": ("logprob", "decide", "option_text"),
    "slot_bonus.slot": ("logprob", "decide", "option_text"),
    "label_prior.slot": ("logprob", "decide", "option_text"),
    "label_mass": ("logprob", "decide"),
}
"""Kinds of read that give what is not in every cell."""


def describe(quantity: str) -> str:
    """Return what a quantity means, in one plain sentence.

    Raises
    ------
    InputError
        If the design has no such quantity.
    """
    base, _, model = quantity.partition("@model=")
    name, _, size = base.partition("@k=")
    family = _family(name)
    if family not in _MEANINGS or (base != name and not size.isdigit()) or (quantity != base and not model):
        raise InputError(
            f"mcq has no quantity {quantity!r}; there are {', '.join(sorted(_MEANINGS))}, each also with @k=NUMBER for "
            "items with another number of options and @model=ID for the part that one model answered"
        )
    parts = [_MEANINGS[family]]
    if size:
        parts.append(f"Only items with {size} options.")
    if model:
        parts.append(f"Only calls that {model} answered.")
    return " ".join(parts)


def unplanned(study: Study, experiment: Experiment, quantity: str) -> str | None:
    """Say why an experiment will have no such quantity: log-probabilities that its read does not ask for."""
    reads = _READS.get(_family(quantity.partition("@")[0]))
    if reads is None or experiment.read.kind in reads:
        return None
    return f"the read {experiment.read.kind!r} gives none; {', '.join(reads)} do"


def _family(name: str) -> str:
    stem, _, slot = name.rpartition("_")
    by_slot = stem.endswith(".slot") and slot.isdigit()
    if name.startswith("status."):
        return "status.slot" if by_slot else "status"
    return stem if by_slot else name
