"""Answers of Anthropic's messages, whole and streamed, with the headers of the API."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from aiohttp import web

Body = dict[str, Any]

LIMITS: Final = {
    "request-id": "req_strict",
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2099-01-01T00:00:00Z",
}
USAGE: Final = {"input_tokens": 5, "output_tokens": 3, "inference_geo": "us", "speed": "standard"}


async def answer(request: web.Request, body: Body, blocks: list[Body]) -> web.StreamResponse:
    """Answer an accepted request with these blocks; none with `max_tokens` 0."""
    blocks = blocks if body["max_tokens"] else []
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    message = {
        "id": "msg_strict", "type": "message", "role": "assistant", "model": body["model"], "content": blocks,
        "stop_reason": reason if body["max_tokens"] else "max_tokens", "stop_sequence": None, "usage": USAGE,
    }  # fmt: skip
    if not body.get("stream"):
        return web.json_response(message, headers=LIMITS)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **LIMITS})
    await response.prepare(request)
    for event in events(message):
        await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    return response


DELTAS: Final[Mapping[str, Callable[[Body], list[Body]]]] = {
    "text": lambda block: [{"type": "text_delta", "text": block["text"]}],
    "thinking": lambda block: [
        {"type": "thinking_delta", "thinking": block["thinking"]},
        {"type": "signature_delta", "signature": block["signature"]},
    ],
    "tool_use": lambda block: [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}],
}
EMPTY: Final = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def events(message: Body) -> Iterator[Body]:
    """Return a message as the events of a stream."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        kind = block["type"]
        yield {
            "type": "content_block_start",
            "index": index,
            "content_block": {**block, **EMPTY.get(kind, {})},
        }
        for delta in DELTAS.get(kind, lambda _: [])(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": USAGE}
    yield {"type": "message_stop"}
