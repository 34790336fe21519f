"""The loopback vendors against the real SDKs: what they send is understood, what they get they can read."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any, get_type_hints

import pytest

from loopback import Loopback, Usage, cost_nano_usd, count_tokens, in_process
from loopback.anthropic_wire import MESSAGES
from loopback.openai_wire import CHAT

PROMPT = "What is two and two?\nA. 3\nB. 4\nC. 5\nAnswer:"
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Clients:
    """The three SDKs, pointed at the server."""

    def __init__(self, url: str, key: str = "key") -> None:
        import anthropic
        import openai
        from google import genai

        self.openai: Any = openai.AsyncOpenAI(
            api_key=key, base_url=f"{url}/openai/v1", max_retries=0, http_client=openai.DefaultAioHttpClient()
        )
        self.anthropic: Any = anthropic.AsyncAnthropic(
            api_key=key, base_url=f"{url}/anthropic", max_retries=0, http_client=anthropic.DefaultAioHttpClient()
        )
        self.google: Any = genai.Client(api_key=key, http_options={"base_url": f"{url}/google", "timeout": 20_000})

    async def chat(self, **more: Any) -> Any:
        given = {"model": "m", "messages": [{"role": "user", "content": PROMPT}], "max_completion_tokens": 8, **more}
        return await self.openai.chat.completions.create(**given)

    async def message(self, **more: Any) -> Any:
        given = {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": PROMPT}], **more}
        return await self.anthropic.messages.create(**given)

    async def generate(self, **config: Any) -> Any:
        return await self.google.aio.models.generate_content(model="m", contents=PROMPT, config=config)

    async def close(self) -> None:
        await self.openai.close()
        await self.anthropic.close()
        await self.google.aio.aclose()


def run(scenario: Any, **settings: Any) -> Any:
    async def whole() -> Any:
        async with in_process(**settings) as (server, url):
            clients = Clients(url)
            try:
                return await scenario(server, clients)
            finally:
                await clients.close()

    return asyncio.run(whole())


def test_the_parameters_known_are_those_of_the_installed_sdks() -> None:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    assert set(get_type_hints(CompletionCreateParamsNonStreaming)) - {"stream"} == CHAT
    assert set(get_type_hints(MessageCreateParamsNonStreaming)) - {"stream"} == MESSAGES


def test_a_call_of_each_vendor_is_answered_counted_and_billed() -> None:
    async def scenario(server: Loopback, clients: Clients) -> None:
        chat = await clients.chat(temperature=0, seed=1, logprobs=True, top_logprobs=5)
        message = await clients.message()
        generated = await clients.generate(temperature=0.0, max_output_tokens=8, response_logprobs=True, logprobs=3)
        letters = {chat.choices[0].message.content, message.content[0].text, generated.text}
        assert len(letters) == 1
        assert letters < {"A", "B", "C"}
        listed = chat.choices[0].logprobs.content[0].top_logprobs
        assert [entry.token for entry in listed][:1] == list(letters)
        assert len(listed) == 5
        assert len(generated.candidates[0].logprobs_result.top_candidates[0].candidates) == 3
        # 43 bytes are 11 tokens of at most four bytes, the letter is one: 11 x 1 + 1 x 4 dollars per million.
        assert count_tokens(PROMPT) == 11
        assert (
            chat.usage.prompt_tokens == message.usage.input_tokens == generated.usage_metadata.prompt_token_count == 11
        )
        for vendor in ("openai", "anthropic", "google"):
            view = server.counts.vendors[vendor].view()
            assert (view["requests"], view["delivered"], view["bill_nano_usd"]) == (1, 1, 15_000)
        assert server.counts.vendors["openai"].replies == {chat._request_id: 15_000}
        assert server.counts.vendors["anthropic"].replies == {message._request_id: 15_000}
        assert server.counts.vendors["google"].replies == {generated.response_id: 15_000}

    run(scenario)


def test_decisions_of_both_vendors() -> None:
    async def scenario(server: Loopback, clients: Clients) -> None:
        choices = [{"value": label} for label in "ABC"]
        question = {"type": "choice", "name": "q", "instructions": "Choose.", "choices": choices}
        decided = await clients.openai.decisions.create(model="gpt-6-luna", input=PROMPT, questions=[question])
        shares = {entry.value: entry.probability for entry in decided.answers[0].probabilities}
        assert set(shares) == {"A", "B", "C"}
        assert sum(shares.values()) == pytest.approx(1.0)
        criteria = {label: label for label in "ABC"}
        asked = {"q": {"type": "choice", "instructions": "Choose.", "criteria": criteria}}
        answered = await clients.google.aio.decisions.create(model="models/d", input=PROMPT, questions=asked)
        assert answered.answers["q"].probabilities == pytest.approx(shares)
        assert answered.usage.total_input_tokens == decided.usage.input_tokens
        assert server.counts.endpoints == {"openai decisions": 1, "google decisions": 1}

    run(scenario)


def test_keys_versions_and_unknown_parameters_are_checked() -> None:
    import anthropic
    import openai
    from google.genai import errors

    async def scenario(server: Loopback, clients: Clients) -> None:
        with pytest.raises(openai.BadRequestError) as refused:
            await clients.chat(extra_body={"nonsense": 1})
        assert refused.value.code == "unknown_parameter"
        with pytest.raises(openai.BadRequestError, match="stream"):
            await clients.chat(stream=True)
        with pytest.raises(anthropic.BadRequestError, match="temperature"):
            await clients.message(extra_body={"temperature": 0})
        old = {"anthropic-version": "2023-06-01"}
        assert (await clients.message(extra_body={"temperature": 0}, extra_headers=old)).content
        server.apply({"refuses": {"m": ["temperature"]}, "keys": {"openai": "other", "anthropic": "o", "google": "o"}})
        with pytest.raises(openai.AuthenticationError):
            await clients.chat()
        with pytest.raises(anthropic.AuthenticationError):
            await clients.message()
        with pytest.raises(errors.ClientError) as wrong:
            await clients.generate()
        assert wrong.value.details["error"]["details"][0]["reason"] == "API_KEY_INVALID"
        server.apply({"keys": {}, "models": {"openai": ["n"]}})
        with pytest.raises(openai.NotFoundError):
            await clients.chat()
        with pytest.raises(errors.ClientError, match="temperature"):
            await clients.generate(temperature=0.0)
        assert server.counts.vendors["openai"].delivered == 0

    run(scenario)


def test_funds_end_and_can_be_topped_up() -> None:
    import anthropic
    import openai
    from google.genai import errors

    async def scenario(server: Loopback, clients: Clients) -> None:
        kinds = (openai.RateLimitError, anthropic.BadRequestError, errors.ClientError)
        calls = (clients.chat, clients.message, clients.generate)
        for call, kind in zip(calls, kinds, strict=True):
            await call()
            await call()
            with pytest.raises(kind):
                await call()
        server.apply({"funds_nano_usd": {}})
        for call in calls:
            await call()
        assert [counts.delivered for counts in server.counts.vendors.values()] == [3, 3, 3]

    run(scenario, funds_nano_usd={"openai": 15_001, "anthropic": 15_001, "google": 15_001})


@pytest.mark.parametrize("kind", ["reset_after", "html_200", "empty_200", "cut_body", "broken_json", "timeout"])
def test_work_that_is_lost_on_the_way_is_billed_but_not_delivered(kind: str) -> None:
    async def scenario(server: Loopback, clients: Clients) -> None:
        spoiled: Any = None
        patience = 0.5 if kind == "timeout" else 60.0
        try:
            spoiled = await clients.openai.with_options(timeout=patience).chat.completions.create(
                model="m", messages=[{"role": "user", "content": PROMPT}]
            )
        except Exception as error:
            spoiled = error
        assert not hasattr(spoiled, "choices") or spoiled.choices is None
        while server.counts.vendors["openai"].in_flight:
            await asyncio.sleep(0.01)
        assert (await clients.chat()).choices
        view = server.counts.vendors["openai"].view()
        assert (view["billed"], view["delivered"]) == (2, 1)
        assert (view["delivered_nano_usd"], view["undelivered_nano_usd"]) == (15_000, 15_000)
        assert view["outcomes"] == {kind: 1, "ok": 1}

    run(scenario, faults=[{"at": [0], "fault": {"kind": kind, "sleep_s": 1.0}}])


def test_a_reset_before_the_work_is_not_billed() -> None:
    import openai

    async def scenario(server: Loopback, clients: Clients) -> None:
        with pytest.raises(openai.APIConnectionError):
            await clients.chat()
        await clients.chat()
        view = server.counts.vendors["openai"].view()
        assert (view["requests"], view["repeats"], view["bill_nano_usd"]) == (2, 1, 15_000)

    run(scenario, faults=[{"sending": [1], "fault": {"kind": "reset"}}])


@pytest.mark.parametrize(
    ("hint", "header"), [("seconds", "retry-after"), ("date", "retry-after"), ("ms", "retry-after-ms")]
)
def test_hints_travel_in_their_headers(hint: str, header: str) -> None:
    import openai

    async def scenario(server: Loopback, clients: Clients) -> None:
        with pytest.raises(openai.RateLimitError) as refused:
            await clients.chat()
        assert header in refused.value.response.headers

    run(scenario, faults=[{"fault": {"kind": "rate_limit", "hint": hint, "wait_s": 2}}])


def test_the_share_of_faults_is_drawn_by_seed() -> None:
    from loopback.faults import Script
    from loopback.respondent import Ask

    rule = {"share": 0.2, "seed": 5, "faults": [{"kind": "overload"}, {"kind": "server"}]}
    ask = Ask("openai", "chat.completions", "m", "text")
    drawn = [[Script([rule]).pick(ask, n, 1)["kind"] for n in range(1000)] for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert 150 < sum(kind is not None for kind in drawn[0]) < 250
    assert {"overload", "server", None} == set(drawn[0])


def test_a_price_is_rounded_up_to_a_whole_nano_dollar() -> None:
    prices = {"input": 0.15, "cached_input": 0.0375, "output": 0.6, "batch_discount": 0.5}
    # 7 x 150 + 4 x 37.5 + 3 x 600 = 3,000; 1 x 37.5 is 38, half of it 19.
    assert cost_nano_usd(Usage(11, 4, 2, 1), prices) == 3000
    assert cost_nano_usd(Usage(1, 1, 0, 0), prices) == 38
    assert cost_nano_usd(Usage(1, 1, 0, 0), prices, batch=True) == 19


def test_settings_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="latency"):
        Loopback().apply({"latency": 1})
    with pytest.raises(ValueError, match="no such fault"):
        Loopback().apply({"faults": [{"fault": {"kind": "meteor"}}]})


async def _lines(found: AsyncIterator[Any]) -> list[Any]:
    return [entry async for entry in found]


def test_openai_batch() -> None:
    async def scenario(server: Loopback, clients: Clients) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": PROMPT}]}
        url = "/v1/chat/completions"
        lines = [{"custom_id": f"c{n}", "method": "POST", "url": url, "body": body} for n in range(3)]
        content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        api = clients.openai
        filed = await api.files.create(file=("in.jsonl", content, "application/jsonl"), purpose="batch")
        made = await api.batches.create(
            input_file_id=filed.id, endpoint=url, completion_window="24h", metadata={"run": "r1"}
        )
        done = await api.batches.retrieve(made.id)
        assert (done.status, done.metadata, done.request_counts.completed) == ("expired", {"run": "r1"}, 1)
        good = (await api.files.content(done.output_file_id)).text.splitlines()
        bad = (await api.files.content(done.error_file_id)).text.splitlines()
        assert [json.loads(line)["custom_id"] for line in good] == ["c2"]
        assert {json.loads(line)["custom_id"] for line in bad} == {"c0", "c1"}
        assert [batch.id for batch in (await api.batches.list()).data] == [made.id]
        assert server.counts.vendors["openai"].view()["bill_nano_usd"] == 7_500

    prices = {"openai": {"input": 1.0, "output": 4.0, "batch_discount": 0.5}}
    run(scenario, prices=prices, batch={"expired": [0], "errored": [1], "order": "reverse"})


def test_anthropic_batch() -> None:
    async def scenario(server: Loopback, clients: Clients) -> None:
        params = {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": PROMPT}]}
        api = clients.anthropic.messages.batches
        made = await api.create(requests=[{"custom_id": f"c{n}", "params": params} for n in range(3)])
        assert (await api.retrieve(made.id)).processing_status == "ended"
        found = await _lines(await api.results(made.id))
        assert [(entry.custom_id, entry.result.type) for entry in found] == [
            ("c2", "succeeded"),
            ("c1", "errored"),
            ("c0", "expired"),
        ]
        assert [batch.id for batch in (await api.list()).data] == [made.id]
        assert server.counts.vendors["anthropic"].delivered == 1

    run(scenario, batch={"expired": [0], "errored": [1], "order": "reverse"})


def test_google_batch_by_file() -> None:
    async def scenario(server: Loopback, clients: Clients) -> None:
        request = {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]}
        content = b"".join(json.dumps({"key": f"c{n}", "request": request}).encode() + b"\n" for n in range(3))
        api = clients.google.aio
        filed = await api.files.upload(file=io.BytesIO(content), config={"mime_type": "jsonl"})
        made = await api.batches.create(model="m", src=filed.name, config={"display_name": "r1"})
        done = await api.batches.get(name=made.name)
        assert (done.state.name, done.display_name) == ("JOB_STATE_SUCCEEDED", "r1")
        lines = (await api.files.download(file=done.dest.file_name)).splitlines()
        assert [json.loads(line)["key"] for line in lines] == ["c2", "c1", "c0"]
        assert ["response" in json.loads(line) for line in lines] == [True, False, False]
        assert [job.name async for job in await api.batches.list()] == [made.name]
        assert server.counts.vendors["google"].delivered == 1

    run(scenario, batch={"expired": [0], "errored": [1], "order": "reverse"})
