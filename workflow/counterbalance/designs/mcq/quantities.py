"""What the mcq design's estimates are called, and what each means."""

from collections.abc import Iterator, Mapping, Sequence

from counterbalance.config import Cell, Experiment, Study
from counterbalance.contrasts.names import FORMS, contrast_id, describe_contrast, place_of, unplanned_contrast
from counterbalance.contrasts.words import did_you_mean, with_hint
from counterbalance.designs.mcq.counts import STATUSES
from counterbalance.designs.mcq.planned import MOST_SLOTS, absent_slots, slot_number, slot_plan
from counterbalance.errors import InputError

CONFIRMATORY = ("relabelling.accuracy", "relabelling.picks")

AGREEMENT = ("agreement", "agreement.every_order", "agreement.kappa")
"""Of two experiments that read one model; the other one's id follows the name after `WITH`."""
WITH = "@with="

ANSWER = (
    ("accuracy", "accuracy", "estimate"),
    ("V", "V.corrected", "interval"),
    ("p accuracy (Holm)", "relabelling.accuracy", "p_adjusted"),
    ("p picks (Holm)", "relabelling.picks", "p_adjusted"),
    ("smallest V seen", "detectable_V.family", "estimate"),
    ("verdict", "verdict", "label"),
    ("shape", "shape.label", "label"),
)
CONTRASTS = "slot_contrasts"
"""Which setting of the analysis holds the design's planned contrasts."""

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
    "agreement": "Share of prompts for which the likeliest label is the letter that the model generates.",
    "agreement.every_order": "Share of items for which likeliest label and generated letter agree in every order.",
    "agreement.kappa": "Cohen's kappa of likeliest label and generated letter: agreement beyond that of chance.",
    "groups": "How many groups the items form that share a source; given only where some do.",
    "unstable_items": "Items whose accuracy differs between slots; only they can show an effect on accuracy.",
    "consistency": "Share of items answered with the same option in every order.",
    "flip_rate": "Share of items whose chosen option changes with the order.",
    "usual_share": "Share of an item's answers that choose its most frequent option, mean over items.",
    "disagreement.same_order": "Probability that two calls of an item in the same order choose different options.",
    "disagreement.other_order": "Probability that two calls of an item in different orders choose different options.",
    "disagreement.excess": "How much more often the model disagrees with itself when the order changes.",
    "relabelling.unanswered": "Test of equal shares of calls without a usable answer, by slot of the correct option.",
    "detectable_V": "Smallest V that this cell could have shown with the planned power, were it tested alone.",
    "detectable_V.family": "The same after the correction for the family of tests, at the level of the verdict.",
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
    whole, _, size = base.partition("@k=")
    name, _, other = whole.partition(WITH)
    family = _family(name)
    wrong = (base != whole and not size.isdigit()) or (quantity != base and not model)
    paired, planned = family in AGREEMENT, describe_contrast(name)
    if (family not in _MEANINGS and planned is None) or wrong or paired != bool(other) or (paired and model):
        hint = did_you_mean(name, [] if name in _names(2) else _names(MOST_SLOTS))
        raise InputError(
            f"mcq has no quantity {quantity!r}{hint}; there are {', '.join(_names(1, with_forms=True))}, and so for "
            "slot_2 and further slots and for the other outcomes of calls; each also with @k=NUMBER for items with "
            f"another number of options and, agreement left out, @model=ID for the part that one model answered; "
            f"{WITH}EXPERIMENT names the experiment that generates letters; and {FORMS}"
        )
    parts = [planned or _MEANINGS[family]]
    if other:
        parts.append(f"The letters are those of experiment {other}.")
    if size:
        parts.append(f"Only items with {size} options.")
    if model:
        parts.append(f"Only calls that {model} answered.")
    return " ".join(parts)


def _names(slots: int, *, with_forms: bool = False) -> list[str]:
    """Return the quantities of a cell with so many slots; of the outcomes of calls, `ok` alone."""
    found = []
    for family in sorted(_MEANINGS):
        name = family.replace("status", "status.ok", 1) if family.startswith("status") else family
        if with_forms and family in AGREEMENT:
            name += f"{WITH}EXPERIMENT"
        by_slot = name.endswith(".slot")
        found += [f"{name}_{slot}" for slot in range(1, slots + 1)] if by_slot else [name]
    return found


def unplanned(study: Study, experiment: Experiment, quantity: str) -> str | None:
    """Say why an experiment will have no such quantity: its read does not give it, or there is nothing to compare."""
    name, _, other = _without_part(quantity).partition(WITH)
    if name in AGREEMENT:
        known = [entry.id for entry in _generating(study, experiment)]
        listed = ", ".join(known) or "none"
        return None if other in known else f"no experiment {other!r} to compare this one with; there are {listed}"
    if contrast := contrast_id(name):
        return _unplanned_contrast(study, experiment, contrast)
    reads = _READS.get(_family(name))
    if reads is None or experiment.read.kind in reads:
        return None
    return f"the read {experiment.read.kind!r} gives no {name}; {' and '.join(reads)} do"


def _unplanned_contrast(study: Study, experiment: Experiment, name: str) -> str | None:
    file = study.config.analysis.slot_contrasts
    reason = unplanned_contrast(name, file, "slot_contrasts")
    if file is None or reason is not None:
        return reason
    plan = slot_plan(file, place_of(study, "slot_contrasts"))
    (planned,) = [entry for entry in plan.contrasts if entry.id == name]
    absent = [condition for condition in planned.conditions if experiment.read.kind not in _reads_of(condition)]
    if not absent:
        return None
    return f"it needs {', '.join(absent)}, and the read {experiment.read.kind!r} gives none"


def _reads_of(quantity: str) -> tuple[str, ...]:
    return _READS.get(f"{quantity}.slot", ("generate", "logprob", "decide", "option_text"))


def partners(study: Study, cell: Cell) -> list[Cell]:
    """Return the cells whose generated letters are compared with a cell's likeliest labels."""
    model, dataset = cell.model.id, cell.dataset.id
    return [
        study.cell(other.id, model, dataset)
        for other in _generating(study, cell.experiment)
        if model in other.models and dataset in other.datasets
    ]


def _generating(study: Study, experiment: Experiment) -> list[Experiment]:
    """Return the experiments with generated letters that share models and data sets with one of label probabilities."""
    if experiment.read.kind not in _READS["label_mass"]:
        return []
    return [
        other
        for other in study.config.experiments
        if other.design == experiment.design
        and other.read.kind == "generate"
        and set(other.models) & set(experiment.models)
        and set(other.datasets) & set(experiment.datasets)
    ]


def tests(sizes: Sequence[int]) -> list[str]:
    """Return the confirmatory quantities of a cell on items with these numbers of options, most frequent first."""
    marks = ["", *(f"@k={size}" for size in sizes[1:])]
    return [f"{name}{mark}" for mark in marks for name in CONFIRMATORY]


def unit(experiment: Experiment) -> str:
    """Return the unit of an experiment's planned contrasts."""
    return "in shares" + ("" if experiment.read.kind == "generate" else ", or in nats for log-probabilities")


def absent(study: Study, sizes: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Say which planned contrasts name a slot that no item has; see `absent_slots`."""
    return absent_slots(study, sizes)


def beyond(quantity: str, sizes: Sequence[int]) -> str | None:
    """Say why no cell on items with these numbers of options has a quantity: their number, its slot, its outcome."""
    whole, _, size = quantity.partition("@model=")[0].partition("@k=")
    name = whole.partition(WITH)[0]
    if not sizes:
        return None
    options = " or ".join(map(str, sizes))
    if size and int(size) not in sizes:
        return f"no item has {size} options; the items have {options}"
    slot, most = slot_number(name.rpartition(".")[2]), int(size or max(sizes))
    if slot > most:
        return f"no item has a slot_{slot}; the items have {options} options, so there are slot_1 to slot_{most}"
    outcome = name.split(".")[1] if name.startswith("status.") else "ok"
    known = with_hint(outcome, STATUSES)
    return None if outcome in STATUSES else f"no call has the outcome {outcome!r}; there are {known}"


def _without_part(quantity: str) -> str:
    """Return a quantity without the model or the number of options that it is restricted to."""
    return quantity.partition("@model=")[0].partition("@k=")[0]


def _family(name: str) -> str:
    """Return the key of a quantity in `_MEANINGS`; nothing for a key of a family that is no quantity itself."""
    if name == "status" or name.endswith(".slot"):
        return ""
    stem, _, slot = name.rpartition(".")
    by_slot = slot_number(slot) > 0
    if name.startswith("status."):
        return "status.slot" if by_slot else "status"
    return f"{stem}.slot" if by_slot else name
