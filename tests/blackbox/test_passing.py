"""What passes between caller and provider unchanged, what stays here, and lists of models."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.daemon import free_port, running_daemon
from tests.fakes.daemons.failing_provider_site import (
    CHAT,
    KEY,
    MODELS,
    Site,
    make_key,
    opened_faulty,
    question,
)
from tests.fakes.http.raw_http import Reply as Answer
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.upstream import SILENCE, Reply, json_reply, openai_chunk, openai_completion, sse


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_faulty(tmp_path_factory.mktemp("s")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def well(site: Site) -> Iterator[None]:
    """After each test the daemon is well."""
    with site.tended():
        yield


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


@pytest.mark.parametrize("model", MODELS)
def test_answers_arrive_whole_and_streamed(site: Site, model: str) -> None:
    whole = site.chat(model)
    assert whole.status == 200
    assert whole.json["choices"][0]["message"]["content"] == "Hello from m"
    streamed = site.stream(model)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert said(streamed) == "Hello from m"
    assert events(streamed)[-1] == "[DONE]"


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
    odd = b'data: {"object":"chat.completion.chunk",  "x":\t1.50, '
    odd += b'"choices":[{"index":0,"delta":{"content":"\\u00e9\xc3\xa9"}}]}\n\n'
    end = sse(openai_chunk(finish_reason="stop"))
    site.provider.script(Reply(steps=[odd, odd + odd, end, sse(b"[DONE]")]))
    assert site.stream().body == odd * 3 + end + b"data: [DONE]\n\n"


def test_an_answer_s_bytes_pass_unchanged(site: Site) -> None:
    odd = (
        b'{"id": "x",\n "choices": [{"index": 0, "message": {"role": "assistant", "content": "\\u00e9"},'
        b' "finish_reason": "stop"}], "y": 1.50}'
    )
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
    own = {"chat_id": "c", "id": "m", "features": {}, "tool_ids": [], "variables": {}}
    reply = site.chat(files=[{"type": "file", "id": "f1"}, {"type": "collection", "id": "k"}], **own)
    assert reply.status == 200
    assert "'f1'" in reply.headers["x-gateway-warning"]
    assert site.provider.last().json == question("m")
    streamed = site.stream(files=[{"type": "file", "id": "f1"}])
    assert "'f1'" in streamed.headers["x-gateway-warning"]


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
