from counterbalance.config import reference


def test_the_reference_page_and_the_schema_are_what_the_settings_say() -> None:
    assert reference.PAGE_PATH.read_text(encoding="utf-8") == reference.page(), "run `make reference`"
    assert reference.SCHEMA_PATH.read_text(encoding="utf-8") == reference.json_schema(), "run `make reference`"


def test_every_setting_has_a_meaning() -> None:
    rows = [line for line in reference.page().splitlines() if line.startswith("| `") and "`vendor`" not in line]
    empty = [line for line in rows if line.endswith("|  |") and "`kind`" not in line]
    assert rows
    assert not empty
