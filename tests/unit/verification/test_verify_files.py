"""Listing and hashing: a bit flipped anywhere, a file missing, a file too many, a manifest that is none."""

import pytest
from verification_cases import ESTIMATES, ITEMS, OUTCOMES, REPLIES, TRIALS

from counterbalance.canonical import canonical_json, parse_json
from counterbalance.errors import VerificationError
from counterbalance.stages.verify import verify
from counterbalance.verification.findings import Findings
from counterbalance.verification.manifest import read_manifest
from counterbalance.verification.walk import check_files, check_listing

FILES = [
    ITEMS,
    "results/planted/rejected/sums.parquet",
    TRIALS,
    REPLIES,
    OUTCOMES,
    ESTIMATES,
    "results/planted/estimates.parquet",
    "results/planted/predictions.parquet",
    "results/planted/study.json",
    "results/planted/report.html",
    "results/planted/figures/hero.svg",
]


def problems(project) -> list[str]:
    """Return what listing and hashing alone find."""
    findings = Findings()
    manifest = read_manifest(project.study.layout.manifest)
    check_listing(project.study.layout, manifest, findings)
    check_files(project.root, manifest, findings)
    return [text for kind, text in findings.lines if kind == "FAIL"]


def test_an_untouched_study_has_no_problem(project) -> None:
    assert problems(project) == []


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_in_an_artifact_or_its_record_is_found(project, name) -> None:
    for place in (0.0, 0.02, 0.3, 0.6, 0.95, 1.0):
        original = project.path(name).read_bytes()
        project.flip(name, place)
        (line,) = problems(project)
        assert line.startswith(f"{name}: ")
        assert "bytes" in line
        project.replace(name, original)
    project.flip(f"{name}.record.json")
    assert problems(project) == [f"{name}.record.json: its bytes are not those listed; get it again"]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_artifact_or_record_is_named(project, name) -> None:
    project.path(f"{name}.record.json").unlink()
    assert problems(project) == [f"{name}.record.json: the record is not there; get it again"]
    project.path(name).unlink()
    assert problems(project) == [f"{name}: listed in the manifest and not there; get it again"]


@pytest.mark.parametrize("name", ["cells/letters/fair/sums.parquet", "notes.txt", "figures/more.svg", "x.record.json"])
def test_a_file_too_many_is_named(project, name) -> None:
    path = project.results / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"more")
    assert problems(project) == [f"results/planted/{name}: there and not listed in the manifest; move it away"]


def test_what_a_killed_run_or_a_verification_leaves_is_no_artifact(project) -> None:
    for name in (".trials.parquet.x.part", "items/.DS_Store", "verification.txt"):
        (project.results / name).write_bytes(b"left")
    project.study.layout.receipt.unlink()
    assert problems(project) == []


def edit(change):
    def made(data: bytes) -> bytes:
        body = parse_json(data, source="manifest")
        change(body)
        return canonical_json(body) + b"\n"

    return made


MALFORMED = {
    "empty": (lambda data: b"", "not valid JSON"),
    "cut": (lambda data: data[:-9], "not valid JSON"),
    "not UTF-8": (lambda data: b"\xff" + data, "not valid JSON"),
    "a list": (lambda data: b"[]\n", r"\(whole file\)"),
    "key twice": (lambda data: data.replace(b'{"artifacts"', b'{"study":"x","artifacts"'), "twice"),
    "not a number": (lambda data: data.replace(b'"rows":30', b'"rows":NaN', 1), "NaN"),
    "a real": (lambda data: data.replace(b'"rows":30', b'"rows":30.5', 1), "rows"),
    "text for a number": (lambda data: data.replace(b'"rows":30', b'"rows":"30"', 1), "rows"),
    "white space": (lambda data: data.replace(b'"artifacts":', b'"artifacts": '), "not canonical"),
    "no newline": (lambda data: data[:-1], "not canonical"),
    "CRLF": (lambda data: data.replace(b"\n", b"\r\n"), "not canonical"),
    "unknown key": (edit(lambda body: body.update(note="x")), "key note"),
    "missing key": (edit(lambda body: body.pop("study")), "key study"),
    "other schema": (edit(lambda body: body.update(schema="counterbalance/manifest/2")), "key schema"),
    "no frozen": (edit(lambda body: body.update(frozen=[])), "key frozen"),
    "short hash": (edit(lambda body: body["artifacts"][0].update(sha256="sha256:00")), "sha256"),
    "other hash": (edit(lambda body: body["artifacts"][0].update(sha256="md5:00")), "sha256"),
    "absolute path": (edit(lambda body: body["artifacts"][0].update(path="/etc/passwd")), "stay inside"),
    "path out": (edit(lambda body: body["artifacts"][0].update(path="results/../../x")), "stay inside"),
    "path out of an input": (
        edit(lambda body: body["artifacts"][-1]["inputs"].append({"path": "..", "sha256": "sha256:" + "0" * 64})),
        "stay inside",
    ),
    "order": (edit(lambda body: body["artifacts"].reverse()), "in order"),
    "path twice": (edit(lambda body: body["artifacts"].insert(0, body["artifacts"][0])), "each path once"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_manifest_is_refused(finished, tmp_path, name) -> None:
    change, message = MALFORMED[name]
    data = finished.study.layout.manifest.read_bytes()
    assert change(data) != data
    folder = tmp_path / "results" / "planted"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(change(data))
    with pytest.raises(VerificationError, match=message):
        verify(folder)


def test_a_missing_manifest_is_refused(tmp_path) -> None:
    (tmp_path / "results" / "planted").mkdir(parents=True)
    with pytest.raises(VerificationError, match="there is no manifest here"):
        verify(tmp_path / "results" / "planted")
