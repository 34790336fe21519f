"""Bytes from the project or the hub: pinned, hashed, kept by hash; every failure says what to do."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from counterbalance.canonical import sha256_bytes
from counterbalance.errors import ConfigError, InputError
from counterbalance.items import hub
from counterbalance.items.hub import parse_hub_path
from counterbalance.items.source import cache_folder, read_source

REVISION = "0123456789abcdef0123456789abcdef01234567"
PATH = f"hf://datasets/some-owner/some.set@{REVISION}/test data/items é.csv"
DATA = b"question,a,b,key\nq?,1,2,A\n"
TOKEN = "hf_do_not_tell"


class Hub:
    """A small server that answers as told and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = DATA
        self.may_answer = threading.Event()
        self.may_answer.set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append((self.path, self.headers.get("Authorization")))
                owner.may_answer.wait(60)
                headers = {"Content-Length": str(len(owner.body)), **owner.headers}
                if "/moved/" in self.path:
                    self.send_response(200)
                    headers.pop("Location", None)
                else:
                    self.send_response(owner.status)
                for name, value in headers.items():
                    self.send_header(name, value)
                # A client that has gone away is what some tests are about.
                with suppress(ConnectionError):
                    self.end_headers()
                    self.wfile.write(owner.body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.may_answer.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[Hub]:
    server = Hub()
    monkeypatch.setenv("HF_ENDPOINT", server.url + "/")
    monkeypatch.setenv("COUNTERBALANCE_CACHE", str(tmp_path / "kept"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield server
    server.close()


@pytest.fixture
def remote(dataset):
    return dataset(path=PATH, sha256=sha256_bytes(DATA))


def test_a_pinned_file_is_fetched_once_and_kept_by_its_hash(server, remote, tmp_path) -> None:
    first, second = read_source(remote, tmp_path), read_source(remote, tmp_path)
    assert first == second
    assert (first.data, first.sha256, first.path) == (DATA, sha256_bytes(DATA), None)
    place = f"/datasets/some-owner/some.set/resolve/{REVISION}/test%20data/items%20%C3%A9.csv"
    assert server.asked == [(place, None)]
    assert [path.name for path in cache_folder().iterdir()] == [sha256_bytes(DATA).removeprefix("sha256:")]


def test_a_damaged_copy_is_fetched_again(server, remote, tmp_path) -> None:
    read_source(remote, tmp_path)
    (kept,) = cache_folder().iterdir()
    kept.write_bytes(DATA[:-5])
    assert read_source(remote, tmp_path).data == DATA
    assert len(server.asked) == 2
    assert kept.read_bytes() == DATA


def test_other_bytes_are_refused_and_not_kept(server, remote, tmp_path) -> None:
    server.body = DATA.replace(b"2", b"3")
    with pytest.raises(InputError, match=r"items é\.csv: its hash is sha256:\w+, expected sha256:\w+; fetch"):
        read_source(remote, tmp_path)
    assert not cache_folder().exists()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, "answered 404; no such file at this revision"),
        (401, "answered 401; .*HF_TOKEN"),
        (403, "answered 403; .*terms"),
        (503, "answered 503; try again later"),
    ],
)
def test_a_refusal_says_what_to_do(server, remote, tmp_path, status, expected) -> None:
    server.status = status
    with pytest.raises(InputError, match=expected):
        read_source(remote, tmp_path)


def test_a_silent_server_is_not_waited_for(server, remote, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(hub, "_SILENCE_S", 0.1)
    server.may_answer.clear()
    with pytest.raises(InputError, match=r"silent for 0\.1 s"):
        read_source(remote, tmp_path)


def test_a_body_that_breaks_off_is_noticed(server, remote, tmp_path, monkeypatch) -> None:
    server.headers = {"Content-Length": str(len(DATA) + 7), "Connection": "close"}
    with pytest.raises(InputError, match=f"broke after {len(DATA)} of {len(DATA) + 7} bytes"):
        read_source(remote, tmp_path)


def test_no_server_at_all(server, remote, tmp_path, monkeypatch) -> None:
    # Bound but not listening: nobody else gets this port meanwhile, and it takes no connection.
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        with pytest.raises(InputError, match="could not be fetched"):
            read_source(remote, tmp_path)


def test_the_token_goes_to_the_hub_and_no_further(server, remote, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    other = Hub()
    try:
        server.status, server.headers = 302, {"Location": other.url + "/moved/x"}
        assert read_source(remote, tmp_path).data == DATA
    finally:
        other.close()
    assert [token for _, token in server.asked] == [f"Bearer {TOKEN}"]
    assert other.asked == [("/moved/x", None)]


def test_the_token_stays_with_a_redirect_on_the_same_server(server, remote, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    server.status, server.headers = 307, {"Location": "/moved/x"}
    assert read_source(remote, tmp_path).data == DATA
    assert [token for _, token in server.asked] == [f"Bearer {TOKEN}"] * 2


@pytest.mark.parametrize("status", [401, 500])
def test_the_token_is_never_told(server, remote, tmp_path, monkeypatch, status) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    server.status = status
    with pytest.raises(InputError) as caught:
        read_source(remote, tmp_path)
    assert TOKEN not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("hf://datasets/o/n@main/f.csv", "'main' is not a commit; branches and tags can move"),
        ("hf://datasets/o/n@0123abc/f.csv", "not a commit"),
        (f"hf://datasets/o/n@{REVISION.upper()}/f.csv", "not a commit"),
        ("hf://datasets/o/n/f.csv", "expected hf://datasets/OWNER/NAME@REVISION/FILE"),
        (f"hf://o/n@{REVISION}/f.csv", "expected hf://"),
        (f"hf://datasets/o/n@{REVISION}/", "expected hf://"),
        (f"hf://datasets/o/n@{REVISION}/../f.csv", "expected hf://"),
    ],
)
def test_a_path_that_is_not_pinned_is_refused(path, expected) -> None:
    with pytest.raises(ConfigError, match=expected):
        parse_hub_path(path)


def test_a_hub_path_is_written_as_it_was_read() -> None:
    assert str(parse_hub_path(PATH)) == PATH


def test_a_hub_path_needs_a_hash(server, dataset, tmp_path) -> None:
    with pytest.raises(ConfigError, match="`sha256` is needed"):
        read_source(dataset(path=PATH), tmp_path)
    assert server.asked == []


def test_a_local_file_has_to_have_the_stated_hash(dataset, tmp_path) -> None:
    path = tmp_path / "sums.csv"
    path.write_bytes(DATA)
    assert read_source(dataset(sha256=sha256_bytes(DATA)), tmp_path).path == path
    path.write_bytes(DATA.replace(b"q?", b"r?"))
    with pytest.raises(InputError, match=r"sums\.csv: its hash is .*fetch the file again"):
        read_source(dataset(sha256=sha256_bytes(DATA)), tmp_path)


@pytest.mark.parametrize(("stated", "there", "named"), [(b"\n", b"\r\n", "LF"), (b"\r\n", b"\n", "CRLF")])
def test_rewritten_line_ends_are_named_and_still_refused(dataset, tmp_path, stated, there, named) -> None:
    (tmp_path / "sums.csv").write_bytes(DATA.replace(b"\n", there))
    with pytest.raises(InputError, match=f"with {named} line ends it would match.*autocrlf"):
        read_source(dataset(sha256=sha256_bytes(DATA.replace(b"\n", stated))), tmp_path)


def test_a_file_outside_the_project_is_refused(dataset, tmp_path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "sums.csv").write_bytes(DATA)
    (root / "link.csv").symlink_to(tmp_path / "sums.csv")
    for path in ("../sums.csv", str(tmp_path / "sums.csv"), "link.csv"):
        with pytest.raises(ConfigError, match="outside the project"):
            read_source(dataset(path=path), root)
    with pytest.raises(ConfigError, match="no such file"):
        read_source(dataset(path="none.csv"), root)
