"""What the page says about how replies were bought: parameters, sessions, money, interruptions."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from page import Page

from counterbalance.config import Analysis, Cell
from counterbalance.config.models import AnthropicModel, Dataset, Experiment, LocalModel, OpenAIModel, Prompt
from counterbalance.report.bought import Bought, in_random_order
from counterbalance.report.build import build_report
from counterbalance.report.buying import view_buying
from counterbalance.report.interruptions import view_interruptions
from counterbalance.report.sent import view_sent
from counterbalance.report.text import dollars

QUICK = Analysis(resamples=199, run_resamples=99)
API = {"id": "m1", "model": "m-2025-11-01", "account": "a"}
DATASET = Dataset(
    id="sums",
    path="items.csv",
    format="csv",
    columns={"options": ["a", "b", "c"], "key": None},
    licence="CC0-1.0",
    source="written for this test",
)


def make_cell(model=None, read=None, call_order="auto") -> Cell:
    model = model or OpenAIModel(vendor="openai", **API)
    experiment = Experiment(
        id="letters",
        design="mcq",
        datasets=["sums"],
        models=[model.id],
        prompt=Prompt(template="letter.j2", style="plain"),
        read=read or {"kind": "generate", "temperature": 0.0},
        call_order=call_order,
    )
    return Cell(experiment, model, DATASET)


def bought(cell=None, facts=None, sessions=None, answers=None, **more) -> Bought:
    sessions = sessions or {1: 100}
    return Bought(
        cell=cell or make_cell(),
        facts=facts or {},
        calls=sum(sessions.values()),
        models=more.get("models", {}),
        fingerprints=more.get("fingerprints", {}),
        sessions=sessions,
        answers=answers,
    )


def words(cell=None, *parameters) -> str:
    (view,) = view_sent([bought(cell, {"parameters_sent": list(parameters)} if parameters else {})])
    return view.words


def test_a_temperature_that_was_sent_is_named_and_one_that_was_not_is_not_claimed() -> None:
    assert words(None, {"temperature": 0.0, "seed": 1}) == "temperature 0; seed 1"
    strict = make_cell(AnthropicModel(vendor="anthropic", does_not_accept=["temperature"], **API))
    text = words(strict, {"max_tokens": 16})
    assert "no temperature was sent; the vendor's default holds" in text
    assert "no seed was sent; the vendor draws" in text
    assert "declared not to accept it: temperature" in text
    assert "the plan's temperature 0 did not reach the model" in text
    assert "temperature 0;" not in text


def test_an_id_without_a_date_is_warned_of() -> None:
    assert "warning" not in words(None, {"temperature": 0.0, "seed": 1})
    for change in ({"model": "m1-latest"}, {"base_url": "http://127.0.0.1:1/v1"}):
        undated = make_cell(OpenAIModel(vendor="openai", **API | change))
        assert words(undated, {"temperature": 0.0}).startswith("warning: the model id names no dated version")
    assert "warning" not in words(make_cell(LocalModel(id="m1", vendor="local")), {"temperature": 0.0})


def test_a_default_that_the_plan_asked_for_is_no_surprise() -> None:
    cell = make_cell(read={"kind": "generate", "temperature": None})
    assert "did not reach" not in words(cell, {"max_tokens": 16})
    assert "the vendor's default holds" in words(cell, {"max_tokens": 16})


def test_a_temperature_is_found_however_deep_the_vendor_puts_it() -> None:
    assert words(None, {"generationConfig": {"temperature": 0.5, "seed": None}}).startswith("temperature 0.5; no seed")


def test_several_sets_of_parameters_are_all_shown() -> None:
    one, two = {"temperature": 0.0, "seed": 1}, {"temperature": 1.0, "seed": 1}
    cells = [bought(facts={"parameters_sent": [one, two]}), bought(facts={"parameters_sent": [one]})]
    (view,) = view_sent(cells)
    assert view.words == "2 different sets of parameters; temperature 0 and 1; seed 1"
    assert view.parameters == ['{"seed":1,"temperature":0}', '{"seed":1,"temperature":1}']


def test_records_of_an_older_release_say_so_and_a_local_model_has_no_vendor_s_default() -> None:
    assert "not written down" in words()
    local = make_cell(LocalModel(id="small", vendor="local"), {"kind": "logprob"})
    assert words(local, {"top": 200}) == ""


def test_sessions_errors_and_money_are_told() -> None:
    facts = {
        "calls": 1200,
        "attempts": 1207,
        "transport_errors": 4,
        "possibly_sent_twice": 3,
        "maybe_billed": 2,
        "spent_nano_usd": 1_234_567_890,
        "charged_at_worst": 5,
        "sessions": [
            {"session": 1, "ended_because": "out of funds", "calls": 700},
            {"session": 2, "ended_because": None, "calls": 500},
        ],
        "call_order": "prefix",
    }
    view = view_buying([bought(facts=facts, models={"m-a": 1200}, fingerprints={"f1": 600, "f2": 600})], QUICK)
    (row,) = view.rows
    assert (row.calls, row.attempts, row.errors) == ("1,200", "1,207", "4")
    assert (row.lost, row.open) == ("2", "3")
    assert (row.spent, row.at_worst) == ("$1.2346", "5")
    assert row.models == "m-a; 2 system fingerprints"
    assert list(row.sessions) == ["1: 700 calls, out of funds", "2: 500 calls, end not written down"]
    assert row.order == "by common beginnings"
    assert view.money.startswith("$1.2346 in all")
    assert "5 attempts without usable usage" in view.money


def test_what_is_not_known_is_a_dash_and_not_a_zero() -> None:
    view = view_buying([bought()], QUICK)
    (row,) = view.rows
    assert {row.calls, row.attempts, row.errors, row.lost, row.open, row.spent, row.at_worst} == {"–"}
    assert view.money == "No call had a price."
    assert view.interruptions == []


def test_small_amounts_are_not_rounded_to_nothing() -> None:
    assert [dollars(0), dollars(1), dollars(100_000), dollars(1_500_000_000_000)] == [
        "$0.0000",
        "<$0.0001",
        "$0.0001",
        "$1,500.0000",
    ]


def test_the_order_of_asking_is_the_record_s_or_else_the_plan_s() -> None:
    assert in_random_order(bought())
    assert not in_random_order(bought(facts={"call_order": "prefix"}))
    assert not in_random_order(bought(make_cell(LocalModel(id="small", vendor="local"))))
    assert in_random_order(bought(make_cell(LocalModel(id="small", vendor="local"), call_order="interleaved")))


def answers(session, right, slot=None, items=20) -> pa.Table:
    n = len(session)
    gold = np.arange(n) % 3
    slot = np.where(right, gold, (gold + 1) % 3) if slot is None else slot
    return pa.table(
        {
            "trial_id": [str(place) for place in range(n)],
            "group_id": [f"g{place % items}" for place in range(n)],
            "extra": [False] * n,
            "n_options": [3] * n,
            "gold_slot": gold,
            "slot": slot,
            "correct": slot == gold,
            "session": session,
        }
    )


def interrupted(table, **more) -> Bought:
    sessions, counts = np.unique(table.column("session").to_numpy(), return_counts=True)
    return bought(sessions={int(s): int(n) for s, n in zip(sessions, counts, strict=True)}, answers=table, **more)


def crossing_cell() -> Cell:
    cell = make_cell()
    settings = {"design": "crossing", "crossing": {"cues": ["now"]}}
    return replace(cell, experiment=Experiment.model_validate(cell.experiment.model_dump() | settings))


def between_blocks(table) -> pa.Table:
    """Answers of a crossing: two blocks, and none of them right or wrong."""
    n = table.num_rows
    columns = {"n_options": [2] * n, "gold_slot": pa.nulls(n, pa.int64()), "correct": pa.nulls(n, pa.bool_())}
    slots = {"slot": [slot % 2 for slot in table.column("slot").to_pylist()]}
    return pa.table({name: table.column(name) for name in table.column_names} | columns | slots)


def views(*arguments):
    return [view for table in view_interruptions(*arguments) for view in table.rows]


SESSION = np.random.default_rng(4).permutation(np.repeat([1, 2], [180, 120]))
FACTS = {"sessions": [{"session": 1, "ended_because": "out of funds", "calls": 180}, {"session": 2, "calls": 120}]}


@pytest.fixture
def rng() -> np.random.Generator:
    """One for each test, so that none hangs on which others ran before."""
    return np.random.default_rng(5)


def test_an_interruption_that_changed_nothing_is_told_with_both_numbers(rng) -> None:
    right = rng.random(300) < 0.7
    (view,) = views([interrupted(answers(SESSION, right), facts=FACTS)], QUICK)
    assert view.words.startswith("First interruption: out of funds. The calls were asked in an order drawn by the seed")
    assert "differ no more than chance makes them" in view.words
    assert view.before.startswith("180 answers on 20 items, ")
    assert view.after.startswith("120 answers on 20 items, ")
    by_hand = 100 * (right[SESSION == 2].mean() - right[SESSION == 1].mean())
    assert view.differences[0].startswith(f"{by_hand:+.1f} [".replace("-", "−"))


def test_a_change_at_the_interruption_is_found(rng) -> None:
    right = rng.random(300) < np.where(SESSION == 1, 0.95, 0.5)
    (view,) = views([interrupted(answers(SESSION, right), facts=FACTS)], QUICK)
    assert "and yet accuracy" in view.words
    assert "the cell mixes both" in view.words


def test_extra_calls_of_the_repeat_floor_are_left_out(rng) -> None:
    right = rng.random(300) < 0.7
    table = answers(SESSION, right)
    extra = table.set_column(2, "extra", pa.array([place < 50 for place in range(300)]))
    (view,) = views([interrupted(extra, facts=FACTS)], QUICK)
    assert view.before.startswith(f"{int((SESSION[50:] == 1).sum())} answers")


def test_few_answers_tell_nothing_and_it_says_so(rng) -> None:
    session = np.repeat([1, 2], [280, 20])
    (view,) = views([interrupted(answers(session, rng.random(300) < 0.7))], QUICK)
    assert "Too few answers on one side (280 and 20)" in view.words
    assert "chance" not in view.words
    assert view.words.startswith("First interruption: not written down, as when the process was killed.")


def test_a_cell_asked_item_by_item_gets_no_test(rng) -> None:
    table = answers(np.sort(SESSION), rng.random(300) < 0.7)
    (view,) = views([interrupted(table, facts={**FACTS, "call_order": "prefix"})], QUICK)
    assert "hold different items" in view.words
    assert "p =" not in view.words


def test_the_preflight_s_one_call_is_no_interruption(rng) -> None:
    once = np.repeat([1, 2], [1, 299])
    assert views([interrupted(answers(once, rng.random(300) < 0.7))], QUICK) == []
    twice = np.concatenate([[1], rng.permutation(np.repeat([2, 3], [150, 149]))])
    (view,) = views([interrupted(answers(twice, rng.random(300) < 0.7))], QUICK)
    assert view.before.startswith("151 answers")


def test_many_interruptions_are_judged_together(rng) -> None:
    # The best of 25 tests is small by chance; Holm's correction knows.
    cells = [interrupted(answers(SESSION, rng.random(300) < 0.7), facts=FACTS) for _ in range(25)]
    assert not [view for view in views(cells, QUICK) if "and yet" in view.words]


@pytest.mark.parametrize("order", ["interleaved", "prefix"])
def test_the_page_shows_it_all(small, order, rng) -> None:
    key = ("letters", "smollm2", "copying")
    entry = replace(small.bought[key], sessions={1: 180, 2: 120}, facts={**FACTS, "call_order": order})
    entry = replace(entry, answers=answers(SESSION, rng.random(300) < 0.7), models={"m": 300})
    html = build_report(replace(small, bought={**small.bought, key: entry})).html.decode()
    page = Page(html)
    (table,) = [d for d in page.root.find("div") if d.attributes.get("aria-label", "").startswith("Replies before")]
    assert "out of funds" in page.root.words
    assert ("differ no more than chance" in page.root.words) == (order == "interleaved")
    assert "letters · smollm2 · copying" in table.words
    again = build_report(replace(small, bought={**small.bought, key: entry})).html.decode()
    assert again == html


def test_the_page_of_an_uninterrupted_study_has_no_such_table(small) -> None:
    html = build_report(small).html.decode()
    assert "Before and after an interruption" not in html
    assert "$0.0247 in all" in html
    assert "{&#34;max_tokens&#34;:16,&#34;note&#34;:&#34;x&#34;,&#34;temperature&#34;:0}" in html
    assert "every call was answered" in html
    for claim in ("deterministic", "reproducible replies"):
        assert claim not in html


def test_each_design_is_told_in_its_own_words(rng) -> None:
    table = answers(SESSION, rng.random(300) < 0.7)
    (asked,) = view_interruptions([interrupted(table, facts=FACTS)], QUICK)
    assert asked.heads == ["Accuracy", "Picks by slot"]
    of_crossing = interrupted(between_blocks(table), cell=crossing_cell(), facts=FACTS)
    (found,) = view_interruptions([of_crossing], QUICK)
    assert found.heads == ["Choices of block"]
    (row,) = found.rows
    (differences,) = row.differences
    assert differences.startswith("first block ")
    assert "; second block " in differences
    assert "for choices of block" in row.words
    assert "accuracy" not in row.words
    assert "slot" not in row.words
