"""What the mcq design's estimates are called, and what each means."""

from counterbalance.config import Cell, Experiment, Study
from counterbalance.contrasts.names import checked_plan, contrast_id, describe_contrast, unplanned_contrast
from counterbalance.errors import InputError

CONFIRMATORY = ("relabelling.accuracy", "relabelling.picks")

AGREEMENT = ("agreement", "agreement.every_order", "agreement.kappa")
"""Of two experiments that read one model; the other one's id follows the name after `WITH`."""
WITH = "@with="

SLOT_QUANTITIES = ("accuracy", "picks", "label_logprob", "slot_bonus", "label_prior")
"""What is known by slot of each item, and can be put into planned contrasts as QUANTITY.slot_1 and so on."""
SLOTS = tuple(f"slot_{place}" for place in range(1, 27))

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
    "agreement": "Share of prompts for which the likeliest label is the letter that the model generates.",
    "agreement.every_order": "Share of items for which likeliest label and generated letter agree in every order.",
    "agreement.kappa": "Cohen's kappa of likeliest label and generated letter: agreement beyond that of chance.",
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
    whole, _, size = base.partition("@k=")
    name, _, other = whole.partition(WITH)
    family = _family(name)
    wrong = (base != whole and not size.isdigit()) or (quantity != base and not model)
    paired, planned = family in AGREEMENT, describe_contrast(name)
    if (family not in _MEANINGS and planned is None) or wrong or paired != bool(other) or (paired and model):
        raise InputError(
            f"mcq has no quantity {quantity!r}; there are {', '.join(sorted(_MEANINGS))}, each also with @k=NUMBER for "
            "items with another number of options and @model=ID for the part that one model answered; agreement has "
            f"{WITH}EXPERIMENT after its name, the experiment that generates letters; and contrast.ID of a planned "
            "contrast, also with tost., sd. or negative. before it, and ratio_of_means.ID"
        )
    parts = [planned or _MEANINGS[family]]
    if other:
        parts.append(f"The letters are those of experiment {other}.")
    if size:
        parts.append(f"Only items with {size} options.")
    if model:
        parts.append(f"Only calls that {model} answered.")
    return " ".join(parts)


def unplanned(study: Study, experiment: Experiment, quantity: str) -> str | None:
    """Say why an experiment will have no such quantity: its read does not give it, or there is nothing to compare."""
    name, _, other = quantity.partition("@k=")[0].partition(WITH)
    if name in AGREEMENT:
        known = [entry.id for entry in _generating(study, experiment)]
        listed = ", ".join(known) or "none"
        return None if other in known else f"no experiment {other!r} to compare this one with; there are {listed}"
    if contrast := contrast_id(name):
        return _unplanned_contrast(study, experiment, contrast)
    reads = _READS.get(_family(quantity.partition("@")[0]))
    if reads is None or experiment.read.kind in reads:
        return None
    return f"the read {experiment.read.kind!r} gives none; {', '.join(reads)} do"


def _unplanned_contrast(study: Study, experiment: Experiment, name: str) -> str | None:
    file = study.config.analysis.slot_contrasts
    reason = unplanned_contrast(name, file, "slot_contrasts")
    if file is None or reason is not None:
        return reason
    plan = checked_plan(
        file, source=f"{study.path}: analysis.slot_contrasts", conditions=SLOT_QUANTITIES, effects=SLOTS
    )
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


def _family(name: str) -> str:
    stem, _, slot = name.rpartition("_")
    by_slot = stem.endswith(".slot") and slot.isdigit()
    if name.startswith("status."):
        return "status.slot" if by_slot else "status"
    return stem if by_slot else name
