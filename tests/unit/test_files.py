import pytest

from counterbalance.files import create_bytes, replacing, write_bytes, write_json


def test_replacing_leaves_the_old_file_when_the_block_fails(tmp_path) -> None:
    path = tmp_path / "a b" / "é.txt"
    write_bytes(path, b"old")

    def fail_half_way() -> None:
        with replacing(path) as part:
            part.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in path.parent.iterdir()] == ["é.txt"]


def test_json_files_are_canonical_with_a_final_newline(tmp_path) -> None:
    write_json(tmp_path / "x.json", {"b": 1, "a": [1.0]})
    assert (tmp_path / "x.json").read_bytes() == b'{"a":[1],"b":1}\n'


def test_create_refuses_a_taken_name_and_keeps_its_content(tmp_path) -> None:
    path = tmp_path / "frozen.json"
    create_bytes(path, b"first")
    with pytest.raises(FileExistsError):
        create_bytes(path, b"second")
    assert path.read_bytes() == b"first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["frozen.json"]
