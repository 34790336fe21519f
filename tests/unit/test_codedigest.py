from counterbalance.codedigest import reachable, stage_digest


def reached(name: str) -> set[str]:
    return {entry.removeprefix("counterbalance.") for entry in reachable(frozenset({f"counterbalance.{name}"}))}


def test_a_stage_reaches_what_it_imports_directly_or_not() -> None:
    assert {"stages.score", "designs.mcq.score", "reading", "canonical"} <= reached("stages.score")


def test_buying_replies_does_not_depend_on_reading_or_reporting_them() -> None:
    assert not {name for name in reached("stages.query") if name.startswith(("reading", "report", "stats"))}


def test_scoring_does_not_depend_on_the_report_nor_the_report_on_the_vendors() -> None:
    assert not {name for name in reached("stages.score") if name.startswith(("report", "stats"))}
    assert not {name for name in reached("stages.report") if name.startswith("vendors.")}


def test_the_digest_is_stable_and_differs_between_stages() -> None:
    assert stage_digest("stages.score") == stage_digest("stages.score")
    assert stage_digest("stages.score") != stage_digest("stages.expand")
