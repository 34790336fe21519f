"""What the mcq design's estimates are called, and what each means."""

from counterbalance.errors import InputError

CONFIRMATORY = ("relabelling.accuracy", "relabelling.picks")

_MEANINGS = {
    "accuracy": "Share of scored answers that are right, over all orders.",
    "accuracy.slot": "Share of right answers when the correct option stands in this slot.",
    "picks.slot": "Share of answers that choose this slot, whatever stands there.",
    "picks_when_wrong.slot": "Share of wrong answers that choose this slot.",
    "chi2.published": "Pearson's chi-squared of slot against right or wrong, every call counted as independent.",
    "V.published": "Cramér's V of the same table, with the run-level interval of the published method.",
    "V.bergsma": "Cramér's V with Bergsma's correction for its upward bias.",
    "V.corrected": "Cramér's V freed of the part that chance and single items make, interval over items.",
    "rho.published": "Spearman's rank correlation of slot number and accuracy.",
    "mechanism.v0_1": "Label of the published classifier, version 0.1.",
    "mechanism.v0_2": "Label of the published classifier, version 0.2.",
    "relabelling.accuracy": "Test of equal accuracy in all slots: slots are relabelled within each item.",
    "relabelling.picks": "Test of equal choice of all slots: slots are relabelled within each item.",
    "recentred.accuracy": "Sensitivity check of the accuracy test: bootstrap over items, recentred to the null.",
    "shape.linear": "Linear trend of accuracy over slots, first to last.",
    "shape.first": "Accuracy in the first slot against the others.",
    "shape.last": "Accuracy in the last slot against the others.",
    "shape.label": "The shape that explains the profile, or `undetermined` where two cannot be told apart.",
    "label_logprob.slot": "Mean log-probability of the option in this slot, in nats.",
    "slot_bonus.slot": "What standing in this slot adds to an option's log-probability, in nats per item.",
    "unstable_items": "Items whose accuracy differs between slots; fewer than 4 can never give p < .05.",
    "consistency": "Share of items answered with the same option in every order.",
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


def describe(quantity: str) -> str:
    """Return what a quantity means, in one plain sentence.

    Raises
    ------
    InputError
        If the design has no such quantity.
    """
    base, _, model = quantity.partition("@model=")
    name, _, size = base.partition("@k=")
    family = name
    if ".slot_" in name:
        family = name.rpartition("_")[0]
    if name.startswith("status."):
        family = "status.slot" if ".slot_" in name else "status"
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
