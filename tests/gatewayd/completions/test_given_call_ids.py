"""Ids of calls in an answer to a request that was sent with others."""

import orjson
import pytest

from gatewayd.completions.given_call_ids import give_ids, has_ids, with_given_ids
from gatewayd.completions.records import CompletionChunk

IDS = {"abcdefgh1": "functions.f:0"}


def event(call_id: str) -> dict:
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": call_id}]}}]}


@pytest.mark.parametrize("is_raw", [True, False])
def test_streams(is_raw):
    def chunk(call_id: str) -> CompletionChunk:
        made = event(call_id)
        return CompletionChunk.of_data([orjson.dumps(made)]) if is_raw else CompletionChunk(events=[made])

    assert with_given_ids(chunk("abcdefgh1"), IDS).events == [event("functions.f:0")]
    other = chunk("xyz")
    assert with_given_ids(other, IDS) is other
    text = CompletionChunk(raw=b"data: {}\n\n")
    assert with_given_ids(text, IDS) is text


def test_whole_answers():
    completion = {
        "choices": [{"index": 0, "message": {"tool_calls": [{"id": "abcdefgh1"}, {"id": "x"}, None]}}]
    }
    assert has_ids(completion, IDS)
    give_ids(completion, IDS)
    assert [call and call["id"] for call in completion["choices"][0]["message"]["tool_calls"]] == [
        "functions.f:0",
        "x",
        None,
    ]
    assert not has_ids(completion, IDS)
