"""The events of an Anthropic message stream as OpenAI chunks; pure."""

from collections.abc import Mapping
from typing import Any

import orjson

from gatewayd.catalog.replies import Body
from gatewayd.dialects.anthropic_source import finish_reason, to_usage
from gatewayd.dialects.foreign import count, mapping, text


class EventDecoder:
    """Takes the events of one stream in order, gives chat.completion.chunk objects.

    `error` holds the error object of an `error` event, `is_done` is true after `message_stop`, and
    `is_complete` when a stop reason was seen. With `include_usage` the last chunk holds the usage.
    """

    def __init__(self, created: int, *, include_usage: bool) -> None:
        self._created = created
        self._include_usage = include_usage
        self._id: Any = None
        self._model: Any = None
        self._usage: Body = {}
        self._calls: dict[int, int] = {}
        self._without_arguments: set[int] = set()
        self.error: object = None
        self.is_done = False
        self.is_complete = False

    def decode(self, event: Mapping[str, Any]) -> list[Body]:
        """Return the chunks for one event; pings and unknown events give none."""
        match event.get("type"):
            case "message_start":
                return self._start(mapping(event.get("message")))
            case "content_block_start":
                return self._block(count(event.get("index")), mapping(event.get("content_block")))
            case "content_block_delta":
                return self._delta(count(event.get("index")), mapping(event.get("delta")))
            case "content_block_stop":
                return self._block_end(count(event.get("index")))
            case "message_delta":
                return self._end(event)
            case "message_stop":
                return self._stop()
            case "error":
                self.error = event.get("error") or event
            case _:
                pass
        return []

    def _start(self, message: Mapping[str, Any]) -> list[Body]:
        self._id, self._model = message.get("id"), message.get("model")
        self._usage.update(mapping(message.get("usage")))
        return [self._chunk({"role": "assistant", "content": ""})]

    def _block(self, index: int, block: Mapping[str, Any]) -> list[Body]:
        if block.get("type") == "text":
            return [self._chunk({"content": block["text"]})] if text(block.get("text")) else []
        if block.get("type") == "thinking":
            thought = text(block.get("thinking"))
            return [self._chunk({"reasoning_content": thought})] if thought else []
        if block.get("type") != "tool_use":
            return []
        self._calls[index] = len(self._calls)
        arguments = orjson.dumps(block["input"]).decode() if block.get("input") else ""
        if not arguments:
            self._without_arguments.add(index)
        function = {"name": block.get("name"), "arguments": arguments}
        call = {"index": self._calls[index], "id": block.get("id"), "type": "function", "function": function}
        return [self._chunk({"tool_calls": [call]})]

    def _delta(self, index: int, delta: Mapping[str, Any]) -> list[Body]:
        match delta.get("type"):
            case "text_delta":
                return [self._chunk({"content": text(delta.get("text"))})]
            case "thinking_delta":
                return [self._chunk({"reasoning_content": text(delta.get("thinking"))})]
            case "input_json_delta" if index in self._calls and text(delta.get("partial_json")):
                self._without_arguments.discard(index)
                return [self._arguments(index, delta["partial_json"])]
        return []

    def _block_end(self, index: int) -> list[Body]:
        """A call without arguments has said nothing; callers expect JSON."""
        if index not in self._without_arguments:
            return []
        self._without_arguments.discard(index)
        return [self._arguments(index, "{}")]

    def _end(self, event: Mapping[str, Any]) -> list[Body]:
        self._usage.update(
            {name: value for name, value in mapping(event.get("usage")).items() if value is not None}
        )
        reason = mapping(event.get("delta")).get("stop_reason")
        if reason is None:
            return []
        self.is_complete = True
        return [self._chunk({}, finish_reason(reason))]

    def _stop(self) -> list[Body]:
        self.is_done = True
        if not self._include_usage:
            return []
        return [{**self._chunk({}), "choices": [], "usage": to_usage(self._usage)}]

    def _arguments(self, index: int, part: str) -> Body:
        return self._chunk({"tool_calls": [{"index": self._calls[index], "function": {"arguments": part}}]})

    def _chunk(self, delta: Body, reason: str | None = None) -> Body:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}],
        }
