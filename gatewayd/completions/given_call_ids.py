"""Gives the calls of an answer the ids that the caller knows, where a request was sent with others; pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from gatewayd.completions.deltas import delta_of
from gatewayd.completions.json_access import as_sequence
from gatewayd.completions.records import Body, CompletionChunk


def has_ids(event: Mapping[str, Any], ids: Mapping[str, str]) -> bool:
    """Return True if a call of an event or completion has one of the sent ids."""
    return any(_sent(call) in ids for call in _calls(event))


def give_ids(event: Body, ids: Mapping[str, str]) -> None:
    """Replace the sent ids in an event or completion; `ids` has the caller's id of each."""
    for call in _calls(event):
        sent = _sent(call)
        if sent in ids:
            call["id"] = ids[sent]


def with_given_ids(chunk: CompletionChunk, ids: Mapping[str, str]) -> CompletionChunk:
    """Return a chunk with the caller's ids; itself, with its bytes, if none is concerned."""
    events = chunk.decoded
    if events is None:
        if b'"tool_calls"' not in chunk.raw:
            return chunk
        events = [orjson.loads(data) for data in chunk.data]
    if not any(has_ids(event, ids) for event in events):
        return chunk
    for event in events:
        give_ids(event, ids)
    return CompletionChunk(events=events)


def _calls(event: Mapping[str, Any]) -> Iterator[Body]:
    for choice in as_sequence(event.get("choices")):
        if isinstance(choice, dict):
            for call in as_sequence(delta_of(choice).get("tool_calls")):
                if isinstance(call, dict):
                    yield call


def _sent(call: Mapping[str, Any]) -> str:
    sent = call.get("id")
    return sent if isinstance(sent, str) else ""
