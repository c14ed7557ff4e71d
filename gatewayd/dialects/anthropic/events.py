"""Converts the events of an Anthropic message stream to OpenAI chunks; pure."""

from collections.abc import Mapping
from typing import Any

import orjson

from gatewayd.completions.embedded_json import has_too_many_values
from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.limits import check_calls
from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.completion import finish_fields, to_annotations, to_usage


class EventDecoder:
    """Converts the events of one stream, in order, to chat.completion.chunk objects.

    `error` holds the error object of an `error` event. `is_done` is set after `message_stop`, `is_complete`
    after a stop reason. With `include_usage` a chunk with the usage follows the one with the finish reason.
    Some fields are sent whole at the end of their block: `thinking_blocks` with signatures (the thoughts
    themselves were sent as `reasoning_content`), `server_tool_blocks`, `citations` and `annotations`, named
    as in `completion`.
    """

    def __init__(self, created: int, *, include_usage: bool) -> None:
        self._created = created
        self._include_usage = include_usage
        self._id: Any = None
        self._model: Any = None
        self._usage: Body = {}
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._text_length = 0
        self.error: object = None
        self.is_done = False
        self.is_complete = False

    def decode(self, event: Mapping[str, Any]) -> list[Body]:
        """Return the chunks for one event; pings and unknown events give none."""
        match event.get("type"):
            case "message_start":
                return self._start(as_mapping(event.get("message")))
            case "content_block_start":
                return self._block(as_count(event.get("index")), as_mapping(event.get("content_block")))
            case "content_block_delta":
                return self._delta(as_count(event.get("index")), as_mapping(event.get("delta")))
            case "content_block_stop":
                return self._block_end(as_count(event.get("index")))
            case "message_delta":
                return self._end(event)
            case "message_stop":
                self.is_done = True
            case "error":
                self.error = event.get("error") or event
            case _:
                pass
        return []

    def _start(self, message: Mapping[str, Any]) -> list[Body]:
        self._id, self._model = message.get("id"), message.get("model")
        self._usage.update(as_mapping(message.get("usage")))
        return [self._chunk({"role": "assistant", "content": ""})]

    def _block(self, index: int, given: Mapping[str, Any]) -> list[Body]:
        block = self._blocks[index] = _Block(given, self._calls, self._text_length)
        match given.get("type"):
            case "text":
                return self._text(as_text(given.get("text")))
            case "thinking":
                return self._thought(as_text(given.get("thinking")))
            case "tool_use":
                self._calls += 1
                check_calls(self._calls)
                arguments = orjson.dumps(given["input"]).decode() if given.get("input") else ""
                block.parts.append(arguments)
                function = {"name": given.get("name"), "arguments": arguments}
                call = {"index": block.call, "id": given.get("id"), "type": "function", "function": function}
                return [self._chunk({"tool_calls": [call]})]
            case _:
                return []

    def _delta(self, index: int, delta: Mapping[str, Any]) -> list[Body]:
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _Block({}, self._calls, self._text_length)
        block.add(delta)
        match delta.get("type"):
            case "text_delta":
                return self._text(as_text(delta.get("text")))
            case "thinking_delta":
                return self._thought(as_text(delta.get("thinking")))
            case "input_json_delta" if block.is_call and as_text(delta.get("partial_json")):
                return [self._arguments(block.call, delta["partial_json"])]
        return []

    def _text(self, text: str) -> list[Body]:
        self._text_length += len(text)
        return [self._chunk({"content": text})] if text else []

    def _thought(self, thought: str) -> list[Body]:
        return [self._chunk({"reasoning_content": thought})] if thought else []

    def _block_end(self, index: int) -> list[Body]:
        block = self._blocks.pop(index, None)
        if block is None:
            return []
        if block.is_call:
            # A call without arguments sent no text, but callers expect JSON.
            return [] if "".join(block.parts) else [self._arguments(block.call, "{}")]
        delta = block.delta(self._text_length)
        return [self._chunk(delta)] if delta else []

    def _end(self, event: Mapping[str, Any]) -> list[Body]:
        given = as_mapping(event.get("usage"))
        self._usage.update({name: value for name, value in given.items() if value is not None})
        delta = as_mapping(event.get("delta"))
        reason = delta.get("stop_reason")
        chunks: list[Body] = []
        if reason is not None:
            self.is_complete = True
            for index in sorted(self._blocks):
                chunks += self._block_end(index)
            last = self._chunk({})
            last["choices"][0].update(finish_fields(reason, delta.get("stop_sequence")))
            chunks.append(last)
        if self._include_usage and self.is_complete:
            chunks.append({**self._chunk({}), "choices": [], "usage": to_usage(self._usage)})
        return chunks

    def _arguments(self, call: int, part: str) -> Body:
        return self._chunk({"tool_calls": [{"index": call, "function": {"arguments": part}}]})

    def _chunk(self, delta: Body) -> Body:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}],
        }


class _Block:
    """One content block while its deltas arrive; `call` is its number if it calls a tool of the caller."""

    def __init__(self, given: Mapping[str, Any], call: int, start: int) -> None:
        self.call = call
        self.parts: list[str] = []
        self._given = given
        self._start = start
        self._thoughts = [as_text(given.get("thinking"))]
        self._signatures = [as_text(given.get("signature"))]
        self._citations = list(as_sequence(given.get("citations")))

    @property
    def is_call(self) -> bool:
        """Whether the caller must run this call."""
        return self._given.get("type") == "tool_use"

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add one delta."""
        self._thoughts.append(as_text(delta.get("thinking")))
        self._signatures.append(as_text(delta.get("signature")))
        self.parts.append(as_text(delta.get("partial_json")))
        if delta.get("citation") is not None:
            self._citations.append(delta["citation"])

    def delta(self, end: int) -> Body:
        """Return the final delta of a closed block; the text so far is `end` characters long."""
        signature = "".join(self._signatures)
        match self._given.get("type"):
            case "text" | None:
                return self._cited(end)
            case "thinking" if signature:
                thought = "".join(self._thoughts)
                block = {**self._given, "thinking": thought, "signature": signature}
                return {"thinking_blocks": [block]}
            case "thinking":
                return {}
            case "redacted_thinking":
                return {"thinking_blocks": [self._given]}
            case _:
                return {"server_tool_blocks": [self._with_input()]}

    def _cited(self, end: int) -> Body:
        if not self._citations:
            return {}
        annotations = to_annotations(self._citations, self._start, end)
        return {"citations": self._citations, **({"annotations": annotations} if annotations else {})}

    def _with_input(self) -> Body:
        given = "".join(self.parts)
        if not given:
            return dict(self._given)
        if has_too_many_values(given):
            return {**self._given, "input": given}
        try:
            return {**self._given, "input": orjson.loads(given)}
        except orjson.JSONDecodeError:
            # Keep the unparsed text; nothing else is known of the input.
            return {**self._given, "input": given}
