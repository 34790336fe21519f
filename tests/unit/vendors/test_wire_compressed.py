import json

import pytest
from aiohttp import web
from scripted import GOOD, KEY_ENV, VENDORS, ask, failure, says

from counterbalance.vendors.base import TransportError


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_compressed_answers_are_read_by_every_sdk(vendor, monkeypatch):
    monkeypatch.setenv(KEY_ENV, "test-key-0123456789")

    async def compressed(request: web.Request) -> web.StreamResponse:
        assert "gzip" in request.headers["Accept-Encoding"]
        response = web.json_response(GOOD[vendor])
        response.enable_compression(web.ContentCoding.gzip)
        return response

    reply, _ = ask(vendor, compressed)
    assert (reply.status, reply.text) == ("ok", "B")


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_any_success_with_an_answer_in_it_is_the_answer(vendor, monkeypatch):
    monkeypatch.setenv(KEY_ENV, "test-key-0123456789")
    for answer in (
        says(GOOD[vendor], 201),
        says(GOOD[vendor], 206),
        says(b"\xef\xbb\xbf" + json.dumps(GOOD[vendor]).encode()),
    ):
        reply, _ = ask(vendor, answer)
        assert (reply.status, reply.text, reply.input_tokens) == ("ok", "B", 40)


@pytest.mark.parametrize("vendor", list(VENDORS))
@pytest.mark.parametrize("status", [202, 204])
def test_a_success_without_an_answer_may_have_been_billed(vendor, status, monkeypatch):
    monkeypatch.setenv(KEY_ENV, "test-key-0123456789")
    error, _ = failure(vendor, says(b"", status))
    assert isinstance(error, TransportError)
    assert (error.kind, error.maybe_billed) == ("garbled", True)
