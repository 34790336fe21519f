import pytest
from aiohttp import web
from scripted import GOOD, KEY_ENV, VENDORS, ask


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
