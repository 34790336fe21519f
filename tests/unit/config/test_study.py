import pytest

from counterbalance.config import load_study
from counterbalance.errors import ConfigError


def test_defaults_are_resolved_and_hashed(write_study, study_text) -> None:
    study = load_study(write_study(study_text))
    assert study.resolved["analysis"]["resamples"] == 9999
    assert study.resolved["experiments"][0]["arrangement"] == {"scheme": "exhaustive", "n": None}
    assert [cell.name for cell in study.cells()] == ["letters/planted/sums"]
    spelled_out = study_text + "analysis: {alpha: 0.05}\n"
    assert load_study(write_study(spelled_out)).sha256 == study.sha256
    changed = study_text + "analysis: {alpha: 0.01}\n"
    assert load_study(write_study(changed)).sha256 != study.sha256


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("seed: 7", "seed: 7\nsede: 8", r"line 6, key sede: no such key"),
        ("seed: 7", "seed: '7'", r"line 5, key seed: expected a whole number"),
        ("seed: 7", "seed: 7.5", r"key seed"),
        ("seed: 7", "seed: 7\nseed: 8", r"line 6: key 'seed' is there twice"),
        ("title: A tiny study", "title: 12", r"key title: expected text"),
        ("id: tiny", "id: 2026_01", r"line 2: '2026_01' is read as int by some"),
        ("id: tiny", "id: 007", r"line 2: '007' is read as int by some"),
        ("id: tiny", "id: no", r"line 2: 'no' is read as bool by some"),
        ("id: tiny", "id: 'no'", r"'no' cannot be an id: some YAML readers"),
        ("id: tiny", "id: '2026_01'", r"'2026_01' cannot be an id: start with a letter"),
        ("id: tiny", "id: 1.10", r"line 2, key id: expected text.*found 1.1"),
        ("id: tiny", "id: 'a b'", r"cannot be an id"),
        ("id: tiny", "id: naïve", r"cannot be an id"),
        ("id: tiny", "id: 12:30:00", r"line 2: '12:30:00' is read as int"),
        ("id: tiny", "id: 2026-01-01", r"read as timestamp"),
        ("- id: sums", "- id: sums\n    exclude: [everything]", r"exclude.0"),
        ("models: [planted]", "models: [other]", r"'other' is not among \['planted'\]"),
        ("models: [planted]", "models: [planted, planted]", r"listed twice"),
        ("kind: generate", "kind: gaze", r"read"),
        ("key: {type: letter}", "key: {type: index}", r"`base`"),
        ("style: plain", "style: plain, system: Hi", r"needs `style: chat`"),
        ("style: plain", "style: plain, labels: [A, a]", r"case folding"),
        ("slot_bonus: [0.5, 0.0]", "slot_bonus: [0.5, .nan]", r"read as float by some"),
        ("preregistration: null\n", "", r"key preregistration: this key is needed"),
    ],
)
def test_what_is_wrong_is_refused_with_file_line_and_key(write_study, study_text, old, new, expected) -> None:
    assert old in study_text
    with pytest.raises(ConfigError, match=r"tiny\.yaml") as caught:
        load_study(write_study(study_text.replace(old, new, 1)))
    assert caught.match(expected)


@pytest.mark.parametrize("twin", ["Planted", "PLANTED"])
def test_ids_that_a_file_system_would_join_are_refused(write_study, study_text, twin) -> None:
    line = "  - {id: planted, vendor: simulated, slot_bonus: [0.5, 0.0]}\n"
    with pytest.raises(ConfigError, match="same on some file systems"):
        load_study(write_study(study_text.replace(line, line + line.replace("planted", twin))))


@pytest.mark.parametrize(("content", "expected"), [("", "empty"), ("a: [1", "not valid YAML"), ("[]", "tiny.yaml")])
def test_files_that_are_no_study(write_study, content, expected) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_study(write_study(content))


def test_a_missing_file_says_so(tmp_path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_study(tmp_path / "none.yaml")


def test_a_byte_order_mark_does_no_harm(write_study, study_text) -> None:
    path = write_study(study_text)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_study(path).config.id == "tiny"
