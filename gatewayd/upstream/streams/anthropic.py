"""Reader that forwards a messages stream of a provider to a caller of the same protocol; without I/O."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.limits import MAX_LINE_BYTES
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.upstream.streams.chunks import ReportedError
from gatewayd.upstream.streams.decoder import StreamFramer
from gatewayd.upstream.streams.sse import (
    DONE_WORD,
    DataFramer,
    FramingError,
    decode_payload,
    drop_truncated,
    find_error,
)

TYPE: Final = re.compile(r"[a-z_]{1,64}")
"""Valid names in an `event:` line: those of the protocol, and future ones."""

MESSAGE_EVENTS: Final = frozenset(
    {"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
)
"""The events that are invalid before `message_start`."""

USAGE: Final = (
    *("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    "output_tokens_details",
)
"""Counts in the usage of a message."""

STOP: Final[Body] = {"type": "message_stop"}


class MessageReader:
    """A `StreamReader` that forwards complete events with new `event:` lines.

    The JSON text is unchanged, except the model in `message_start`, which becomes `model_id`, and a top-level
    `event` object, which is removed. Unknown types are forwarded, because the protocol requires clients to
    accept them. Events before `message_start`, a second one, and events after `message_stop` are dropped; a
    missing `message_stop` is added after a stop reason. An `error` event, or text that is no event, ends the
    stream and is stored in `error`, after the chunk of the events before it.
    """

    def __init__(
        self, model_id: str, max_line: int = MAX_LINE_BYTES, framer: StreamFramer | None = None
    ) -> None:
        self._framer = framer or DataFramer(max_line)
        self._model_id = model_id
        self._has_started = False
        self._has_reason = False
        self._characters = 0
        self._usage: Body = {}
        self.is_done = False
        self.error: object = None

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        return self.is_done or self._has_reason

    def feed(self, read: bytes) -> CompletionChunk | None:
        """Return the events that one read completes, None if there are none; raises FramingError."""
        return self._chunk(self._all(self._framer.feed(read)))

    def finish(self) -> CompletionChunk | None:
        """Return the events that the end completes; raises FramingError for a stream without a message."""
        frames = self._all(drop_truncated(self._framer.finish()))
        if self._has_reason:
            frames += self._all([orjson.dumps(STOP)])
        if self.error is None and not self._has_started:
            raise FramingError("it sent no message_start")
        return self._chunk(frames)

    def _chunk(self, frames: list[bytes]) -> CompletionChunk | None:
        characters, self._characters = self._characters, 0
        if not frames:
            return None
        return CompletionChunk(raw=b"".join(frames), characters=characters, usage=self._usage or None)

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
        kind = event.get("type")
        if kind != "error":
            self.error = find_error(event)
            if self.error is not None:
                return
        if not isinstance(kind, str) or not TYPE.fullmatch(kind):
            raise FramingError("it sent an event without a type")
        if kind == "error":
            self.error = ReportedError(event, payload.strip())
        elif self._passes(kind, event):
            whole = event.pop("event", self) is self and kind != "message_start" and b"\n" not in payload
            yield _frame(kind, payload.strip() if whole else orjson.dumps(event))

    def _passes(self, kind: str, event: Body) -> bool:
        """Return whether an event is forwarded, and record the state of the message."""
        if kind == "message_start":
            return self._starts(event)
        if not self._has_started:
            if kind in MESSAGE_EVENTS:
                raise FramingError(f"it sent {kind} before message_start")
            return False
        if kind == "message_delta":
            delta = event.get("delta")
            self._has_reason = self._has_reason or bool(isinstance(delta, dict) and delta.get("stop_reason"))
            self._note(event.get("usage"))
        elif kind == "content_block_delta":
            self._characters += sum(map(len, filter(_is_text, as_mapping(event.get("delta")).values())))
        elif kind == "message_stop":
            self.is_done = True
        return True

    def _note(self, usage: object) -> None:
        given = as_mapping(usage)
        self._usage = {**self._usage, **{name: given[name] for name in USAGE if given.get(name) is not None}}

    def _starts(self, event: Body) -> bool:
        if self._has_started:
            return False
        message = event.get("message")
        if not isinstance(message, dict):
            raise FramingError("it sent a message_start without a message")
        message["model"] = self._model_id
        self._note(message.get("usage"))
        self._has_started = True
        return True


def message_events(message: Mapping[str, Any], model_id: str) -> CompletionChunk:
    """Return a whole message as the events of a stream; raises FramingError if it is no message."""
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
    raw = b"".join(_frame(event["type"], orjson.dumps(event)) for event in events)
    return CompletionChunk(raw=raw, usage=as_mapping(usage))


def _block_events(index: int, block: Mapping[str, Any]) -> list[Body]:
    """Return the events of one block: its parts as deltas, or the whole block if it has no parts."""
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


def _is_text(value: object) -> bool:
    return isinstance(value, str)
