"""Converts the output of pipes (text, lines, mappings, models) to chunks or a completion; pure."""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from pydantic import BaseModel

from gatewayd import ids
from gatewayd.completions.choices import choice_to_delta, complete_choices, final_choice
from gatewayd.completions.deltas import calls_of, delta_of, first_choices, reasoning_of, text_of, usage_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.limits import check_choices
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import ToolCallAssembler
from gatewayd.completions.tool_call_indices import CHUNK, ToolCallNumbering
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.functions.sse_text import SseTextReader

_WITHOUT_CHOICES: Final = ("event", "error")
_CHUNK_FIELDS: Final = frozenset({"choices", "object", "id", "created", "model", "usage", "event"})


class PipeReader:
    """Converts the items of one pipe to chunk events.

    Items `{"event": {...}}` and `{"error": ...}` are returned unchanged for the caller to handle.
    """

    def __init__(self, model: str, *, new_id: ids.NewId = ids.new_id, clock: ids.Clock = ids.now) -> None:
        self._head = {"id": f"{model}-{new_id()}", "object": CHUNK, "created": clock(), "model": model}
        self._texts = SseTextReader()
        self._numbers = ToolCallNumbering()
        self._has_role = False
        self._has_calls = False
        self._is_finished = False

    def feed(self, item: Any) -> list[Body]:
        """Return the events of an item: none, one or several. Raises plugin_failed for an unusable item."""
        value = normalise_item(item)
        if value is None:
            return []
        if isinstance(value, dict):
            return self._mapping(value)
        return self._tokens(self._texts.feed(value))

    def finish(self) -> list[Body]:
        """Return the buffered events, and the final chunk unless the pipe sent one."""
        events = self._tokens(self._texts.finish())
        if not self._is_finished:
            events.append(self._chunk({}, "tool_calls" if self._has_calls else "stop"))
        return events

    def _tokens(self, tokens: list[str | Body]) -> list[Body]:
        events: list[Body] = []
        for token in tokens:
            events += [self._text_chunk(token)] if isinstance(token, str) else self._mapping(token)
        return events

    def _text_chunk(self, content: str) -> Body:
        role = {} if self._has_role else {"role": "assistant"}
        self._has_role = True
        return self._chunk({**role, "content": as_text(content)}, None)

    def _chunk(self, delta: Body, finish_reason: str | None) -> Body:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "choices": [choice]}

    def _mapping(self, value: Body) -> list[Body]:
        encoded = _encode(value)
        choices = [as_mapping(choice) for choice in as_sequence(value.get("choices"))]
        if not choices and any(name in value for name in _WITHOUT_CHOICES):
            return [value]
        if any(isinstance(choice.get("message"), dict) for choice in choices):
            return self._whole(value, choices)
        # Copy the event: the function may keep and change its object.
        event = {**self._head, **orjson.loads(encoded)}
        event["choices"] = event.get("choices") or []
        self._numbers.normalise(event)
        for choice in choices:
            delta = as_mapping(choice.get("delta"))
            self._has_role = self._has_role or "role" in delta
            self._has_calls = self._has_calls or bool(delta.get("tool_calls"))
            self._is_finished = self._is_finished or bool(choice.get("finish_reason"))
        return [event]

    def _whole(self, value: Body, choices: list[Mapping[str, Any]]) -> list[Body]:
        """Return a whole completion as deltas and final choices."""
        check_choices(len(choices))
        deltas = [choice_to_delta(choice, position) for position, choice in enumerate(choices)]
        extra = {name: part for name, part in value.items() if name not in _CHUNK_FIELDS}
        open_ = [{"logprobs": None, **delta, "finish_reason": None} for delta in deltas]
        events: list[Body] = [{**self._head, "choices": open_, **extra}]
        events.append({**self._head, "choices": [final_choice(delta) for delta in deltas]})
        self._has_role = self._is_finished = True
        usage = usage_of(value)
        if usage:
            events.append({**self._head, "choices": [], "usage": usage})
        return events


class CompletionBuilder:
    """Assembles the chunk events of one answer into a completion."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls = ToolCallAssembler()
        self._usage: Mapping[str, Any] = {}
        self._extra: Body = {}
        self._sources: list[Any] = []
        self._finish = ""

    def add(self, event: Body) -> None:
        """Add one event: its sources are appended, and only the first of several choices counts."""
        self._usage = usage_of(event) or self._usage
        self._sources += as_sequence(event.get("sources"))
        self._extra |= {name: value for name, value in event.items() if name not in _CHUNK_FIELDS}
        if self._sources:
            self._extra["sources"] = self._sources
        for choice in first_choices(event):
            delta = delta_of(choice)
            self._content.append(text_of(delta))
            self._reasoning.append(reasoning_of(delta))
            self._calls.add(calls_of(delta))
            self._finish = as_text(choice.get("finish_reason")) or self._finish

    def body(self, model: str) -> Body:
        """Return the completion."""
        message: Body = {"role": "assistant", "content": "".join(self._content)}
        if any(self._reasoning):
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = self._calls.calls()
        body = {**self._extra, **make_completion(model, message, self._finish or "stop")}
        return {**body, "usage": dict(self._usage)} if self._usage else body


def make_completion(
    model: str,
    message: Body,
    finish_reason: str = "stop",
    *,
    new_id: ids.NewId = ids.new_id,
    clock: ids.Clock = ids.now,
) -> Body:
    """Return a completion with one message."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": f"{model}-{new_id()}",
        "object": "chat.completion",
        "created": clock(),
        "model": model,
        "choices": [choice],
    }


def text_completion(model: str, content: str | None) -> Body:
    """Return a completion with a text, or with null content."""
    return make_completion(
        model, {"role": "assistant", "content": None if content is None else as_text(content)}
    )


def mapping_completion(model: str, value: Body) -> Body:
    """Return a pipe's completion with missing fields filled in; raise plugin_failed if it is not JSON."""
    encoded = _encode(value)
    made = make_completion(model, {})
    head = {name: made[name] for name in ("id", "object", "created", "model")}
    # Copy the object: the function may keep and change it.
    body: Body = {**head, **orjson.loads(encoded)}
    body["object"] = made["object"]
    complete_choices(body)
    return body


def normalise_item(item: Any) -> "str | bytes | Body | None":
    """Return an item as text, bytes, a mapping or None; raise plugin_failed for anything else."""
    if item is None or isinstance(item, str | bytes | dict):
        return item
    if isinstance(item, bytearray | memoryview):
        return bytes(item)
    if isinstance(item, int | float):
        return str(item)
    if not isinstance(item, BaseModel):
        raise _unusable(f"a {type(item).__name__} is neither text nor an object")
    try:
        return item.model_dump(mode="json")
    except ValueError as error:
        raise _unusable(str(error)) from None


def _encode(value: Body) -> bytes:
    """Return a function's output as JSON; raise plugin_failed if it is not JSON."""
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise _unusable(f"it is not JSON: {error}") from None


def _unusable(reason: str) -> GatewayError:
    return GatewayError(ErrorKind.PLUGIN_FAILED, f"cannot use the output of the function: {reason}")
