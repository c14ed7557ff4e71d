from typing import Any

import orjson
import pytest

from gatewayd.upstream.streams.single_chunk import completion_chunk
from gatewayd.upstream.streams.sse import FramingError
from tests.fakes.upstream import openai_completion

Body = dict[str, Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def choice_of(choice: Body) -> Body:
    (event,) = completion_chunk({**openai_completion(""), "choices": [choice]}).events
    (found,) = event["choices"]
    return found


def test_messages_become_deltas():
    chunk = completion_chunk({**openai_completion("hi", tool_calls=[CALL]), "event": {"type": "execute"}})
    (event,) = chunk.events
    assert event["object"] == "chat.completion.chunk"
    assert "event" not in event
    assert event["usage"]["total_tokens"] == 5
    (choice,) = event["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["delta"] == {"role": "assistant", "content": "hi", "tool_calls": [{"index": 0, **CALL}]}
    assert "message" not in choice


@pytest.mark.parametrize("choices", [[], None, [None], {}, "x"])
def test_an_answer_without_a_choice_is_none(choices: object):
    with pytest.raises(FramingError, match="no choice"):
        completion_chunk({"choices": choices})


@pytest.mark.parametrize("choice", [{}, {"message": None}, {"message": 5}, {"message": None, "delta": None}])
def test_a_choice_without_a_message_says_nothing(choice: Body):
    assert choice_of(choice) == {"index": 0, "delta": {}, "finish_reason": "stop"}


def test_a_delta_in_place_of_a_message():
    assert choice_of({"delta": {"content": "a"}})["delta"] == {"content": "a"}


@pytest.mark.parametrize("calls", [None, [], {}, [None], [{}]])
def test_no_tool_calls(calls: object):
    found = choice_of({"message": {"content": None, "tool_calls": calls}})
    assert found["delta"] == {"content": None}
    assert found["finish_reason"] == "stop"


def test_tool_calls_of_any_shape():
    calls = [
        {"function": {"name": "f", "arguments": {"x": 1}}},
        None,
        {**CALL, "index": 7},
        CALL,
        {"id": "c2", "function": {"name": "g", "arguments": None}},
    ]
    found = choice_of({"message": {"tool_calls": calls}})
    made = [
        (call["index"], call["function"]["name"], call["function"]["arguments"])
        for call in found["delta"]["tool_calls"]
    ]
    assert made == [(0, "f", '{"x":1}'), (1, "f", "{}"), (2, "f", "{}"), (3, "g", "{}")]
    ids = [call["id"] for call in found["delta"]["tool_calls"]]
    assert ids[1:] == ["c1", "c1", "c2"]
    assert ids[0].startswith("call_")
    assert found["finish_reason"] == "tool_calls"


def test_several_choices_keep_their_places():
    chunk = completion_chunk(
        {"choices": [{"message": {"content": "a"}}, {"index": 5, "message": {"content": "b"}}]}
    )
    assert [choice["index"] for choice in chunk.events[0]["choices"]] == [0, 5]


def test_numbers_over_64_bits_are_written_again():
    answer = orjson.loads(b'{"created": 99999999999999999999999, "choices": [{"message": {"content": "a"}}]}')
    assert orjson.loads(completion_chunk(answer).raw.removeprefix(b"data: "))["created"] == 1e23
