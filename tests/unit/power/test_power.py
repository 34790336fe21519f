"""Power before freezing: the V it names is found as often as it says, and the cheapest design is the cheapest."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.backends.backend_agg import FigureCanvasAgg

from counterbalance.arrangements import arrange
from counterbalance.cli.power import power as command
from counterbalance.config import load_study
from counterbalance.power.advice import cheapest, holm_factor
from counterbalance.power.facts import call_price
from counterbalance.power.figure import draw_power
from counterbalance.power.grid import Assumed, Row, find_groups, item_numbers, schemes, simulate
from counterbalance.power.search import DesignPower, Found, _fit, cells_of, detectable, rejects
from counterbalance.power.text import notes, table
from counterbalance.simulation.cells import design_orders
from counterbalance.simulation.respondent import ability_for
from counterbalance.simulation.scenarios import respondent
from counterbalance.simulation.sizes import effect_curve

ROOT = Path(__file__).parents[3]

STUDY = """\
schema: counterbalance/study/1
id: priced
title: Priced
question: What does it cost?
seed: 1
preregistration: null
models:
  - {id: paid, vendor: openai, model: m-2026-01-01, account: bank}
  - {id: free, vendor: simulated}
accounts:
  - {id: bank, key_env: BANK_KEY, mode: MODE}
money: {prices: {paid: {input: 2.0, output: 8.0, batch_discount: 0.5}}}
datasets:
  - id: sums
    path: sums.csv
    format: csv
    columns: {options: [a, b, c, d], key: key}
    key: {type: letter}
    licence: none
    source: made by the test
experiments:
  - id: letters
    design: mcq
    datasets: [sums]
    models: [paid, free]
    prompt: {template: letter.j2, style: plain}
    read: {kind: generate, max_tokens: 10}
    arrangement: {scheme: williams}
analysis: {measurable_v: 0.3}
"""
TEMPLATE = "{{ question }} {% for o in options %}{{ o.label }} {{ o.text }} {% endfor %}"


@pytest.fixture
def study_file(tmp_path):
    def write(mode="live"):
        rows = [f"what is {n} plus {n + 1}?,{n + 10},{n + 20},{n + 30},{n + 40},{'ABCD'[n % 4]}" for n in range(12)]
        (tmp_path / "sums.csv").write_text("question,a,b,c,d,key\n" + "\n".join(rows) + "\n", encoding="utf-8")
        (tmp_path / "letter.j2").write_text(TEMPLATE, encoding="utf-8")
        path = tmp_path / "priced.yaml"
        path.write_text(STUDY.replace("MODE", mode), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def curve():
    plain = respondent(tau=0.3, noise=0.3)
    return effect_curve(replace(plain, ability_mean=ability_for(0.7, plain)))


def test_the_v_it_names_is_found_as_often_as_it_says(curve):
    orders = design_orders("exhaustive", None, n_items=25, k=4, seed=1)
    found = detectable(curve, [orders], alpha=0.05, power=0.8, cells=200, rng=np.random.default_rng(1))
    # .106, from 500 cells a point by an independent program (interpolated, good to about 3 per cent).
    assert found.accuracy.v == pytest.approx(0.106, abs=3.5 * found.accuracy.error)
    assert found.picks.v == pytest.approx(0.086, abs=3.5 * found.picks.error)
    rng = np.random.default_rng(2)
    again = [
        rejects(correct, cells.n, picks, 0.05, int(rng.integers(2**32)))[0]
        for cells in cells_of(curve, found.accuracy.v, orders, 200, rng)
        for correct, picks in zip(cells.correct, cells.picks, strict=True)
    ]
    assert 0.68 < np.mean(again) < 0.92


def test_without_an_effect_the_tests_keep_their_level(curve):
    orders = design_orders("williams", None, n_items=30, k=4, seed=1)
    rng = np.random.default_rng(3)
    found = [
        rejects(correct, cells.n, picks, 0.05, int(rng.integers(2**32)))
        for cells in cells_of(curve, 0.0, orders, 300, rng)
        for correct, picks in zip(cells.correct, cells.picks, strict=True)
    ]
    # Four standard errors of 300 cells at .05.
    assert np.mean(found, axis=0).max() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)


def test_orders_are_those_of_the_pipeline():
    ids = ["o1", "o2", "o3", "o4"]
    asked = arrange("sampled", 3, seed=7, item_id="i00001", option_ids=ids, max_arrangements=99)
    orders = design_orders("sampled", 3, n_items=2, k=4, seed=7)[1]
    # The correct option of item 1 is its second.
    assert [[(ids.index(option) - 1) % 4 for option in order] for order in asked] == orders.tolist()


def row(scheme, n_items, accuracy, v, error=0.001, cost=None):
    orders = {"exhaustive": 24, "williams": 4, "cyclic": 4}[scheme]
    power = DesignPower(Found(v, error if v else None), Found(v, error if v else None), 0.4, 300)
    return Row(scheme, orders, n_items, n_items * orders, cost, False, accuracy, power)


def test_the_cheapest_design_answers_at_every_accuracy():
    rows = [
        row("exhaustive", 50, 0.5, 0.07),
        row("exhaustive", 50, 0.95, 0.09),
        row("williams", 100, 0.5, 0.08),
        row("williams", 100, 0.95, 0.12),
        row("williams", 200, 0.5, 0.06, cost=3.5),
        row("williams", 200, 0.95, 0.095, cost=3.5),
    ]
    advice = cheapest(rows, 0.1, 0.8)
    assert {(found.scheme, found.n_items) for found in advice.rows} == {("williams", 200)}
    assert "800 calls per cell" in advice.sentence
    assert "US$ 3.50" in advice.sentence
    assert "simulation error" not in advice.sentence


def test_at_equal_cost_neighbours_are_balanced_too():
    rows = [row("cyclic", 100, 0.5, 0.06), row("williams", 100, 0.5, 0.08)]
    assert cheapest(rows, 0.1, 0.8).rows[0].scheme == "williams"


def test_a_design_within_its_error_says_so():
    advice = cheapest([row("williams", 200, 0.5, 0.098, error=0.004)], 0.1, 0.8)
    assert "At an accuracy of 0.5 that is within simulation error" in advice.sentence


def test_no_design_answers():
    advice = cheapest([row("williams", 100, 0.5, 0.2), row("exhaustive", 50, 0.5, None)], 0.1, 0.8)
    assert advice.rows == ()
    assert "shows V = 0.200: use more items" in advice.sentence


def test_groups_cost_and_own_design(study_file):
    study = load_study(study_file())
    (group,) = find_groups(study)
    assert (group.k, group.n_cells, group.unpriced) == (4, 2, ("free",))
    assert group.own == {("williams", 4, 12)}
    assert item_numbers(group) == [12, 25, 50, 100, 200]
    assert schemes(group) == [("exhaustive", None, 24), ("williams", None, 4), ("cyclic", None, 4), ("sampled", 8, 8)]
    # Rendered by hand: "what is 0 plus 1? A 10 B 20 C 30 D 40 " and the like, at four characters a token.
    length = np.mean([len(f"what is {n} plus {n + 1}? " + "A 00 B 00 C 00 D 00 ") for n in range(10)])
    assert group.price == pytest.approx((length / 4 * 2.0 + 10 * 8.0) / 1e6, rel=0.02)


def edited(path, *changes):
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def test_calls_asked_once_more_are_counted_like_they_are_billed(study_file):
    plain = load_study(study_file())
    (without,) = find_groups(plain)
    again = ("scheme: williams}\n", "scheme: williams}\n    repeats: 2\n    repeat_share: 0.25\n")
    study = edited(study_file(), again)
    (group,) = find_groups(study)
    rows = list(simulate(group, study.config.analysis, accuracies=(0.7,), items=(12,), cells=10))
    # Twelve items in 4 orders, each prompt asked twice, and a quarter of the 48 prompts once more.
    (row,) = [found for found in rows if found.scheme == "williams"]
    assert row.calls == 12 * 4 * 2 + 12
    assert row.cost == pytest.approx(without.price * row.calls)
    assert any("0.25 of all prompts" in line for line in notes(study, group, rows, Assumed(), 10))
    assert not any("asked once more" in line for line in notes(plain, without, rows, Assumed(), 10))


def test_experiments_that_ask_other_shares_once_more_are_not_joined(study_file):
    path = study_file()
    head, mark, tail = path.read_text(encoding="utf-8").partition("  - id: letters\n")
    block, end, analysis = tail.partition("analysis:")
    second = block.replace("scheme: williams}\n", "scheme: williams}\n    repeat_share: 0.5\n")
    path.write_text(head + mark + block + "  - id: again\n" + second + end + analysis, encoding="utf-8")
    groups = find_groups(load_study(path))
    assert [(group.experiments, group.extra) for group in groups] == [(("letters",), 0), (("again",), 0.5)]


def test_items_with_another_number_of_options_are_told_and_not_counted(study_file, tmp_path):
    path = study_file()
    lines = (tmp_path / "sums.csv").read_text(encoding="utf-8").splitlines()
    five = [f"more {n},1{n},2{n},3{n},4{n},5{n},A" for n in range(5)]
    four = [f"{line.rsplit(',', 1)[0]},,{line[-1]}" for line in lines[1:]]
    (tmp_path / "sums.csv").write_text("\n".join(["question,a,b,c,d,e,key", *four, *five]) + "\n", encoding="utf-8")
    study = edited(
        path, ("[a, b, c, d]", "[a, b, c, d, e]"), ("    key: {", "    trailing_empty_options: true\n    key: {")
    )
    (group,) = find_groups(study)
    assert (group.k, group.own) == (4, {("williams", 4, 12)})
    (line,) = [line for line in notes(study, group, [], Assumed(), 10) if "Numbers of options" in line]
    assert "sums has 12 with 4, 5 with 5" in line
    assert "neither in its calls nor in its cost" in line
    # Two models, and two tests for each of the two numbers of options.
    assert holm_factor(study, 4)[0] == 2 * 2 * 2


def test_data_sets_of_other_numbers_of_options_are_groups_of_their_own(study_file, tmp_path):
    path = study_file()
    (tmp_path / "two.csv").write_text("question,a,b,key\n" + "".join(f"q{n},1{n},2{n},A\n" for n in range(6)), "utf-8")
    block = path.read_text(encoding="utf-8").partition("datasets:\n")[2].partition("experiments:")[0]
    two = block.replace("id: sums", "id: two").replace("sums.csv", "two.csv").replace("[a, b, c, d]", "[a, b]")
    study = edited(path, ("experiments:\n", two + "experiments:\n"), ("datasets: [sums]", "datasets: [sums, two]"))
    found = [(group.k, group.n_cells, group.own) for group in find_groups(study)]
    assert found == [(4, 2, {("williams", 4, 12)}), (2, 2, {("williams", 2, 6)})]


def test_groups_of_items_are_told(study_file, tmp_path):
    path = study_file()
    lines = (tmp_path / "sums.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{lines[0]},source", *(f"{line},s{n % 3}" for n, line in enumerate(lines[1:]))]
    (tmp_path / "sums.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    study = edited(path, ("key: key}", "key: key, group: source}"))
    (group,) = find_groups(study)
    assert group.grouped == ("sums has 12 items in 3 groups",)
    assert any("sums has 12 items in 3 groups" in line for line in notes(study, group, [], Assumed(), 10))


def test_the_error_knows_that_cells_of_one_draw_are_alike():
    rng = np.random.default_rng(5)
    v = np.tile(np.linspace(0.05, 0.2, 6), 100)
    draw = np.repeat(np.arange(10), 60)
    hidden = np.linspace(-1.2, 1.2, 10)[draw]
    rejected = (rng.standard_normal(600) < 15 * v - 2 + hidden).astype(float)
    alone = _fit(v, rejected, np.zeros(600, dtype=np.int64), 0.8, 0.5)
    over_draws = _fit(v, rejected, draw, 0.8, 0.5)
    assert over_draws.v == alone.v
    # Leaving out one draw after the other, an error that supposes no model of the cells.
    left = [_fit(v[draw != g], rejected[draw != g], draw[draw != g], 0.8, 0.5).v for g in range(10)]
    jackknife = np.sqrt(0.9 * ((np.array(left) - np.mean(left)) ** 2).sum())
    assert over_draws.error == pytest.approx(jackknife, rel=0.25)
    assert alone.error < 0.6 * jackknife


def test_error_bars_and_the_scale_of_one_accuracy_lie_inside_the_picture(monkeypatch):
    seen = []
    monkeypatch.setattr("counterbalance.power.figure.svg_bytes", lambda figure: seen.append(figure) or b"")
    same = [row(scheme, 50, 0.7, 0.3, error=0.05) for scheme in ("williams", "cyclic")]
    draw_power([*same, row("exhaustive", 50, 0.7, 0.2)], 0.1)
    (figure,) = seen
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    assert axes.get_ylim()[1] > 0.3 + 1.96 * 0.05
    assert axes.yaxis.label.get_window_extent().x0 >= 0
    (key,) = figure.legends
    assert key.get_window_extent().x1 <= figure.bbox.x1
    assert not key.get_window_extent().overlaps(axes.get_window_extent())
    # Two schemes of equally many calls and the same V stand side by side.
    ends = [tuple(line.get_xydata()[0]) for line in axes.lines if len(line.get_xydata()) == 1]
    assert len({round(x) for x, _ in ends}) == 3


def test_a_batch_account_has_its_discount(study_file):
    live, batch = load_study(study_file()), load_study(study_file("batch"))
    full = call_price(live, live.experiment("letters"), "paid", 100)
    assert full == pytest.approx((100 * 2 + 10 * 8) / 1e6)
    assert call_price(batch, batch.experiment("letters"), "paid", 100) == pytest.approx(full / 2)
    assert call_price(live, live.experiment("letters"), "free", 100) is None


def test_holm_factor_of_one_family(study_file):
    tests, factor = holm_factor(load_study(study_file()), 4)
    assert tests == 4
    # Noncentralities for 80% power, 3 df: 10.903 at alpha .05 (chi-squared tables), 14.6 or so at .0125.
    assert factor == pytest.approx(np.sqrt(14.6 / 10.903), abs=0.02)


def test_each_design_has_random_numbers_of_its_own(study_file):
    study = load_study(study_file())
    (group,) = find_groups(study)
    one = list(simulate(group, study.config.analysis, accuracies=(0.7,), items=(25,), cells=20))
    two = list(simulate(group, study.config.analysis, accuracies=(0.7,), items=(12, 25), cells=20))
    assert [found for found in two if found.n_items == 25] == one
    assert draw_power(one, 0.1).file == draw_power(one, 0.1).file


def test_command_prints_a_table_json_and_a_picture(study_file, tmp_path):
    path = study_file()
    options = ["--study", str(path), "--items", "12", "--accuracy", "0.7", "--cells", "100"]
    figure = tmp_path / "power.svg"
    shown = CliRunner().invoke(command, [*options, "--figure", str(figure)])
    assert shown.exit_code == 0, shown.output
    assert "<- the study's own" in shown.output
    assert "The cheapest design that shows V = 0.3" in shown.output
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    (group,) = json.loads(CliRunner().invoke(command, [*options, "--json"]).stdout)["groups"]
    assert [design["scheme"] for design in group["designs"]] == ["exhaustive", "williams", "cyclic", "sampled"]
    found = {design["calls"]: design["found"]["accuracy"] for design in group["designs"]}
    assert all(entry["error"] > 0 for entry in found.values() if entry["v"] is not None)
    able = [calls for calls, entry in found.items() if entry["v"] is not None and entry["v"] <= 0.3]
    assert group["cheapest"]["calls"] == min(able)


def test_the_documented_table_is_that_of_the_stored_run():
    stored = json.loads((ROOT / "docs" / "power.json").read_text(encoding="utf-8"))
    study = load_study(ROOT / "config" / "studies" / "demo.yaml")
    (group,) = find_groups(study)
    (found,) = stored["groups"]
    rows = [
        Row(
            **design
            | {
                "found": DesignPower(
                    **design["found"] | {test: Found(**design["found"][test]) for test in ("accuracy", "picks")}
                )
            }
        )
        for design in found["designs"]
    ]
    page = (ROOT / "docs" / "power.md").read_text(encoding="utf-8")
    assert "\n".join(table(study, group, rows)) in page
    assert found["advice"] in page
    assert cheapest(rows, stored["measurable_v"], stored["power"]).sentence == found["advice"]
