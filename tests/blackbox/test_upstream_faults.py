"""Providers that fail in every way, seen through the whole daemon, and clients that leave or use the SDK."""

import contextlib
import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from tests.fakes.background import Provider, background_upstream
from tests.fakes.daemon import Daemon, free_port, running_daemon
from tests.fakes.upstream import (
    CUT,
    SILENCE,
    Reply,
    anthropic_events,
    json_reply,
    ndjson,
    ollama_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)
from tests.fakes.wire import Reply as Answer
from tests.fakes.wire import send

PASSWORD = "correct horse"
KEY = "sk-upstream-canary-0123456789abcdef"
PROVIDERS = """
[[providers]]
name = "hosted"
base_url = "{url}/v1"
prefix = "o."
key = "{key}"

[[providers]]
name = "native"
kind = "anthropic"
base_url = "{url}"
prefix = "a."
key = "{key}"

[[providers]]
name = "runtime"
kind = "ollama"
base_url = "{url}"
prefix = "l."

[[providers]]
name = "patient"
base_url = "{url}/v1"
prefix = "p."
first_byte_timeout = 60
stream_idle_timeout = 60
"""
CHAT = "/api/chat/completions"
NAMES = {"o.m": "hosted", "a.m": "native", "l.m": "runtime"}
MODELS = tuple(NAMES)


@dataclass
class Site:
    """A running gateway with an administrator's key, and the provider behind all of its models."""

    daemon: Daemon
    provider: Provider
    key: str = ""

    def chat(self, model_id: str = "o.m", **fields: Any) -> Answer:
        """Ask a model and return the whole reply."""
        body = json.dumps(question(model_id, **fields)).encode()
        return send(self.daemon.base_url, "POST", CHAT, body, {"Authorization": f"Bearer {self.key}"})

    def stream(self, model_id: str = "o.m", **fields: Any) -> Answer:
        """Ask a model for a stream and return all of it."""
        return self.chat(model_id, stream=True, **fields)


def question(model_id: str, **fields: Any) -> dict[str, Any]:
    return {"model": model_id, "messages": [{"role": "user", "content": "hi"}], **fields}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("s")
    with background_upstream() as provider:
        configuration = folder / "gatewayd.toml"
        configuration.touch(0o600)
        configuration.write_text(PROVIDERS.format(url=provider.url, key=KEY))
        settings = {
            "UPSTREAM_FIRST_BYTE_TIMEOUT": "1",
            "UPSTREAM_CONNECT_TIMEOUT": "1",
            "AIOHTTP_CLIENT_STREAM_IDLE_TIMEOUT": "1",
            "ENABLE_API_KEYS": "true",
        }
        with running_daemon(folder / "state", "-f", str(configuration), **settings) as daemon:
            yield Site(daemon, provider, make_key(daemon))


def make_key(daemon: Daemon) -> str:
    """Make the first administrator and return a key."""
    form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
    session = daemon.call("POST", "/api/v1/auths/signup", form)[1]
    signed = {"Authorization": f"Bearer {session['token']}"}
    group = {"name": "g", "description": "", "permissions": {"features": {"api_keys": True}}}
    made = daemon.call("POST", "/api/v1/groups/create", group, signed)[1]["id"]
    daemon.call("POST", f"/api/v1/groups/id/{made}/users/add", {"user_ids": [session["id"]]}, signed)
    key: str = daemon.call("POST", "/api/v1/auths/api_key", {}, signed)[1]["api_key"]
    return key


def events(reply: Answer) -> list[Any]:
    """Return the decoded events of a stream; the last may be the text [DONE]."""
    frames = reply.body.decode().removesuffix("\n\n").split("\n\n")
    assert all(frame.startswith("data: ") for frame in frames), frames
    return [frame[6:] if frame == "data: [DONE]" else json.loads(frame[6:]) for frame in frames]


def said(reply: Answer) -> str:
    """Return the text of a stream."""
    found = [event for event in events(reply) if isinstance(event, dict)]
    deltas = [choice["delta"] for event in found for choice in event.get("choices", ())]
    return "".join(delta.get("content") or "" for delta in deltas)


@pytest.fixture(autouse=True)
def well(site: Site) -> Iterator[None]:
    """After each fault the daemon lives, and its log holds neither a traceback nor the provider's key."""
    site.provider.script()
    yield
    site.provider.release()
    assert site.daemon.process.poll() is None
    assert site.daemon.call("GET", "/health")[0] == 200
    log = "".join(site.daemon.log)
    assert "Traceback" not in log
    assert KEY not in log


@pytest.mark.parametrize("model", MODELS)
def test_answers_arrive_whole_and_streamed(site: Site, model: str) -> None:
    whole = site.chat(model)
    assert whole.status == 200
    assert whole.json["choices"][0]["message"]["content"] == "Hello from m"
    streamed = site.stream(model)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert said(streamed) == "Hello from m"
    assert events(streamed)[-1] == "[DONE]"


FAULTS: dict[str, tuple[Reply, int]] = {
    "refusal": (json_reply({"error": {"message": "no such thing as that"}}, 400), 400),
    "refusal without a body": (Reply(500, content_type=""), 502),
    "an unknown status": (json_reply({}, 418), 502),
    "a rejected key": (json_reply({"error": {"message": f"Incorrect API key provided: {KEY}."}}, 401), 502),
    "a key without the right": (json_reply({"error": f"{KEY[:9]}***{KEY[-8:]} may not"}, 403), 502),
    "an unpaid bill": (json_reply({"error": {"message": "pay"}}, 402), 502),
    "silence": (Reply(before=SILENCE), 504),
    "silence after the head": (Reply(steps=[SILENCE]), 504),
    "a cut before the head": (Reply(before=CUT), 502),
    "a cut after the head": (Reply(steps=[b"", CUT]), 502),
    "an HTML page": (Reply(steps=[b"<!doctype html><html><b>x</b></html>"], content_type="text/html"), 502),
    "an HTML page as an error": (Reply(503, steps=[b"<html>canary</html>"], content_type="text/html"), 503),
    "a redirect": (Reply(302, {"Location": "http://127.0.0.1:1/elsewhere"}), 502),
    "a redirect that keeps the method": (Reply(308, {"Location": "http://127.0.0.1:1/elsewhere"}), 502),
    "nothing": (Reply(), 502),
    "garbage": (Reply(steps=[b"\x00\xff\xfe garbage"], content_type="application/json"), 502),
    "garbage as a stream": (Reply(steps=[b"data: garbage\n\n"]), 502),
    "invalid UTF-8": (Reply(steps=[b'data: {"a": "\xff"}\n\n']), 502),
    "a list": (json_reply([1]), 502),
    "an error with status 200": (json_reply({"error": {"message": "overloaded", "code": 503}}), 503),
    "too deep": (Reply(steps=[b"data: " + b'{"a":' * 600 + b"1" + b"}" * 600 + b"\n\n"]), 502),
    "one endless line": (Reply(steps=[b"data: " + b"x" * 3_000_000]), 502),
}


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_before_the_first_byte_is_a_status(
    site: Site, name: str, model: str, streaming: bool
) -> None:
    fault, status = FAULTS[name]
    site.provider.script(fault)
    reply = site.chat(model, stream=streaming)
    assert reply.status == status, reply
    assert reply.headers["content-type"] == "application/json"
    error = reply.json["error"]
    assert reply.json["detail"] == error["message"]
    assert NAMES[model] in error["message"]
    assert KEY not in reply.body.decode()
    assert KEY[-8:] not in reply.body.decode()
    assert b"<html" not in reply.body
    assert len(reply.body) < 4096
    assert len(site.provider.fake.requests) == 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_a_provider_s_limit_is_passed_on(site: Site, model: str, streaming: bool) -> None:
    site.provider.script(json_reply({"error": {"message": "slow down"}}, 429, Retry_After="17"))
    reply = site.chat(model, stream=streaming)
    assert (reply.status, reply.headers["retry-after"]) == (429, "17")
    assert reply.json["error"]["type"] == "rate_limit_error"


BEGUN = {
    "o.m": sse(openai_chunk(content="one")),
    "a.m": anthropic_events(
        {"type": "message_start", "message": {}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one"}},
    ),
    "l.m": ndjson(ollama_reply("one", done=False)),
}
BREAKS: dict[str, Any] = {
    "silence": SILENCE,
    "a cut": CUT,
    "an early end": b"",
    "garbage": b"data: garbage\n\ngarbage\n",
    "invalid UTF-8": b'data: {"a": "\xff"}\n\n{"a": "\xff"}\n',
    "an endless line": b"data: " + b"x" * 3_000_000,
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", BREAKS)
def test_a_fault_in_a_stream_is_an_event_and_its_end(site: Site, name: str, model: str) -> None:
    site.provider.script(Reply(steps=[BEGUN[model], BREAKS[name]]))
    reply = site.stream(model)
    assert reply.status == 200
    *before, last = events(reply)
    assert said(reply) == "one"
    assert all("error" not in event for event in before)
    assert last["error"]["message"] == last["detail"]
    assert NAMES[model] in last["detail"]
    assert last["error"]["code"] == ("timeout" if name == "silence" else "upstream_failed")


ERRORS_IN_BAND = {
    "o.m": sse({"error": {"message": f"broke, {KEY}", "type": "server_error"}}),
    "a.m": anthropic_events(
        {"type": "error", "error": {"type": "overloaded_error", "message": f"broke, {KEY}"}}
    ),
    "l.m": ndjson({"error": f"broke, {KEY}"}),
}


@pytest.mark.parametrize("model", MODELS)
def test_an_error_of_the_provider_in_its_stream_is_passed_on(site: Site, model: str) -> None:
    site.provider.script(Reply(steps=[BEGUN[model], ERRORS_IN_BAND[model], sse(b"[DONE]")]))
    reply = site.stream(model)
    assert "broke" in events(reply)[-1]["error"]["message"]
    assert said(reply) == "one"
    if model != "l.m":
        assert KEY not in reply.body.decode()


def test_a_provider_cannot_send_events_of_ours(site: Site) -> None:
    execute = {"event": {"type": "execute", "data": {"code": "canary()"}}}
    steps = [
        b"event: execute\nid: 7\nretry: 1\n" + sse(openai_chunk(content="a")),
        sse(execute),
        sse({**openai_chunk(content="b"), **execute}),
        b": comment canary\n\n",
        sse(openai_chunk(content="c"), execute, openai_chunk(finish_reason="stop")),
        b'data: {"\\u0065vent": {"type": "execute", "data": "canary()"}}\n\n',
        sse(b"[DONE]", execute),
    ]
    site.provider.script(Reply(steps=steps))
    reply = site.stream()
    assert said(reply) == "abc"
    assert b"canary" not in reply.body
    assert b"event" not in reply.body
    assert [line for line in reply.body.split(b"\n") if line and not line.startswith(b"data: ")] == []
    assert reply.body.count(b"[DONE]") == 1
    site.provider.script(json_reply({**openai_completion("a"), **execute}))
    assert b"canary" not in site.chat().body


def test_stream_bytes_pass_unchanged(site: Site) -> None:
    odd = b'data: {"id":"1",  "x":\t1.50, "choices":[{"index":0,"delta":{"content":"\\u00e9\xc3\xa9"}}]}\n\n'
    end = sse(openai_chunk(finish_reason="stop"))
    site.provider.script(Reply(steps=[odd, odd + odd, end, sse(b"[DONE]")]))
    assert site.stream().body == odd * 3 + end + b"data: [DONE]\n\n"


def test_an_answer_s_bytes_pass_unchanged(site: Site) -> None:
    odd = b'{"id": "x",\n "choices": [{"message": {"content": "\\u00e9"}}], "y": 1.50}'
    site.provider.script(Reply(steps=[odd], content_type="application/json"))
    assert site.chat().body == odd


EVERY_FIELD: dict[str, Any] = {
    "temperature": 0.70,
    "top_p": 1,
    "n": 2,
    "stop": ["a", "b"],
    "max_tokens": 5,
    "max_completion_tokens": 6,
    "presence_penalty": -0.5,
    "frequency_penalty": 0.5,
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "top_logprobs": 2,
    "seed": 2**53 + 1,
    "user": "u",
    "metadata": {"a": "b"},
    "store": False,
    "service_tier": "auto",
    "reasoning_effort": "low",
    "verbosity": "low",
    "modalities": ["text"],
    "audio": {"voice": "x", "format": "wav"},
    "prediction": {"type": "content", "content": "x"},
    "parallel_tool_calls": False,
    "tools": [
        {"type": "function", "function": {"name": "f", "strict": True, "parameters": {"type": "object"}}}
    ],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "functions": [],
    "function_call": "none",
    "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}},
    "web_search_options": {},
    "unknown_field": [None, {"deep": [1.5]}],
    "options": {"num_ctx": 5},
    "messages": [
        {"role": "developer", "content": "d", "name": "n"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "{}"},
    ],
}


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_every_field_is_forwarded_untouched(site: Site, streaming: bool) -> None:
    sent = {**EVERY_FIELD, "stream": streaming}
    if streaming:
        sent["stream_options"] = {"include_usage": True, "include_obfuscation": False}
    reply = site.chat("o.m", **sent)
    assert reply.status == 200
    got = site.provider.last()
    assert got.json == {**sent, "model": "m"}
    assert got.headers["Authorization"] == f"Bearer {KEY}"
    assert not {"cookie", "x-api-key", "x-forwarded-for"} & {name.lower() for name in got.headers}
    assert site.key not in str(got)


def test_our_own_fields_stay_here_and_files_are_warned_about(site: Site) -> None:
    own = {"chat_id": "c", "session_id": "s", "features": {}, "tool_ids": [], "variables": {}}
    reply = site.chat(files=[{"type": "file", "id": "f1"}, {"type": "collection", "id": "k"}], **own)
    assert reply.status == 200
    assert "'f1'" in reply.headers["x-gateway-warning"]
    assert site.provider.last().json == question("m")
    streamed = site.stream(files=[{"type": "file", "id": "f1"}])
    assert "'f1'" in streamed.headers["x-gateway-warning"]


@contextlib.contextmanager
def asking(site: Site, **fields: Any) -> Iterator[None]:
    """Ask the patient provider, wait until it falls silent, and leave at the end of the block."""
    connection = http.client.HTTPConnection(urlsplit(site.daemon.base_url).netloc, timeout=20)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {site.key}", "Content-Type": "application/json"}
        connection.request("POST", CHAT, json.dumps(question("p.m", **fields)), headers)
        site.provider.wait_silent()
        yield


@pytest.mark.parametrize(
    ("silence", "streaming"),
    [
        (Reply(before=SILENCE), False),
        (Reply(before=SILENCE), True),
        (Reply(steps=[SILENCE]), True),
        (Reply(steps=[sse(openai_chunk(content="one")), SILENCE]), True),
    ],
    ids=["whole", "before the head", "before the first byte", "in the middle"],
)
def test_a_client_that_leaves_closes_a_silent_provider_within_a_second(
    site: Site, silence: Reply, streaming: bool
) -> None:
    site.provider.script(silence)
    with asking(site, stream=streaming):
        assert not site.provider.fake.closed.is_set()
    site.provider.wait_closed(1.0)


def test_many_streams_at_once_do_not_mix(site: Site) -> None:
    clients = [openai.OpenAI(api_key=site.key, base_url=f"{site.daemon.base_url}/v1") for _ in range(8)]
    with contextlib.ExitStack() as stack:
        for client in clients:
            stack.enter_context(client)
        streams = [
            client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": "hi"}], stream=True
            )
            for client in clients
            for model in MODELS
        ]
        for stream in streams:
            assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello from m"


# Listing: one provider refuses connections, one hangs, one sends nonsense; the good one is seen at once.
LISTING = """
[[providers]]
name = "good"
base_url = "{good}/v1"

[[providers]]
name = "dead"
base_url = "http://127.0.0.1:{port}/v1"

[[providers]]
name = "hanging"
base_url = "{hanging}/v1"

[[providers]]
name = "nonsense"
base_url = "{nonsense}/v1"
"""


def test_model_lists_come_quickly_and_fully(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(50)]
    hang = Reply(before=SILENCE)
    odd = {"data": [{"id": "odd", "created": 1e300}, {"id": 5}, 7, {"id": "", "object": []}, {"id": "\x00"}]}
    with (
        background_upstream(names) as good,
        background_upstream() as hanging,
        background_upstream() as nonsense,
    ):
        hanging.fake.listings += [hang] * 100
        nonsense.fake.listings += [json_reply(odd)] * 100
        urls = {"good": good.url, "hanging": hanging.url, "nonsense": nonsense.url, "port": free_port()}
        configuration = tmp_path / "gatewayd.toml"
        configuration.write_text(LISTING.format(**urls))
        settings = {"ENABLE_API_KEYS": "true", "AIOHTTP_CLIENT_TIMEOUT_MODEL_LIST": "20"}
        with running_daemon(tmp_path / "s", "-f", str(configuration), **settings) as daemon:
            key = make_key(daemon)
            signed = {"Authorization": f"Bearer {key}"}
            for path in ("/api/models", "/v1/models", "/api/models?refresh=true"):
                status, answer = daemon.call("GET", path, None, signed)
                assert status == 200
                assert {model["id"] for model in answer["data"]} == {*names, "odd"}
            started = time.monotonic()
            for _ in range(10):
                daemon.call("GET", "/api/models", None, signed)
            # Nothing is left of the hanging provider's twenty seconds, ten times.
            assert time.monotonic() - started < 5
            assert daemon.call("POST", CHAT, question("m7"), signed)[0] == 200
            hanging.release()


@pytest.fixture
def client(site: Site) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        api_key=site.key, base_url=f"{site.daemon.base_url}/v1", max_retries=0, timeout=20
    ) as made:
        yield made


MESSAGES: Any = [{"role": "user", "content": "hi"}]


class TestOpenAiSdk:
    """The official client, unchanged."""

    def test_models(self, client: openai.OpenAI) -> None:
        assert [model.id for model in client.models.list()] == ["a.m", "l.m", "o.m", "p.m"]
        assert client.models.retrieve("o.m").owned_by == "openai"

    @pytest.mark.parametrize("model", MODELS)
    def test_create(self, client: openai.OpenAI, model: str) -> None:
        answer = client.chat.completions.create(model=model, messages=MESSAGES)
        assert answer.choices[0].message.content == "Hello from m"
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None
        assert answer.usage.total_tokens == 5 or model == "o.m"

    @pytest.mark.parametrize("model", ["a.m", "l.m"])
    def test_stream_with_usage(self, client: openai.OpenAI, model: str) -> None:
        stream = client.chat.completions.create(
            model=model, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 2
        assert chunks[-1].choices == []
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello from m"

    def test_stream_with_usage_of_a_hosted_provider(self, site: Site, client: openai.OpenAI) -> None:
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        last = sse({**openai_chunk(), "choices": [], "usage": usage})
        *steps, done = openai_stream(["a", "b"])
        site.provider.script(Reply(steps=[*steps, last, done]))
        stream = client.chat.completions.create(
            model="o.m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 5
        assert site.provider.last().json["stream_options"] == {"include_usage": True}

    @pytest.mark.parametrize("model", MODELS)
    def test_tools(self, site: Site, client: openai.OpenAI, model: str) -> None:
        function = {"name": "f", "arguments": '{"a":1}'}
        whole = {
            "o.m": openai_completion("", tool_calls=[{"id": "c", "type": "function", "function": function}]),
            "a.m": {"content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]},
            "l.m": {
                "message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
                "done": True,
            },
        }
        site.provider.script(json_reply(whole[model]))
        tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        answer = client.chat.completions.create(model=model, messages=MESSAGES, tools=tools)
        calls = answer.choices[0].message.tool_calls
        assert calls is not None
        assert calls[0].type == "function"
        assert (calls[0].function.name, json.loads(calls[0].function.arguments)) == ("f", {"a": 1})

    @pytest.mark.parametrize(
        ("fault", "expected"),
        [
            (json_reply({"error": {"message": "bad"}}, 400), openai.BadRequestError),
            (json_reply({"error": {"message": "wait"}}, 429), openai.RateLimitError),
            (json_reply({"error": {"message": "key"}}, 401), openai.InternalServerError),
            (Reply(before=CUT), openai.InternalServerError),
        ],
    )
    def test_errors_of_the_provider(
        self, site: Site, client: openai.OpenAI, fault: Reply, expected: type[openai.APIStatusError]
    ) -> None:
        site.provider.script(fault)
        with pytest.raises(expected) as caught:
            client.chat.completions.create(model="o.m", messages=MESSAGES)
        assert isinstance(caught.value.body, dict)
        assert "hosted" in caught.value.body["message"]
        assert caught.value.request_id

    def test_errors_of_ours(self, client: openai.OpenAI) -> None:
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="none", messages=MESSAGES)
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("none")
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="o.m", messages=[])
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="sk-wrong").models.list()

    def test_an_error_in_the_stream(self, site: Site, client: openai.OpenAI) -> None:
        site.provider.script(Reply(steps=[sse(openai_chunk(content="one")), CUT]))
        stream = client.chat.completions.create(model="o.m", messages=MESSAGES, stream=True)
        assert next(iter(stream)).choices[0].delta.content == "one"
        with pytest.raises(openai.APIError, match="hosted"):
            next(iter(stream))
        stream.close()

    def test_closing_a_stream_closes_the_provider(self, site: Site, client: openai.OpenAI) -> None:
        site.provider.script(Reply(steps=[sse(openai_chunk(content="one")), SILENCE]))
        with client.chat.completions.create(model="p.m", messages=MESSAGES, stream=True) as stream:
            assert next(iter(stream)).choices[0].delta.content == "one"
        site.provider.wait_closed(1.0)
