"""Tests for gatewayd.completions.records."""

import pytest

from gatewayd.completions.records import Completion, CompletionChunk


def test_completion_passes_its_bytes_until_somebody_looks_inside() -> None:
    raw = b'{ "a": 1 }'
    completion = Completion(raw=raw)
    assert completion.raw is raw
    completion.body["b"] = 2
    assert completion.raw == b'{"a":1,"b":2}'


def test_chunk_passes_its_bytes_until_somebody_looks_inside() -> None:
    raw = b'data: {"n": 1}\n\ndata: {"n": 2}\n\n'
    chunk = CompletionChunk(raw=raw)
    assert chunk.raw is raw
    assert [event["n"] for event in chunk.events] == [1, 2]
    chunk.events.pop()
    assert chunk.raw == b'data: {"n":1}\n\n'


def test_nothing_is_made_of_nothing() -> None:
    with pytest.raises(ValueError, match="bytes or"):
        Completion()
    with pytest.raises(ValueError, match="bytes or"):
        CompletionChunk()


def test_a_chunk_of_data_holds_the_events_that_the_data_say() -> None:
    chunk = CompletionChunk.of_data([b'{"a":1}', b' {"a":2}'])
    assert chunk.raw == b'data: {"a":1}\n\ndata:  {"a":2}\n\n'
    assert chunk.events == [{"a": 1}, {"a": 2}]
    assert CompletionChunk(events=[{"a": 1}]).data == [b'{"a":1}']
