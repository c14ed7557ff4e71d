"""Responses of the Responses protocol as its provider streams them, and as bridges of others do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Object = dict[str, Any]

USAGE: Object = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 18,
}


def response_of(*output: Object, status: str = "completed", **fields: Any) -> Object:
    """Return a whole response."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": "gpt-6-astra",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE,
        **fields,
    }


def message(text: str, number: int = 0, **part: Any) -> Object:
    """Return a message item."""
    content = {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **part}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }


def reasoning(*summary: str, data: str = "SECRET", number: int = 0) -> Object:
    """Return a reasoning item with a summary, encrypted."""
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": f"rs_{number}", "type": "reasoning", "summary": parts, "encrypted_content": data}


def call(name: str, arguments: str, number: int = 0) -> Object:
    """Return a function call item."""
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": arguments,
    }


def events_of(response: Mapping[str, Any], *, size: int = 3) -> list[Object]:
    """Return the events of a response, in the order of the provider; deltas have `size` characters."""
    events = list(_events(response, size))
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _events(response: Mapping[str, Any], size: int) -> Iterator[Object]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        where = {"item_id": item["id"], "output_index": index}
        hidden = {"content": [], "summary": []} if item["type"] in ("message", "reasoning") else {}
        blank = {name: "" for name in ("arguments", "input") if name in item}
        started = {**item, **{name: hidden[name] for name in hidden if name in item}, **blank}
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        yield from _inner(item, where, size)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": dict(response)}


def _inner(item: Mapping[str, Any], where: Mapping[str, Any], size: int) -> Iterator[Object]:
    match item["type"]:
        case "message":
            for index, part in enumerate(item["content"]):
                kind = part["type"]
                field = "text" if kind == "output_text" else "refusal"
                at = {**where, "content_index": index}
                yield {"type": "response.content_part.added", **at, "part": {**part, field: ""}}
                for piece in pieces(part[field], size):
                    yield {"type": f"response.{kind}.delta", **at, "delta": piece}
                yield {"type": f"response.{kind}.done", **at, field: part[field]}
                yield {"type": "response.content_part.done", **at, "part": part}
        case "reasoning":
            for index, part in enumerate(item["summary"]):
                at = {**where, "summary_index": index}
                yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
                for piece in pieces(part["text"], size):
                    yield {"type": "response.reasoning_summary_text.delta", **at, "delta": piece}
                yield {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]}
                yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
        case "function_call":
            for piece in pieces(item["arguments"], size):
                yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **where, **done}


def pieces(text: str, size: int) -> Sequence[str]:
    """Return a text in pieces of `size` characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]
