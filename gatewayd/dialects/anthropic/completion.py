"""Converts messages of the Anthropic protocol to OpenAI completions; pure.

Content without an OpenAI counterpart is kept in extra fields. In a message these are `thinking_blocks` (with
their signatures), `server_tool_blocks` (tools that ran at the provider, and their results) and `citations`.
In a choice these are `matched_stop` (the stop sequence that ended it) and `native_finish_reason` (a reason
unknown to OpenAI).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body

FINISH_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    # The turn continues; "stop" would end it.
    "pause_turn": "length",
    "compaction": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}

SAME_FINISH: Final = frozenset({"end_turn", "stop_sequence", "max_tokens", "tool_use"})
"""Stop reasons that `finish_reason` and `matched_stop` express fully."""

THOUGHTS: Final = ("thinking", "redacted_thinking")
"""Types of thinking blocks."""

EXTRA_USAGE: Final = (
    *("cache_creation", "server_tool_use", "service_tier", "inference_geo", "iterations", "speed"),
    "fallback_credit",
)
"""Fields of usage that are copied unchanged."""


def to_completion(message: Mapping[str, Any], created: int) -> Body:
    """Return the OpenAI completion of a whole message; `created` is in epoch seconds."""
    reason = message.get("stop_reason")
    choice = {
        "index": 0,
        "message": _reply(
            [block for block in as_sequence(message.get("content")) if isinstance(block, dict)]
        ),
        "logprobs": None,
        **finish_fields(reason if isinstance(reason, str) else "end_turn", message.get("stop_sequence")),
    }
    return {
        "id": message.get("id"),
        "object": "chat.completion",
        "created": created,
        "model": message.get("model"),
        "choices": [choice],
        "usage": to_usage(as_mapping(message.get("usage"))),
    }


def finish_fields(stop_reason: object, stop_sequence: object) -> Body:
    """Return the fields of a choice that state why it ended."""
    fields: Body = {"finish_reason": finish_reason(stop_reason)}
    if isinstance(stop_sequence, str):
        fields["matched_stop"] = stop_sequence
    if isinstance(stop_reason, str) and stop_reason not in SAME_FINISH:
        fields["native_finish_reason"] = stop_reason
    return fields


def finish_reason(stop_reason: object) -> str:
    """Return the OpenAI finish reason of a stop reason; "stop" for an unknown one."""
    return FINISH_REASONS.get(stop_reason, "stop") if isinstance(stop_reason, str) else "stop"


def to_usage(usage: Mapping[str, Any]) -> Body:
    """Return OpenAI usage; cached tokens, read and written, count as part of the prompt."""
    written = as_count(usage.get("cache_creation_input_tokens"))
    read = as_count(usage.get("cache_read_input_tokens"))
    prompt = as_count(usage.get("input_tokens")) + written + read
    completion = as_count(usage.get("output_tokens"))
    converted: Body = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": read},
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
    }
    details = as_mapping(usage.get("output_tokens_details"))
    if details:
        thought = as_count(details.get("thinking_tokens"))
        converted["completion_tokens_details"] = {"reasoning_tokens": thought}
    converted.update({name: usage[name] for name in EXTRA_USAGE if usage.get(name) is not None})
    return converted


def to_annotations(citations: Sequence[Any], start: int, end: int) -> list[Body]:
    """Return the citations of web pages as OpenAI annotations of the text from `start` to `end`."""
    found = []
    for citation in map(as_mapping, citations):
        url = as_text(citation.get("url"))
        if url:
            place = {"start_index": start, "end_index": end}
            cited = {"url": url, "title": as_text(citation.get("title")), **place}
            found.append({"type": "url_citation", "url_citation": cited})
    return found


def _reply(blocks: Sequence[Mapping[str, Any]]) -> Body:
    calls = [_tool_call(block) for block in blocks if block.get("type") == "tool_use"]
    text = "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
    thoughts = [block for block in blocks if as_text(block.get("type")) in THOUGHTS]
    server_blocks = [block for block in blocks if block.get("type") not in ("text", "tool_use", *THOUGHTS)]
    reply: Body = {"role": "assistant", "content": text if text or not calls else None}
    if thoughts:
        reply["reasoning_content"] = "".join(as_text(block.get("thinking")) for block in thoughts)
        reply["thinking_blocks"] = thoughts
    if calls:
        reply["tool_calls"] = calls
    if server_blocks:
        reply["server_tool_blocks"] = server_blocks
    return {**reply, **_cited(blocks)}


def _cited(blocks: Sequence[Mapping[str, Any]]) -> Body:
    cited: list[Any] = []
    annotations: list[Body] = []
    start = 0
    for block in blocks:
        if block.get("type") != "text":
            continue
        end = start + len(as_text(block.get("text")))
        citations = as_sequence(block.get("citations"))
        cited += citations
        annotations += to_annotations(citations, start, end)
        start = end
    return {name: value for name, value in (("citations", cited), ("annotations", annotations)) if value}


def _tool_call(block: Mapping[str, Any]) -> Body:
    arguments = orjson.dumps(block.get("input") or {}).decode()
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}
