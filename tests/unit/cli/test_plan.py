import json

import pyarrow as pa
import pytest
from click.testing import CliRunner
from money_cases import CENT, PaidVendor, paid_study, write_ledger, write_trials

from counterbalance.artifacts import SCHEMAS, read_table, table_from_rows, write_table
from counterbalance.calls import plan_calls
from counterbalance.canonical import canonical_json, sha256_bytes
from counterbalance.cli import main
from counterbalance.config import Study, load_study
from counterbalance.config.models import Account
from counterbalance.ledger import Attempt, Ledger, Sending
from counterbalance.ledger.batches import Batches
from counterbalance.spending.estimate import Time, paid_time
from counterbalance.vendors import get_vendor
from counterbalance.vendors.base import Reply

REPLY = Reply("ok", text="A", input_tokens=80, output_tokens=4, latency_ms=500.0)


@pytest.fixture
def vendor(monkeypatch) -> PaidVendor:
    from counterbalance.vendors import get_vendor

    paid = PaidVendor()
    monkeypatch.setattr(
        "counterbalance.spending.estimate.get_vendor",
        lambda model, *rest: paid if model.vendor == "openai" else get_vendor(model, *rest),
    )
    return paid


def run(study: Study, *options: str) -> str:
    done = CliRunner().invoke(main, ["plan", "--study", str(study.path), *options], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def as_json(study: Study) -> dict:
    return json.loads(run(study, "--json"))


def with_scout(study: Study) -> Study:
    body = json.loads(study.path.read_text(encoding="utf-8"))
    body["experiments"][0]["scout"] = {"items": 2, "action": "report"}
    study.path.write_text(json.dumps(body), encoding="utf-8")
    return load_study(study.path)


def read_trials(study: Study) -> pa.Table:
    return read_table(study.layout.trials("letters", "sums"), SCHEMAS["trials"])


def read_scout(study: Study) -> pa.Table:
    return read_table(study.layout.scout_trials("letters", "sums"), SCHEMAS["trials"])


def write_scout(study: Study) -> None:
    """A scout of two trials: the sweep's first, and one of its own."""
    shared, other = read_trials(study).slice(0, 2).to_pylist()
    prompt = canonical_json({"messages": [{"role": "user", "content": "the other order"}]})
    own = {"condition": "scout", "trial_id": "i000.scout.0001.00", "prompt": prompt.decode()}
    table = table_from_rows([shared, other | own | {"prompt_sha256": sha256_bytes(prompt)}], SCHEMAS["trials"])
    write_table(study.layout.scout_trials("letters", "sums"), table, SCHEMAS["trials"])


def first_of_each_item(study: Study, vendor: PaidVendor) -> list[dict]:
    """The calls of a preflight, in its order."""
    trials = read_trials(study)
    plan = plan_calls(vendor, study.cell("letters", "bought", "sums"), trials, set(), seed=study.config.seed)
    rows, first = trials.to_pylist(), {}
    for row in plan.order:
        first.setdefault(rows[row]["item_id"], rows[row])
    return list(first.values())


def buy(study: Study, vendor: PaidVendor, rows: list[dict], reply: Reply, model: str = "bought") -> None:
    """Put replies to trials into the ledger."""
    found, asked = study.cell("letters", model, "sums"), table_from_rows(rows, SCHEMAS["trials"])
    known = vendor if model == "bought" else get_vendor(found.model, found.experiment, study)
    plan = plan_calls(known, found, asked, set(), seed=study.config.seed)
    body = canonical_json(reply.body()).decode()
    with Ledger(study.layout.ledger("letters", model, "sums"), study="paid", cell=found.name) as ledger:
        for row, key in enumerate(plan.keys):
            ledger.save([], [Sending(key, plan.texts[row].decode(), 140_000)], frozen_sha256="none")
            ledger.save([Attempt(key, "answered", body, None, 100)], [], frozen_sha256="none")


def cell(plan: dict, name: str) -> dict:
    return next(entry for entry in plan["cells"] if entry["cell"] == name)


def test_before_the_prompts_are_made_the_plan_says_so(tmp_path, vendor) -> None:
    study = paid_study(tmp_path)
    assert "prompts are not made yet" in run(study)
    assert "2 of 2 cells have no prompts yet; they are in none of the sums below" in run(study)
    assert cell(as_json(study), "letters/bought/sums")["new"] is None


def test_new_calls_tokens_and_cost_are_those_of_the_calls_that_are_missing(tmp_path, vendor) -> None:
    study = paid_study(tmp_path)
    write_trials(study, items=2)
    entry = cell(as_json(study), "letters/bought/sums")
    assert (entry["calls"], entry["answered"], entry["new"]) == (12, 0, 12)
    # 80 tokens in, estimated, of at most 100; at most 10 out; 1 and 4 USD a million.
    assert entry["buying"] == {
        "input_about": 12 * 80,
        "output_about": None,
        "output_most": 12 * 10,
        "cost_about": 12 * (80 * 1_000 + 10 * 4_000),
        "cost_most": 12 * (100 * 1_000 + 10 * 4_000),
        "live_about": 0,
        "live_most": 0,
    }
    assert cell(as_json(study), "letters/planted/sums")["buying"] is None
    assert vendor.opened == 0
    assert vendor.asked == []


def test_batches_are_planned_at_their_discount(tmp_path, vendor) -> None:
    prices = {"input": 1.0, "output": 4.0, "batch_discount": 0.5}
    account = {"mode": "batch", "requests_per_minute": 1}
    study = paid_study(tmp_path, prices=prices, account=account, datasets=("first", "sums"))
    write_trials(study, items=1)
    entry = cell(as_json(study), "letters/bought/sums")
    assert entry["buying"]["cost_most"] == 6 * 70_000
    assert entry["time"] == {"seconds": None, "basis": "in batches, which the vendor returns within a day"}
    assert "without the discount" not in run(study)


def test_a_preflight_of_batches_is_planned_without_their_discount_until_it_is_bought(tmp_path, vendor) -> None:
    prices = {"input": 1.0, "output": 4.0, "batch_discount": 0.5}
    # Twelve calls of two items: $0.00084 at most in batches, $0.00098 if one of each item is asked live.
    study = paid_study(tmp_path, prices=prices, account={"mode": "batch"}, study_cap=0.0009)
    write_trials(study, items=2)
    buying = cell(as_json(study), "letters/bought/sums")["buying"]
    assert (buying["live_about"], buying["live_most"]) == (1, 2)
    assert buying["cost_about"] == 120_000 + 11 * 60_000
    assert buying["cost_most"] == 2 * 140_000 + 10 * 70_000
    text = run(study)
    assert "before the batches: 1 of them (up to 2, where the first replies show nothing)" in text
    assert "the cap may stop this run: at most $0.000980 is more than" in text
    # A refusal shows nothing, so the other item may be asked too; an answer ends it.
    for asked, reply, left in ((0, Reply("refused", text="No.", input_tokens=80, output_tokens=2), 1), (1, REPLY, 0)):
        buy(study, vendor, [first_of_each_item(study, vendor)[asked]], reply)
        buying = cell(as_json(study), "letters/bought/sums")["buying"]
        assert buying["live_most"] == left
        assert buying["cost_most"] == left * 140_000 + (11 - asked - left) * 70_000
    assert "without the discount" not in run(study)


def test_calls_of_a_scout_alone_are_in_all_sums_until_they_are_bought(tmp_path, vendor) -> None:
    # The sweep's six calls cost $0.00084 at most, the scout's one beside them $0.00014.
    study = with_scout(paid_study(tmp_path, study_cap=0.0009))
    write_trials(study, items=1)
    assert "the scouts' prompts of 2 cells are not made yet, and are in none of the sums below" in run(study)
    assert "the cap may stop this run" not in run(study)
    write_scout(study)
    entry = cell(as_json(study), "letters/bought/sums")
    assert (entry["calls"], entry["new"], entry["scout"]) == (7, 7, {"new": 2, "alone": 1})
    assert entry["buying"]["cost_most"] == 7 * 140_000
    text = run(study)
    assert "2 cells are scouted first, and those that the frozen rule skips cost less; 4 of the new calls are" in text
    assert "2 of these for the scout alone" in text
    assert "study: 14 new calls" in text
    assert "the cap may stop this run: at most $0.000980" in text
    for name in ("bought", "planted"):
        scouted = [*read_trials(study).slice(0, 1).to_pylist(), *read_scout(study).slice(1).to_pylist()]
        buy(study, vendor, scouted, REPLY, model=name)
    entry = cell(as_json(study), "letters/bought/sums")
    assert (entry["calls"], entry["answered"], entry["new"], entry["scout"]) == (7, 2, 5, {"new": 0, "alone": 0})
    assert "scouted first" not in run(study)


@pytest.mark.parametrize("mode", ["batch", "live"])
def test_calls_in_a_batch_are_not_new(tmp_path, vendor, mode) -> None:
    study = paid_study(tmp_path, account={"mode": mode})
    write_trials(study, items=1)
    trials = read_table(study.layout.trials("letters", "sums"), SCHEMAS["trials"])
    plan = plan_calls(vendor, study.cell("letters", "bought", "sums"), trials, set(), seed=7)
    with Ledger(study.layout.ledger("letters", "bought", "sums"), study="paid", cell="letters/bought/sums") as ledger:
        sendings = [Sending(plan.keys[row], "{}", 140_000) for row in plan.order[:2]]
        Batches(ledger, frozen_sha256="none").intend("run-1", sendings, place="nowhere")
    entry = cell(as_json(study), "letters/bought/sums")
    assert (entry["calls"], entry["answered"], entry["under_way"], entry["new"]) == (6, 0, 2, 4)
    assert entry["buying"]["cost_most"] == 4 * 140_000
    # What is in the batch is reserved already.
    assert as_json(study)["whole"]["spent"] == 2 * 140_000
    assert "2 more in batches, to be collected" in run(study)


def test_calls_that_two_experiments_ask_word_for_word_are_told_with_what_the_copies_cost(tmp_path, vendor) -> None:
    study = paid_study(tmp_path, experiments=("letters", "again"))
    # Two items in six orders; the other experiment has one of them.
    write_trials(study, items=2)
    write_trials(study, items=1, experiment="again")
    assert as_json(study)["bought_again"] == {"calls": 6, "cost_about": 6 * (80 * 1_000 + 10 * 4_000)}
    assert "6 of the new calls are word for word also asked in another cell; each cell buys its own reply" in run(study)
    # What the first has bought, the second buys again all the same.
    trials = read_table(study.layout.trials("again", "sums"), SCHEMAS["trials"])
    keys = plan_calls(vendor, study.cell("again", "bought", "sums"), trials, set(), seed=7).keys
    with Ledger(study.layout.ledger("again", "bought", "sums"), study="paid", cell="again/bought/sums") as ledger:
        reply = canonical_json(REPLY.body()).decode()
        ledger.save([], [Sending(key, "{}", 140_000) for key in keys], frozen_sha256="none")
        ledger.save([Attempt(key, "answered", reply, None, 100) for key in keys], [], frozen_sha256="none")
    after = as_json(study)
    assert [cell(after, f"{name}/bought/sums")["new"] for name in ("letters", "again")] == [12, 0]
    assert after["bought_again"]["calls"] == 6


def test_calls_of_different_data_sets_are_no_copies(tmp_path, vendor) -> None:
    study = paid_study(tmp_path, datasets=("sums", "words"))
    for dataset in ("sums", "words"):
        write_trials(study, dataset)
    assert as_json(study)["bought_again"] == {"calls": 0, "cost_about": 0}
    assert "word for word" not in run(study)


def test_bought_replies_tell_what_the_others_may_cost_and_how_long_they_take(tmp_path, vendor) -> None:
    study = paid_study(tmp_path, account={"max_in_flight": 2}, datasets=("sums", "words"))
    for dataset in ("sums", "words"):
        write_trials(study, dataset, items=1)
    write_ledger(
        study.layout.ledger("letters", "bought", "sums"),
        [
            {"worst": 140_000, "charged": 96_000, "reply": REPLY.body()},
            {"worst": 140_000, "charged": 88_000, "reply": {**REPLY.body(), "output_tokens": 2, "latency_ms": 100.0}},
        ],
    )
    entry = cell(as_json(study), "letters/bought/words")
    # Means: 3 tokens out, 300 ms.
    assert entry["buying"]["output_about"] == 18
    assert entry["buying"]["cost_about"] == 6 * 80 * 1_000 + 18 * 4_000
    assert entry["time"]["seconds"] == pytest.approx(6 * 0.3 / 2)
    assert entry["time"]["basis"] == "300 ms a reply (mean of 2), 2 at once"
    assert "1 s (300 ms a reply (mean of 2), 2 at once)" in run(study)


def test_what_was_spent_and_what_the_caps_leave_is_said_per_account_and_study(tmp_path, vendor) -> None:
    study = paid_study(tmp_path, study_cap=0.10, account={"cap_usd": 0.08})
    write_trials(study, items=1)
    write_ledger(
        study.layout.ledger("letters", "bought", "sums"),
        [
            {"worst": 4 * CENT, "charged": CENT},
            {"worst": 4 * CENT, "charged": 4 * CENT, "outcome": "transport_error", "maybe_billed": True},
            {"worst": 2 * CENT},
        ],
    )
    plan = as_json(study)
    expected = {
        "spent": 7 * CENT,
        "at_worst": 6 * CENT,
        "sendings_at_worst": 2,
        "maybe_billed": 1,
        "cap": 10 * CENT,
        "left": 3 * CENT,
    }
    assert plan["whole"] == {"new": 12, **expected}
    account = plan["accounts"]["purse"]
    assert {key: account[key] for key in expected} == {**expected, "cap": 8 * CENT, "left": CENT}
    text = run(study)
    assert "spent so far $0.0700, of it $0.0600 at the worst case of 2 sendings; 1 sendings without a reply may" in text
    assert "accounts.purse.cap_usd $0.0800, left $0.0100" in text
    assert "money.cap_usd $0.1000, left $0.0300" in text


def test_accounts_that_the_study_no_longer_names_are_told_with_what_they_paid(tmp_path, vendor) -> None:
    study = paid_study(tmp_path, study_cap=0.10, account={"cap_usd": 0.08})
    write_trials(study, items=1)
    path = study.layout.ledger("letters", "bought", "sums")
    write_ledger(path, [{"worst": 7 * CENT, "charged": 7 * CENT}], account="older")
    text = run(study)
    assert "$0.0700 were paid by account 'older', which the study no longer names; it counts to the cap of the" in text
    assert "accounts.purse.cap_usd $0.0800, left $0.0100" in text
    plan = as_json(study)
    assert plan["strangers"] == {"older": 7 * CENT}
    assert (plan["accounts"]["purse"]["spent"], plan["accounts"]["purse"]["left"]) == (0, CENT)
    assert (plan["whole"]["spent"], plan["whole"]["left"]) == (7 * CENT, 3 * CENT)


def test_costs_are_shown_rounded_up_and_what_is_left_rounded_down(tmp_path, vendor) -> None:
    study = paid_study(tmp_path, study_cap=0.10)
    write_trials(study, items=1)
    write_ledger(study.layout.ledger("letters", "bought", "sums"), [{"worst": 2 * CENT, "charged": CENT + 1}])
    text = run(study)
    assert "spent so far $0.0101; money.cap_usd $0.1000, left $0.0899" in text
    # Six calls at 140,000 nano-USD.
    assert "$0.000840" in text


def test_a_cap_lowered_below_what_is_spent_leaves_less_than_nothing(tmp_path, vendor) -> None:
    study = paid_study(tmp_path, study_cap=0.01)
    write_trials(study, items=1)
    write_ledger(study.layout.ledger("letters", "bought", "sums"), [{"worst": 4 * CENT, "charged": 4 * CENT}])
    assert "money.cap_usd $0.0100, left -$0.0300" in run(study)


@pytest.mark.parametrize(("cap", "warned"), [(0.0008, True), (0.0009, False)])
def test_a_cap_that_may_stop_the_run_is_told_before(tmp_path, vendor, cap, warned) -> None:
    study = paid_study(tmp_path, study_cap=cap)
    write_trials(study, items=1)
    # Six calls at 140,000 nano-USD: $0.00084.
    assert ("the cap may stop this run" in run(study)) is warned


def test_without_a_cap_the_plan_says_that_there_is_none(tmp_path, vendor) -> None:
    study = paid_study(tmp_path)
    write_trials(study, items=1)
    assert "no money.cap_usd is set" in run(study)


@pytest.mark.parametrize(
    ("limits", "asking", "seconds", "basis"),
    [
        ({"requests_per_minute": 60}, Time(10.0, "r"), 120.0, "requests_per_minute: 60"),
        ({"tokens_per_minute": 6_000}, Time(10.0, "r"), 100.0, "tokens_per_minute: 6000"),
        ({"requests_per_minute": 60, "tokens_per_minute": 3_000}, None, 200.0, "at least, by tokens_per_minute: 3000;"),
        ({"requests_per_minute": 6_000}, Time(10.0, "replies"), 10.0, "replies"),
        ({}, None, None, "not known before the first reply"),
    ],
)
def test_the_time_is_that_of_the_slowest_limit_and_says_which(limits, asking, seconds, basis) -> None:
    account = Account(id="purse", key_env=None, **limits)
    time = paid_time(account, 120, 10_000, asking)
    assert time.seconds == (None if seconds is None else pytest.approx(seconds))
    assert time.basis.startswith(basis)
    assert paid_time(account, 0, 0, asking).seconds == 0.0


def test_free_vendors_are_planned_in_plain_words(tmp_path, vendor) -> None:
    body = json.loads(paid_study(tmp_path).path.read_text(encoding="utf-8"))
    body |= {"models": body["models"][1:], "accounts": [], "money": {}}
    body["experiments"][0]["models"] = ["planted"]
    (tmp_path / "paid.yaml").write_text(json.dumps(body), encoding="utf-8")
    from counterbalance.config import load_study

    study = load_study(tmp_path / "paid.yaml")
    write_trials(study, items=1)
    text = run(study)
    assert "6 new calls, about 0 s of computing; no money is spent by these vendors." in text
    assert "$" not in text
    # A paid model had this name once.
    write_ledger(study.layout.ledger("letters", "planted", "sums"), [{"worst": CENT, "charged": CENT}])
    assert "$0.0100 were paid by account 'purse', which the study no longer names\n" in run(study)
