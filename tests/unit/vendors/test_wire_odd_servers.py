"""What servers do that no vendor's documentation has: cookies, odd status lines. Written to the socket by hand."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from scripted import GOOD, KEY_ENV, VENDORS, make_trial, make_vendor

from counterbalance.errors import VendorError
from counterbalance.vendors.base import TransportError


@asynccontextmanager
async def raw_server(answer: bytes, seen: list[bytes], *, hangs_up: bool = False) -> AsyncIterator[int]:
    """Answer every request with these bytes; yields the port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
                seen.append(head)
                writer.write(answer)
                await writer.drain()
                if hangs_up:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        # The other ends of the connections have their turn, to be closed as well.
        await asyncio.sleep(0)


def ask_twice(
    vendor: str, status: bytes, headers: bytes = b"", body: bytes | None = None, *, cut: int = 0
) -> tuple[list[object], list[bytes]]:
    """Ask a named host, since no cookies are kept for an address; return replies or errors, and the heads.

    The server promises `cut` bytes more than it sends.
    """
    body = json.dumps(GOOD[vendor]).encode() if body is None else body
    headers += b"Content-Type: application/json\r\nContent-Length: %d\r\n" % (len(body) + cut)
    answer = b"HTTP/1.1 %b\r\n%b\r\n%b" % (status, headers, body)
    seen: list[bytes] = []

    async def run() -> list[object]:
        found: list[object] = []
        async with raw_server(answer, seen, hangs_up=cut > 0) as port:
            url = f"http://localhost:{port}{VENDORS[vendor][2]}"
            async with make_vendor(vendor, base_url=url) as asked:
                for _ in range(2):
                    trial = make_trial()
                    try:
                        found.append(await asked.ask(asked.request(trial), trial))
                    except Exception as error:
                        found.append(error)
        return found

    return asyncio.run(run()), seen


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv(KEY_ENV, "test-key-0123456789")


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_no_cookie_goes_back(vendor):
    found, seen = ask_twice(vendor, b"200 OK", b"Set-Cookie: sid=abc; Path=/\r\n")
    assert [reply.text for reply in found] == ["B", "B"]
    assert len(seen) == 2
    assert not any(b"\r\ncookie:" in head for head in seen)


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_a_reason_phrase_in_another_encoding_stops_no_vendor(vendor):
    found, _ = ask_twice(vendor, b"200 Ausgef\xfchrt")
    for one in found:
        if isinstance(one, TransportError):
            # An answer came, so it may be charged.
            assert one.maybe_billed
        else:
            assert one.text == "B"


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_a_status_that_http_does_not_have_is_an_error_of_ours(vendor):
    found, _ = ask_twice(vendor, b"000 Nothing")
    assert all(isinstance(one, TransportError | VendorError) for one in found)


@pytest.mark.parametrize("vendor", list(VENDORS))
@pytest.mark.parametrize("status", [b"200 OK", b"429 Slow", b"503 Busy"])
def test_a_body_that_is_nested_too_deeply_stops_no_vendor(vendor, status):
    found, _ = ask_twice(vendor, status, body=b"[" * 100_000)
    assert all(isinstance(one, TransportError) for one in found)


@pytest.mark.parametrize("vendor", list(VENDORS))
@pytest.mark.parametrize("host", ["a..b.invalid", "a" * 70 + ".invalid"])
def test_a_host_that_no_name_server_takes_is_told_before_anything_is_charged(vendor, host):
    async def run() -> None:
        async with make_vendor(vendor, base_url=f"http://{host}{VENDORS[vendor][2]}") as asked:
            trial = make_trial()
            await asked.ask(asked.request(trial), trial)

    with pytest.raises(VendorError, match="base_url"):
        asyncio.run(run())


@pytest.mark.parametrize("vendor", list(VENDORS))
@pytest.mark.parametrize(("body", "cut"), [(b"this is no gzip", 0), (b"", 40), (b'{"error": {"mess', 40)])
def test_a_rate_limit_counts_although_its_text_cannot_be_read(vendor, body, cut):
    headers = b"Retry-After: 7\r\n" + (b"" if cut else b"Content-Encoding: gzip\r\n")
    found, _ = ask_twice(vendor, b"429 Too Many Requests", headers, body, cut=cut)
    for error in found:
        assert isinstance(error, TransportError)
        assert (error.kind, error.wait_s, error.maybe_billed) == ("rate_limit", 7.0, False)
