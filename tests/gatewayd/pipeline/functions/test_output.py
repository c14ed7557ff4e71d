"""Tests for gatewayd.pipeline.functions.output."""

from typing import Any

import orjson
import pytest
from pydantic import BaseModel, field_serializer

from gatewayd.completions.deltas import usage_of
from gatewayd.dialects.anthropic.dialect import render_completion
from gatewayd.dialects.ollama.dialect import ReplyTiming, render_chat
from gatewayd.dialects.ollama.stream import ChatLines
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.functions.output import (
    CompletionBuilder,
    PipeReader,
    mapping_completion,
    text_completion,
)
from tests.gatewayd.dialects.message_events import decode as message_events
from tests.gatewayd.dialects.message_events import run as run_events


def read(*items: Any) -> list[dict[str, Any]]:
    reading = PipeReader("p.m", new_id=lambda: "x", clock=lambda: 7)
    return [event for item in items for event in reading.feed(item)] + reading.finish()


def said(events: list[dict[str, Any]]) -> str:
    deltas = [choice["delta"] for event in events for choice in event.get("choices", [])]
    return "".join(delta.get("content") or "" for delta in deltas)


def ends(events: list[dict[str, Any]]) -> list[str]:
    return [
        choice["finish_reason"]
        for event in events
        for choice in event.get("choices", [])
        if choice.get("finish_reason")
    ]


def gathered(*items: Any) -> dict[str, Any]:
    gathering = CompletionBuilder()
    for event in read(*items):
        gathering.add(event)
    return gathering.body("p.m")


class Said(BaseModel):
    choices: list[dict[str, Any]]


class Broken(BaseModel):
    value: int = 1

    @field_serializer("value")
    def fail(self, value: int) -> int:
        raise ValueError("no")


def delta(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, **more}]}


def test_texts_become_chunks_with_one_role_and_an_end() -> None:
    events = read("a", b"b", None, "")
    assert said(events) == "ab"
    assert [event["choices"][0]["delta"].get("role") for event in events] == ["assistant", None, None]
    assert ends(events) == ["stop"]
    assert {(event["id"], event["object"], event["created"], event["model"]) for event in events} == {
        ("p.m-x", "chat.completion.chunk", 7, "p.m")
    }


def test_nothing_at_all_still_ends() -> None:
    assert ends(read()) == ["stop"]
    assert ends(read(None)) == ["stop"]


def test_mappings_models_and_lines_are_chunks_as_they_are() -> None:
    line = 'data: {"id": "u1", "model": "up", "choices": [{"index": 0, "delta": {"content": "c"}}]}'
    events = read(delta("a"), Said(choices=delta("b")["choices"]), line, "data: [DONE]\n\n")
    assert said(events) == "abc"
    assert events[2]["id"] == "u1"
    assert ends(events) == ["stop"]


def test_an_end_of_the_pipes_own_is_the_only_one() -> None:
    assert ends(read(delta("a"), delta("", finish_reason="length"))) == ["length"]


def test_calls_without_an_end_end_as_calls() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    events = read({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    assert ends(events) == ["tool_calls"]


def test_a_whole_completion_in_a_stream_becomes_deltas() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "hello", "tool_calls": [call]}
    events = read({"choices": [{"message": message}], "usage": {"total_tokens": 3}, "sources": [1]})
    assert said(events) == "hello"
    assert events[0]["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert events[0]["sources"] == [1]
    assert ends(events) == ["tool_calls"]
    assert events[-1]["usage"] == {"total_tokens": 3}


def test_events_and_errors_come_as_they_are() -> None:
    event = {"event": {"type": "status", "data": {"done": True}}}
    events = read(event, 'data: {"error": {"detail": "no"}}\n\n')
    assert events[0] is event
    assert events[1] == {"error": {"detail": "no"}}


def test_frames_without_choices_get_none() -> None:
    events = read({"sources": [{"source": {}}]}, {"usage": {"total_tokens": 1}})
    assert [event["choices"] for event in events[:2]] == [[], []]


@pytest.mark.parametrize("item", [object(), {"choices": {1, 2}}, {"a": object()}, Broken(), [1], ("a",)])
def test_what_is_no_answer_is_the_functions_failure(item: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        read(item)
    assert caught.value.kind is ErrorKind.PLUGIN_FAILED


def test_chunks_without_an_index_get_one() -> None:
    given = {"choices": [{"delta": {"content": "a"}}, {"index": None, "delta": {"content": "b"}}]}
    events = read(given, {"object": "x", "choices": [{"delta": {}, "finish_reason": "length"}]})
    assert [choice["index"] for event in events for choice in event["choices"]] == [0, 1, 0]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert given["choices"][0] == {"delta": {"content": "a"}}
    assert gathered(given)["choices"][0]["message"]["content"] == "a"


def test_calls_of_one_index_are_told_apart() -> None:
    pieces = [{"index": 0, "id": name, "name": name, "arguments": "{}"} for name in "ab"]
    events = read(*({"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces))
    calls = [event["choices"][0]["delta"]["tool_calls"][0] for event in events[:2]]
    assert [(call["index"], call["function"]["name"]) for call in calls] == [(0, "a"), (1, "b")]
    assert ends(events) == ["tool_calls"]


def test_every_choice_of_a_whole_completion_is_kept() -> None:
    answers = [{"message": {"content": text}} for text in "ab"]
    events = read({"choices": answers, "x_groq": {"usage": {"total_tokens": 3}}})
    assert [choice["index"] for event in events for choice in event["choices"]] == [0, 1, 0, 1]
    assert ends(events) == ["stop", "stop"]
    assert events[-1]["usage"] == {"total_tokens": 3}


def test_many_sources_cost_no_more_each() -> None:
    gathering = CompletionBuilder()
    for number in range(60_000):
        gathering.add({"sources": [number]})
    assert len(gathering.body("m")["sources"]) == 60_000


def test_numbers_are_text() -> None:
    assert said(read(4, 2.5)) == "42.5"


def test_an_answer_is_gathered_whole() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}
    body = gathered(
        "a",
        {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
        {"sources": [1]},
        {"choices": [], "usage": {"total_tokens": 5}},
        "b",
    )
    message = body["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("ab", "hm")
    assert message["tool_calls"][0]["function"]["name"] == "f"
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert (body["sources"], body["usage"], body["model"]) == ([1], {"total_tokens": 5}, "p.m")


def test_the_sources_of_all_chunks_are_gathered() -> None:
    body = gathered(
        {"sources": [1], "note": "old"}, "a", {"sources": [2, 3], "note": "new"}, {"sources": None}
    )
    assert (body["sources"], body["note"]) == ([1, 2, 3], "new")


def test_text_and_nothing_are_whole_answers() -> None:
    assert text_completion("m", "hi")["choices"][0]["message"] == {"role": "assistant", "content": "hi"}
    assert text_completion("m", None)["choices"][0]["message"]["content"] is None


def test_a_returned_completion_keeps_what_it_says() -> None:
    body = mapping_completion("m", {"id": "own", "choices": [{"message": {"content": "x"}}]})
    assert (body["id"], body["object"], body["model"]) == ("own", "chat.completion", "m")
    message = {"role": "assistant", "content": "x"}
    assert body["choices"] == [{"index": 0, "message": message, "finish_reason": "stop"}]
    with pytest.raises(GatewayError):
        mapping_completion("m", {"choices": {1}})


USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


@pytest.mark.parametrize(
    "given",
    [
        {"choices": [{"message": {"content": "hello"}}], "usage": USAGE},
        {"choices": [{"delta": {"content": "hello"}}], "usage": USAGE},
    ],
    ids=["whole", "chunk"],
)
def test_what_a_function_leaves_out_is_there_in_every_dialect(given: dict[str, Any]) -> None:
    events = read(given)
    native = message_events(run_events(events))
    assert [event["delta"]["stop_reason"] for event in native if event["type"] == "message_delta"] == [
        "end_turn"
    ]
    assert native[-2]["usage"]["output_tokens"] == 2
    lines = ChatLines("m", generate=False)
    written = lines.feed(events) + lines.finish(ReplyTiming(0, 0))
    assert [orjson.loads(line)["message"]["content"] for line in written.splitlines()] == ["hello", ""]
    assert orjson.loads(written.splitlines()[-1])["eval_count"] == 2
    assert usage_of(events[-1]) or usage_of(events[0])
    body = gathered(given) if "delta" in given["choices"][0] else mapping_completion("m", given)
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"] == USAGE
    assert render_completion(body, "m", lambda: "x")["usage"]["output_tokens"] == 2
    assert render_chat(body, "m", ReplyTiming(0, 0))["done_reason"] == "stop"
