"""Predictions that must be refused; each stands at line 5 of its file, after a right one at line 4."""

from dataclasses import dataclass

CELL = "experiment: letters, model: fair, subset: sums"
HERE = f"{CELL}, quantity: accuracy"


@dataclass(frozen=True)
class Case:
    name: str
    yaml: str
    says: tuple[str, ...]
    line: int = 5


WRONG = [
    Case("unknown-rule", f"- {{id: P2, {HERE}, rule: above, value: 1}}", ("prediction P2", "at_least", "label_is")),
    Case("no-rule", f"- {{id: P2, {HERE}, value: 1}}", ("prediction P2", "`rule` is needed")),
    Case("unknown-key", f"- {{id: P2, {HERE}, rule: at_most, value: 1, note: x}}", ("P2, key note", "no such key")),
    Case("surplus-value", f"- {{id: P2, {HERE}, rule: between, low: 0, high: 1, value: 1}}", ("key value",)),
    Case("no-value", f"- {{id: P2, {HERE}, rule: at_most}}", ("P2, key value: this key is needed",)),
    Case("text-for-number", f"- {{id: P2, {HERE}, rule: at_most, value: '1'}}", ("key value", "expected a number")),
    Case("truth-for-number", f"- {{id: P2, {HERE}, rule: at_most, value: true}}", ("key value", "expected a number")),
    Case("number-for-label", f"- {{id: P2, {HERE}, rule: label_is, value: 1}}", ("key value", "expected text")),
    Case("infinite", f"- {{id: P2, {HERE}, rule: at_most, value: 1e999}}", ("key value", "finite")),
    Case("p-of-one", f"- {{id: P2, {HERE}, rule: p_below, value: 1}}", ("key value", "less than 1")),
    Case("p-of-zero", f"- {{id: P2, {HERE}, rule: p_at_least, value: 0}}", ("key value", "greater than 0")),
    Case("low-above-high", f"- {{id: P2, {HERE}, rule: between, low: 1, high: 0.5}}", ("P2", "`low` (1.0) is above")),
    Case("empty-quantity", f"- {{id: P2, {CELL}, quantity: '', rule: at_most, value: 1}}", ("key quantity", "word")),
    Case("blank-quantity", f"- {{id: P2, {CELL}, quantity: 'a b', rule: at_most, value: 1}}", ("key quantity",)),
    Case("null-quantity", f"- {{id: P2, {CELL}, quantity: null, rule: at_most, value: 1}}", ("key quantity", "text")),
    Case("bad-id", f"- {{id: 2nd, {HERE}, rule: at_most, value: 1}}", ("key id", "start with a letter")),
    Case("same-id", f"- {{id: P1, {HERE}, rule: at_most, value: 1}}", ("'P1' and 'P1'", "rename")),
    Case("same-id-folded", f"- {{id: p1, {HERE}, rule: at_most, value: 1}}", ("'P1' and 'p1'",)),
    Case(
        "unknown-quantity",
        f"- {{id: P2, {CELL}, quantity: V.correct, rule: at_most, value: 1}}",
        ("P2, key quantity: mcq has no quantity 'V.correct'", "V.corrected"),
    ),
    Case(
        "other-experiment",
        "- {id: P2, experiment: digits, model: fair, subset: sums, quantity: accuracy, rule: at_most, value: 1}",
        ("P2, key experiment: 'digits' is not in the study; there are letters",),
    ),
    Case(
        "other-subset-lines",
        "- id: P2\n  experiment: letters\n  model: fair\n  subset: poems\n  rule: label_is\n  value: x\n  quantity: V",
        ("key subset: 'poems'", "there are sums"),
        line=8,
    ),
    Case("than-missing", f"- {{id: P2, {HERE}, rule: less_than}}", ("key than: this key is needed",)),
    Case(
        "than-itself",
        f"- {{id: P2, {HERE}, rule: less_than, than: {{{HERE}}}}}",
        ("`than` names the prediction's own number",),
    ),
    Case(
        "than-unknown-model",
        f"- {{id: P2, {HERE}, rule: less_than,\n  than: {{experiment: letters, model: x, subset: sums, quantity: V}}}}",
        ("key than.model: 'x' is not in experiment letters; there are planted, fair",),
        line=6,
    ),
    Case(
        "than-extra", f"- {{id: P2, {HERE}, rule: less_than, than: {{{HERE}, by: 2}}}}", ("key than.by", "no such key")
    ),
    Case("not-a-mapping", "- just words", ("prediction 2",)),
    Case("key-twice", f"- {{id: P2, {HERE}, rule: at_most, value: 1, value: 2}}", ("'value' is there twice",)),
]
