"""A provider of the messages protocol that signs its thinking and takes no other; it answers as it is told.

Its other refusals are the matter of other modules.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from tests.fakes.providers.strict.base import Body, StrictProvider, StrictRefusalError


def signature(text: str) -> str:
    """The signature of a thinking text."""
    return "Eq" + hmac.new(b"anthropic", text.encode(), hashlib.sha256).hexdigest()


def thinking(text: str) -> Body:
    """A signed block."""
    return {"type": "thinking", "thinking": text, "signature": signature(text)}


def check(body: Body) -> None:
    """Refuse thinking that is not signed here, blank texts, and calls and results without a pair."""
    used: set[str] = set()
    open_ids: set[str] = set()
    for index, message in enumerate(body["messages"]):
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if not blocks:
            raise _refused(f"messages.{index}: all messages must have non-empty content")
        answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if answered != open_ids:
            raise _refused(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after"
                if open_ids - answered
                else f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks"
            )
        open_ids = set()
        for place, block in enumerate(blocks):
            _block(block, f"messages.{index}.content.{place}")
            if block["type"] == "tool_use":
                if block["id"] in used:
                    raise _refused(f"messages.{index}: `tool_use` ids must be unique")
                used.add(block["id"])
                open_ids.add(block["id"])
    _budget(body)


def _block(block: Mapping[str, Any], where: str) -> None:
    if block["type"] == "thinking":
        if "signature" not in block:
            raise _refused(f"{where}.thinking.signature: Field required")
        if block["signature"] != signature(block["thinking"]):
            raise _refused(f"{where}: Invalid `signature` in `thinking` block")
    if block["type"] == "text" and not block["text"].strip():
        raise _refused(f"{where}: text content blocks must be non-empty")
    if block["type"] == "tool_use" and not block["id"].replace("-", "").replace("_", "").isalnum():
        raise _refused(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _budget(body: Body) -> None:
    """With a budget the last calls must have been made after thinking."""
    if (body.get("thinking") or {}).get("type") != "enabled":
        return
    spoken = [message for message in body["messages"] if message["role"] == "assistant"]
    last = body["messages"][-1]["content"]
    is_result = isinstance(last, list) and any(block["type"] == "tool_result" for block in last)
    if is_result and spoken[-1]["content"][0]["type"] not in ("thinking", "redacted_thinking"):
        found = spoken[-1]["content"][0]["type"]
        raise _refused(f"Expected `thinking` or `redacted_thinking`, but found `{found}`")


class SigningProvider(StrictProvider):
    """The provider; scripted answers are lists of blocks under `content`."""

    async def answer(self, request: web.Request, body: Body) -> web.StreamResponse:
        """Answer a messages request, streamed or whole, or the list of models."""
        if request.method == "GET":
            return web.json_response({"data": self._models, "has_more": False})
        message = (
            self._scripted.pop(0) if self._scripted else {"content": [{"type": "text", "text": "Hello."}]}
        )
        blocks = message["content"]
        is_call = any(block["type"] == "tool_use" for block in blocks)
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "usage": USAGE}
        end = {"stop_reason": "tool_use" if is_call else "end_turn", "stop_sequence": None}
        if not body.get("stream"):
            return web.json_response({**head, "content": blocks, **end})
        events = [{"type": "message_start", "message": {**head, "content": [], "stop_reason": None}}]
        for index, block in enumerate(blocks):
            events += _events(index, block)
        events += [{"type": "message_delta", "delta": end, "usage": USAGE}, {"type": "message_stop"}]
        frames = [f"event: {each['type']}\ndata: {orjson.dumps(each).decode()}\n\n" for each in events]
        return web.Response(text="".join(frames), content_type="text/event-stream")


USAGE = {"input_tokens": 5, "output_tokens": 3}


def _events(index: int, block: Body) -> list[Body]:
    def delta(**fields: Any) -> Body:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    match block["type"]:
        case "thinking":
            start: Body = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                delta(type="thinking_delta", thinking=block["thinking"]),
                delta(type="signature_delta", signature=block["signature"]),
            ]
        case "tool_use":
            start = {**block, "input": {}}
            deltas = [delta(type="input_json_delta", partial_json=orjson.dumps(block["input"]).decode())]
        case _:
            start = {**block, "text": ""}
            deltas = [delta(type="text_delta", text=block["text"])]
    begun = {"type": "content_block_start", "index": index, "content_block": start}
    return [begun, *deltas, {"type": "content_block_stop", "index": index}]


def _refused(message: str) -> StrictRefusalError:
    error = {"type": "invalid_request_error", "message": message}
    return StrictRefusalError(400, {"type": "error", "error": error})
