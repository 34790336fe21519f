"""A canary for a key, through every way in which a call can fail: it must not be in anything that leaves `ask`."""

import asyncio
import io
import logging
import pickle
import socket
import sys
import traceback

import pytest
from scripted import KEY_ENV, VENDORS, Server, bent, cuts_short, hangs, make_trial, make_vendor, resets, says

from counterbalance.errors import CounterbalanceError, KeyRefusedError, OutOfFundsError, VendorError
from counterbalance.vendors.base import TransportError

CANARY = "canary-key-5f2e8d7a1b"


def echo(status: int) -> object:
    """A server that quotes the key in every form it can."""
    quoted = f"Incorrect API key provided: {CANARY} (Bearer {CANARY})"
    body = {"error": {"message": quoted, "type": quoted, "code": CANARY, "status": quoted, "param": CANARY}}
    return says(body, status, retry_after=CANARY, x_request_id=CANARY)


FAILURES = {
    "refused key": (echo(401), KeyRefusedError),
    "no funds": (echo(402), OutOfFundsError),
    "bad request": (echo(400), VendorError),
    "no model": (echo(404), VendorError),
    "redirect": (says(f"<a href='{CANARY}'>", 307, location=f"http://{CANARY}@127.0.0.1:1/"), VendorError),
    "rate limit": (echo(429), TransportError),
    "server error": (echo(500), TransportError),
    "overload": (echo(529), TransportError),
    "html": (says(f"<html>{CANARY}</html>"), TransportError),
    "error in a 200": (echo(200), TransportError),
    "empty object": (says({}), TransportError),
    "broken json": (says(b'{"a": "' + CANARY.encode()), TransportError),
    "not utf-8": (says(b'{"choices": "\xff' + CANARY.encode() + b'"}'), TransportError),
    "reset": (resets, TransportError),
    "cut body": (cuts_short, TransportError),
    "time-out": (hangs, TransportError),
}


async def fail(vendor: str, answer, *, port: int | None = None) -> BaseException:
    # Only where silence is the failure may a busy machine be taken for it.
    account = {"timeout_s": 0.3 if answer is hangs else 60.0}
    async with Server([answer]) as server:
        at = server.port if port is None else port
        async with make_vendor(vendor, port=at, account=account) as asked:
            trial = make_trial()
            try:
                await asked.ask(asked.request(trial), trial)
            except Exception as error:
                return error
    raise AssertionError("no failure")


def everything_of(error: BaseException) -> str:
    """All that a log, a report of a crash or another process could get hold of."""
    shown = io.StringIO()
    chain, seen = [error], set()
    while chain:
        one = chain.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        chain += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
        print(str(one), repr(one), one.args, vars(one), file=shown)
        report = traceback.TracebackException(type(one), one, one.__traceback__, capture_locals=True)
        print("".join(report.format()), file=shown)
        frame = one.__traceback__
        while frame is not None:
            print(frame.tb_frame.f_locals, file=shown)
            frame = frame.tb_next
    try:
        data = pickle.dumps(error)
    except Exception as unpicklable:
        data = repr(unpicklable).encode()
    return shown.getvalue() + data.decode("latin-1")


@pytest.fixture
def every_log(monkeypatch):
    """All records, also of the SDKs' own loggers, at the lowest level they would speak at."""
    monkeypatch.setenv(KEY_ENV, CANARY)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [*root.handlers, handler])
    before = root.level
    root.setLevel(logging.DEBUG)
    yield stream
    root.setLevel(before)


@pytest.mark.parametrize("vendor", list(VENDORS))
@pytest.mark.parametrize("failure", list(FAILURES))
def test_no_failure_lets_the_key_out(vendor, failure, every_log):
    answer, kind = FAILURES[failure]
    error = asyncio.run(fail(vendor, answer))
    assert isinstance(error, kind)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert CANARY not in everything_of(error)
    assert CANARY not in every_log.getvalue()
    assert len(str(error)) <= 500


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_a_server_that_is_not_there(vendor, every_log):
    # Bound but not listening: nobody else gets this port meanwhile, and it takes no connection.
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        error = asyncio.run(fail(vendor, resets, port=deaf.getsockname()[1]))
    assert isinstance(error, TransportError)
    assert (error.kind, error.maybe_billed) == ("connection", False)
    assert CANARY not in everything_of(error)
    assert CANARY not in every_log.getvalue()


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_a_call_that_is_stopped_from_outside_shows_nothing_either(vendor, every_log):
    async def run() -> BaseException:
        async with Server([hangs]) as server, make_vendor(vendor, port=server.port) as asked:
            trial = make_trial()
            try:
                async with asyncio.timeout(0.2):
                    await asked.ask(asked.request(trial), trial)
            except TimeoutError as error:
                return error
        raise AssertionError("no time-out")

    error = asyncio.run(run())
    assert CANARY not in everything_of(error)
    assert CANARY not in every_log.getvalue()


@pytest.mark.parametrize("vendor", list(VENDORS))
def test_a_client_that_cannot_be_made_shows_nothing(vendor, monkeypatch):
    monkeypatch.setenv(KEY_ENV, CANARY)
    asked = make_vendor(vendor)

    async def broken(key: str) -> None:
        raise ValueError(f"no client with {key}")

    monkeypatch.setattr(asked, "_open", broken)

    async def run() -> BaseException:
        try:
            await asked.__aenter__()
        except CounterbalanceError as error:
            return error
        raise AssertionError("it opened")

    error = asyncio.run(run())
    assert "no client with [key]" in str(error)
    assert CANARY not in everything_of(error)


@pytest.mark.parametrize(
    ("vendor", "path"),
    [
        ("openai", ("choices", 0, "message", "content")),
        ("anthropic", ("content", 1, "text")),
        ("google", ("candidates", 0, "content", "parts", 1, "text")),
    ],
)
def test_a_reply_that_repeats_the_key_is_kept_without_it(vendor, path, monkeypatch):
    monkeypatch.setenv(KEY_ENV, CANARY)

    async def run() -> object:
        body = bent(vendor, *path, to=f"The key is {CANARY}.")
        async with (
            Server([says(body, x_request_id=CANARY, request_id=CANARY)]) as server,
            make_vendor(vendor, port=server.port) as asked,
        ):
            trial = make_trial()
            return await asked.ask(asked.request(trial), trial)

    reply = asyncio.run(run())
    assert reply.text == "The key is [key]."
    assert CANARY not in repr(reply)


def test_the_search_itself_finds_a_key_that_leaks():
    secret = CANARY
    try:
        try:
            raise ValueError("inner")
        except ValueError:
            raise KeyError("outer")  # noqa: B904 - the context is what is searched
    except KeyError:
        found = everything_of(sys.exc_info()[1])
    assert secret in found
