"""Reads a provider's stream of the messages protocol for a caller who speaks that protocol too; pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.json_access import as_sequence, as_text
from gatewayd.completions.limits import MAX_LINE_BYTES
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.upstream.streams.sse import (
    DONE_WORD,
    DataFramer,
    FramingError,
    decode_payload,
    drop_truncated,
    find_error,
)

TYPE: Final = re.compile(r"[a-z_]{1,64}")
"""What may stand in an `event:` line: every name of the protocol, and those that it may get."""

MESSAGE_EVENTS: Final = frozenset(
    {"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
)
"""The events that make no sense before a message has begun."""

STOP: Final[Body] = {"type": "message_stop"}


class MessageReader:
    """Passes whole events on, under `event:` lines of our own; a `StreamReader`.

    The JSON text stays as it came, but for the model in `message_start`, which becomes `model_id`, and a
    top-level `event` object, which is left out. Types that are not known are passed on, as the protocol says
    that clients must bear them. What comes before `message_start`, a second one, and what follows
    `message_stop` is dropped; a missing `message_stop` is added after a stop reason. An `error` event, or
    what is not an event, ends the stream and is left in `error`, after the chunk of what came before.
    """

    def __init__(self, model_id: str, max_line: int = MAX_LINE_BYTES) -> None:
        self._framer = DataFramer(max_line)
        self._model_id = model_id
        self._has_started = False
        self._has_reason = False
        self.is_done = False
        self.error: object = None

    @property
    def is_complete(self) -> bool:
        """Whether the answer came to its end."""
        return self.is_done or self._has_reason

    def feed(self, read: bytes) -> CompletionChunk | None:
        """Take one read and return the events that are now whole, None when none is; raises FramingError."""
        return _chunk(self._all(self._framer.feed(read)))

    def finish(self) -> CompletionChunk | None:
        """Return what the end of the stream completed; raises FramingError for a stream without a message."""
        frames = self._all(drop_truncated(self._framer.finish()))
        if self._has_reason:
            frames += self._all([orjson.dumps(STOP)])
        if self.error is None and not self._has_started:
            raise FramingError("it sent no message_start")
        return _chunk(frames)

    def _all(self, payloads: list[bytes]) -> list[bytes]:
        frames: list[bytes] = []
        for payload in payloads:
            if self.is_done or self.error is not None:
                break
            if payload.strip() in {b"", DONE_WORD}:
                continue
            try:
                frames += self._frames(payload)
            except FramingError as error:
                self.error = error
        return frames

    def _frames(self, payload: bytes) -> Iterator[bytes]:
        event = decode_payload(payload)
        self.error = find_error(event)
        if self.error is not None:
            return
        kind = event.get("type")
        if not isinstance(kind, str) or not TYPE.fullmatch(kind):
            raise FramingError("it sent an event without a type")
        if kind == "error":
            self.error = event
        elif self._passes(kind, event):
            whole = event.pop("event", self) is self and kind != "message_start" and b"\n" not in payload
            yield _frame(kind, payload.strip() if whole else orjson.dumps(event))

    def _passes(self, kind: str, event: Body) -> bool:
        """Tell whether an event is passed on, and note what it says about the message."""
        if kind == "message_start":
            return self._starts(event)
        if not self._has_started:
            if kind in MESSAGE_EVENTS:
                raise FramingError(f"it sent {kind} before message_start")
            return False
        if kind == "message_delta":
            delta = event.get("delta")
            self._has_reason = self._has_reason or bool(isinstance(delta, dict) and delta.get("stop_reason"))
        elif kind == "message_stop":
            self.is_done = True
        return True

    def _starts(self, event: Body) -> bool:
        if self._has_started:
            return False
        message = event.get("message")
        if not isinstance(message, dict):
            raise FramingError("it sent a message_start without a message")
        message["model"] = self._model_id
        self._has_started = True
        return True


def message_events(message: Mapping[str, Any], model_id: str) -> CompletionChunk:
    """Return a message that came whole as the events of a stream; raises FramingError for what is none."""
    blocks = message.get("content")
    if not isinstance(blocks, list):
        raise FramingError("its answer has no 'content'")
    usage = message.get("usage") or {"input_tokens": 0, "output_tokens": 0}
    head = {"type": "message", "role": "assistant", **message, "model": model_id, "usage": usage}
    begun = {**head, "content": [], "stop_reason": None, "stop_sequence": None}
    begun.pop("event", None)
    events: list[Body] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(item for item in blocks if isinstance(item, dict)):
        events += _block_events(index, block)
    delta = {"stop_reason": message.get("stop_reason") or "end_turn"}
    delta["stop_sequence"] = message.get("stop_sequence")
    events.append({"type": "message_delta", "delta": delta, "usage": usage})
    events.append(STOP)
    return CompletionChunk(raw=b"".join(_frame(event["type"], orjson.dumps(event)) for event in events))


def _block_events(index: int, block: Mapping[str, Any]) -> list[Body]:
    """Return the events of one block, its parts in deltas as clients expect, and whole if it has none."""
    begun, deltas = _deltas(block)
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _deltas(block: Mapping[str, Any]) -> tuple[Body, list[Body]]:
    match block.get("type"):
        case "text":
            deltas: list[Body] = [{"type": "text_delta", "text": as_text(block.get("text"))}]
            cited = as_sequence(block.get("citations"))
            deltas += [{"type": "citations_delta", "citation": item} for item in cited]
            return {"type": "text", "text": ""}, deltas
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": as_text(block.get("thinking"))}]
            if block.get("signature"):
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            given = orjson.dumps(block.get("input") or {}).decode()
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": given}]
        case _:
            return dict(block), []


def _frame(kind: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)


def _chunk(frames: list[bytes]) -> CompletionChunk | None:
    return CompletionChunk(raw=b"".join(frames)) if frames else None
