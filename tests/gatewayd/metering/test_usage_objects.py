"""Usage as providers of all protocols tell it, also hostile ones, and where replies hold it."""

from typing import Any

import orjson
import pytest

from gatewayd.completions.records import CompletionChunk
from gatewayd.metering.answers import without_usage_event
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import MeteredCall, TokenUsage
from gatewayd.metering.reply_usage import MAX_DECODED_BYTES, ReplyUsage
from gatewayd.metering.usage_objects import StreamUsage, read_usage

OPENAI = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 12},
}
MESSAGES = {
    "input_tokens": 10,
    "cache_read_input_tokens": 80,
    "cache_creation_input_tokens": 7,
    "output_tokens": 5,
    "output_tokens_details": {"thinking_tokens": 2},
}
RESPONSES = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 39,
}
TOLD = TokenUsage(30, 20, 0, 9, 4)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (OPENAI, TokenUsage(100, 64, 3, 20, 12)),
        (MESSAGES, TokenUsage(97, 80, 7, 5, 2)),
        (RESPONSES, TOLD),
        ({"prompt_tokens": 8, "total_tokens": 8}, TokenUsage(8)),
        ({"total_tokens": 8}, TokenUsage(8)),
        ({"prompt_eval_count": 26, "eval_count": 298}, TokenUsage(26, completion=298)),
        ({"eval_count": 3}, TokenUsage(completion=3)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "completion_tokens": 1}, TokenUsage(9, 4, 0, 1)),
        ({"prompt_tokens": 5, "completion_tokens": 6.0}, TokenUsage(5, completion=6)),
        # Hostile ones: nothing negative, absurd or of another type counts, and a part is at most its whole.
        ({"prompt_tokens": -5, "completion_tokens": 2}, TokenUsage(completion=2)),
        ({"prompt_tokens": 2**53 + 1, "completion_tokens": 10**400}, TokenUsage()),
        ({"prompt_tokens": True, "completion_tokens": 1}, TokenUsage(completion=1)),
        ({"prompt_tokens": 1.5, "completion_tokens": 1}, TokenUsage(completion=1)),
        ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, None),
        ({"prompt_tokens": 4, "completion_tokens": 1, "prompt_tokens_details": []}, TokenUsage(4, 0, 0, 1)),
        (
            {"prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 99}, "completion_tokens": 0},
            TokenUsage(4, 4),
        ),
        ({"prompt_tokens": "12", "completion_tokens": None}, None),
        ({}, None),
        ([], None),
        ("usage", None),
        (None, None),
    ],
)
def test_usage_is_read(usage: object, tokens: TokenUsage | None) -> None:
    assert read_usage(usage) == tokens


def a_call() -> MeteredCall:
    return MeteredCall("u", (), "", "m", "chat")


def test_the_last_usage_of_a_stream_counts_and_what_it_leaves_out_stays() -> None:
    found, call = StreamUsage(), a_call()
    start = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    found.look(CompletionChunk(raw=b"", usage=start, characters=4), call)
    found.look(CompletionChunk(raw=b"", usage={"output_tokens": 7, "input_tokens": None}), call)
    found.look(CompletionChunk(raw=b"", usage={"forged": 1}), call)
    assert (found.tokens(), call.characters) == (TokenUsage(15, 5, 0, 7), 4)


@pytest.mark.parametrize("place", ["usage", "x_groq", "choices"])
def test_usage_is_found_in_each_place_of_an_event(place: str) -> None:
    event: dict[str, Any] = {"choices": [{"index": 0, "delta": {}}]}
    if place == "choices":
        event["choices"][0]["usage"] = OPENAI
    else:
        event[place] = OPENAI if place == "usage" else {"usage": OPENAI}
    found = StreamUsage()
    assert found.look(CompletionChunk(events=[event]), a_call())
    assert found.tokens() == TokenUsage(100, 64, 3, 20, 12)


def test_only_the_event_with_usage_alone_is_dropped() -> None:
    text = {"choices": [{"index": 0, "delta": {"content": '"usage"'}}], "usage": {"prompt_tokens": 1}}
    usage = {"choices": [], "usage": {"prompt_tokens": 1}}
    raw = b"".join(b"data: %b\n\n" % orjson.dumps(event) for event in (text, usage))
    shown = without_usage_event(CompletionChunk(raw=raw))
    assert shown is not None
    assert shown.events == [text]
    shown = without_usage_event(CompletionChunk(events=[text, usage]))
    assert shown is not None
    assert shown.events == [text]
    assert without_usage_event(CompletionChunk(events=[usage])) is None
    whole = CompletionChunk(events=[text])
    assert without_usage_event(whole) is whole


def tokens_of(content_type: str, *reads: bytes) -> TokenUsage | None:
    found = ReplyUsage(content_type)
    for read in reads:
        found.look(read, a_call())
    return found.tokens()


LONG = "x" * (MAX_DECODED_BYTES + 1)


@pytest.mark.parametrize("filler", ["", LONG])
@pytest.mark.parametrize(
    ("reply", "tokens"),
    [
        ({"data": [], "usage": RESPONSES, "note": None}, TOLD),
        ({"embeddings": [[0.5]], "prompt_eval_count": 6}, TokenUsage(6)),
        ({"done": True, "prompt_eval_count": 6, "x": 1, "eval_count": 7}, TokenUsage(6, completion=7)),
        # Neither a text nor a member of another object passes for the usage.
        ({"text": '"usage":{"prompt_tokens":9}', "z": {"usage": {"prompt_tokens": 9}}}, None),
        (
            {"usage": RESPONSES, "metadata": {"usage": "none"}, "tools": [{"usage": {"input_tokens": 1}}]},
            TOLD,
        ),
        ({"usage": None}, None),
    ],
)
def test_usage_of_a_whole_reply(filler: str, reply: dict[str, Any], tokens: TokenUsage | None) -> None:
    raw = orjson.dumps({"filler": filler, **reply})
    parts = [raw[start : start + 50_000] for start in range(0, len(raw), 50_000)]
    assert tokens_of("application/json; charset=utf-8", *parts) == tokens


@pytest.mark.parametrize("filler", ["", LONG])
def test_usage_of_events_and_lines(filler: str) -> None:
    done = {"type": "response.completed", "response": {"text": filler, "usage": RESPONSES}, "number": 9}
    event = b"event: response.completed\ndata: %b\n\n" % orjson.dumps(done)
    assert tokens_of("text/event-stream", b'data: {"type":"delta"}\n\n', event) == TOLD
    line = orjson.dumps({"response": filler, "done": True, "prompt_eval_count": 3, "eval_count": 4})
    assert tokens_of("application/x-ndjson", b'{"response":"a"}\n', line + b"\n") == TokenUsage(3, 0, 0, 4)
    assert tokens_of("text/event-stream", b'data: {"usage": tru\n\n', b"data: [DONE]\n\n") is None


def test_a_cancelled_call_of_a_function_model_has_no_tokens_beside_those_within_it() -> None:
    meter, call = CallMeter(), a_call()
    call.holds_calls, call.attempts = True, 1
    meter.finish(call, "answered", TokenUsage(3, 0, 0, 4))  # type: ignore[arg-type]
    assert (call.usage, call.is_estimated) == (TokenUsage(), False)
