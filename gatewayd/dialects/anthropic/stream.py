"""Renders OpenAI chunks as the events of a messages stream; pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.completions.deltas import delta_of, first_choices, usage_of
from gatewayd.completions.json_access import as_count
from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.blocks import ContentBlock, ContentBlockQueue
from gatewayd.dialects.anthropic.reply import message_id, render_usage, stop_reason_of
from gatewayd.ids import NewId

_END_FIELDS: Final = frozenset(
    {"finish_reason", "native_finish_reason", "stop_reason", "matched_stop", "stop_sequence"}
)

_DELTAS: Final = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


class MessageStream:
    """Renders the events of one message: message_start, blocks numbered from 0, message_delta, message_stop.

    Only the first choice is rendered. The grouping of events into calls of `feed` does not affect the output.
    `model` is the id that the caller sent, `input_tokens` the estimate used until the provider counts. If
    `stop_sequences` is given, a stop sequence named by the provider must be one of them. `sources`
    (citations, gatewayd-documents(7), CHAT REQUESTS) are part of message_start. `mark` and `used_ids`
    are as in `ContentBlockQueue`.
    """

    def __init__(
        self,
        model: str,
        input_tokens: int,
        new_id: NewId,
        stop_sequences: Collection[str] | None = None,
        sources: Sequence[Mapping[str, Any]] = (),
        mark: str = "",
        used_ids: Collection[str] = (),
    ) -> None:
        self._sources = sources
        self._model = model
        self._input_tokens = input_tokens
        self._new_id = new_id
        self._stop_sequences = stop_sequences
        self._blocks = ContentBlockQueue(new_id, mark, used_ids)
        self._out: list[bytes] = []
        self._index = 0
        self._is_open = False
        self._is_started = False
        self._is_finished = False
        self._usage: Body = {}
        self._end: Body = {}

    def feed(self, events: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the events for these chunk objects; b"" if there are none yet."""
        for event in events:
            self._event(event)
        return self._flush()

    def ping(self) -> bytes:
        """Return a keep-alive event; it is preceded by message_start."""
        if self._is_finished:
            return b""
        self._start(None)
        self._emit({"type": "ping"})
        return self._flush()

    def finish(self) -> bytes:
        """Return the events that close the message, with stop reason and usage; b"" on a second call."""
        if self._is_finished:
            return b""
        self._start(None)
        self._drain(is_last=True)
        reason, stop_sequence = stop_reason_of(self._end, self._blocks.calls_tools, self._stop_sequences)
        usage = render_usage(self._usage, self._input_tokens, self._blocks.characters)
        delta = {"stop_reason": reason, "stop_sequence": stop_sequence}
        self._emit({"type": "message_delta", "delta": delta, "usage": usage})
        self._emit({"type": "message_stop"})
        self._is_finished = True
        return self._flush()

    def _event(self, event: Mapping[str, Any]) -> None:
        if self._is_finished:
            return
        usage = usage_of(event)
        if any(as_count(value) for value in usage.values()):
            self._usage.update({name: value for name, value in usage.items() if value is not None})
        for choice in first_choices(event):
            self._start(event.get("id"))
            self._blocks.add(delta_of(choice))
            self._end.update({name: value for name, value in choice.items() if _is_end_field(name, value)})
            self._drain(is_last=False)

    def _start(self, given_id: object) -> None:
        if self._is_started:
            return
        self._is_started = True
        usage = {**render_usage(None, self._input_tokens), "output_tokens": 0}
        message: Body = {
            "id": message_id(given_id, self._new_id),
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        if self._sources:
            message["sources"] = list(self._sources)
        self._emit({"type": "message_start", "message": message})

    def _drain(self, *, is_last: bool) -> None:
        """Emit what is ready of the first block, and of the next ones once it is closed."""
        queue = self._blocks.queue
        while queue:
            block = queue[0]
            if is_last and block.is_empty and not self._is_open:
                queue.popleft()
                continue
            if not self._is_open and not (is_last or block.is_ready):
                return
            self._emit_block(block, is_last=is_last)
            if not is_last and (len(queue) == 1 or not block.is_ended):
                return
            self._blocks.mark_unsigned(block)
            self._sign(block)
            self._emit({"type": "content_block_stop", "index": self._index})
            self._index += 1
            self._is_open = False
            queue.popleft()

    def _emit_block(self, block: ContentBlock, *, is_last: bool) -> None:
        if not self._is_open:
            if block.kind == "tool_use":
                self._blocks.name_call(block)
            self._emit(
                {
                    "type": "content_block_start",
                    "index": self._index,
                    "content_block": self._blocks.head(block),
                }
            )
            self._is_open = True
        text = block.take() if is_last or block.is_ready else ""
        if text and block.kind in _DELTAS:
            kind, name = _DELTAS[block.kind]
            self._delta({"type": kind, name: text})
        self._sign(block)

    def _sign(self, block: ContentBlock) -> None:
        if block.signature and not block.is_signed:
            block.is_signed = True
            self._delta({"type": "signature_delta", "signature": block.signature})

    def _delta(self, delta: Body) -> None:
        self._emit({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _emit(self, event: Body) -> None:
        self._out.append(b"event: " + event["type"].encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n")

    def _flush(self) -> bytes:
        taken = b"".join(self._out)
        self._out.clear()
        return taken


def _is_end_field(name: str, value: object) -> bool:
    return value is not None and name in _END_FIELDS
