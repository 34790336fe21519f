"""The one word for a cell, from estimates written by hand."""

import pytest

from counterbalance.config import Analysis
from counterbalance.designs.mcq.quantities import describe
from counterbalance.designs.mcq.verdict import verdict
from counterbalance.errors import InputError


def rows(accuracy=(1.0, "ok"), picks=(1.0, "ok"), detectable=(0.08, "ok")):
    def row(quantity, p, status, estimate=None):
        reason = None if status == "ok" else "because"
        return {
            "quantity": quantity,
            "p_adjusted": p,
            "status": status,
            "estimate": estimate,
            "reason": reason,
            "n_items": 10,
            "n_calls": 40,
        }

    return {
        "relabelling.accuracy": row("relabelling.accuracy", *accuracy),
        "relabelling.picks": row("relabelling.picks", *picks),
        "detectable_V": row("detectable_V", None, detectable[1], detectable[0]),
    }


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (rows(accuracy=(0.04, "ok")), "bias"),
        (rows(picks=(0.04, "ok")), "bias"),
        (rows(accuracy=(0.05, "ok")), "no_bias_seen"),
        (rows(), "no_bias_seen"),
        (rows(detectable=(0.2, "not_measurable")), "not_measurable"),
        (rows(detectable=(None, "undefined")), "not_measurable"),
        (rows((1.0, "degenerate"), (1.0, "degenerate")), "degenerate"),
        (rows((1.0, "degenerate"), (0.01, "ok")), "bias"),
        (rows((None, "undefined"), (None, "undefined"), (None, "undefined")), "not_measurable"),
    ],
)
def test_the_verdict_follows_from_corrected_tests_and_detectable_v(given, label) -> None:
    assert verdict(Analysis(), given).label == label


def test_a_null_says_what_it_could_have_seen() -> None:
    assert "0.080" in str(verdict(Analysis(), rows()).reason)
    assert "0.200" in str(verdict(Analysis(), rows(detectable=(0.2, "not_measurable"))).reason)


def test_alpha_is_the_plan_s() -> None:
    assert verdict(Analysis(alpha=0.01), rows(accuracy=(0.04, "ok"))).label == "no_bias_seen"


def test_every_quantity_has_a_meaning_and_a_typo_has_none() -> None:
    for name in ("accuracy", "accuracy.slot_4", "status.refused.slot_2", "verdict", "accuracy.slot_1@k=3"):
        assert describe(name).endswith(".")
    with pytest.raises(InputError, match="accurcy"):
        describe("accurcy")
