"""Turns whatever a pipe gives (text, lines, mappings, models) into chunks or a completion; pure."""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from pydantic import BaseModel

from gatewayd import ids
from gatewayd.catalog.replies import Body
from gatewayd.chat.pipetexts import Texts
from gatewayd.completions.foreign import mapping, sequence, text
from gatewayd.completions.gather import ToolCalls, said, thought, usage_of
from gatewayd.errors import GatewayError, Kind

CHUNK: Final = "chat.completion.chunk"
_WITHOUT_CHOICES: Final = ("event", "error")
_OF_CHUNKS: Final = frozenset({"choices", "object", "id", "created", "model", "usage", "event"})


class PipeReading:
    """Makes chunk events of one pipe's items.

    Beside chunks it returns `{"event": {...}}` and `{"error": ...}` as they came, for the caller to act on.
    """

    def __init__(self, model: str, *, new_id: ids.NewId = ids.new_id, clock: ids.Clock = ids.now) -> None:
        self._head = {"id": f"{model}-{new_id()}", "object": CHUNK, "created": clock(), "model": model}
        self._texts = Texts()
        self._has_role = False
        self._has_calls = False
        self._is_finished = False

    def feed(self, item: Any) -> list[Body]:
        """Return the events that an item makes: none, one or several. Raises plugin_failed for no JSON."""
        value = plain(item)
        if value is None:
            return []
        if isinstance(value, dict):
            return self._mapping(value)
        return self._tokens(self._texts.feed(value))

    def finish(self) -> list[Body]:
        """Return what was held back, and the chunk that ends the answer unless the pipe sent one."""
        events = self._tokens(self._texts.finish())
        if not self._is_finished:
            events.append(self._chunk({}, "tool_calls" if self._has_calls else "stop"))
        return events

    def _tokens(self, tokens: list[str | Body]) -> list[Body]:
        events: list[Body] = []
        for token in tokens:
            events += [self._said(token)] if isinstance(token, str) else self._mapping(token)
        return events

    def _said(self, content: str) -> Body:
        role = {} if self._has_role else {"role": "assistant"}
        self._has_role = True
        return self._chunk({**role, "content": text(content)}, None)

    def _chunk(self, delta: Body, finish_reason: str | None) -> Body:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "choices": [choice]}

    def _mapping(self, value: Body) -> list[Body]:
        _check_json(value)
        choices = [mapping(choice) for choice in sequence(value.get("choices"))]
        if not choices and any(name in value for name in _WITHOUT_CHOICES):
            return [value]
        if any(isinstance(choice.get("message"), dict) for choice in choices):
            return self._whole(value, choices)
        for choice in choices:
            delta = mapping(choice.get("delta"))
            self._has_role = self._has_role or "role" in delta
            self._has_calls = self._has_calls or bool(delta.get("tool_calls"))
            self._is_finished = self._is_finished or bool(choice.get("finish_reason"))
        return [{**self._head, **value, "choices": value.get("choices") or []}]

    def _whole(self, value: Body, choices: list[Mapping[str, Any]]) -> list[Body]:
        """Return a whole completion as a delta and an end."""
        message = dict(mapping(choices[0].get("message")))
        calls = [dict(call) for call in sequence(message.pop("tool_calls", None)) if isinstance(call, dict)]
        if calls:
            message["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
        extra = {name: part for name, part in value.items() if name not in _OF_CHUNKS}
        events = [{**self._chunk(message, None), **extra}] if message or extra else []
        self._has_role = self._is_finished = True
        reason = text(choices[0].get("finish_reason")) or ("tool_calls" if calls else "stop")
        events.append(self._chunk({}, reason))
        if isinstance(value.get("usage"), dict):
            events.append({**self._head, "choices": [], "usage": value["usage"]})
        return events


class Gathering:
    """Puts the chunk events of one answer together again, for callers who want it whole."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls = ToolCalls()
        self._usage: Mapping[str, Any] = {}
        self._extra: Body = {}
        self._finish = ""

    def add(self, event: Body) -> None:
        """Take one event: sources are added to those before; of several choices the first counts alone."""
        self._usage = usage_of(event) or self._usage
        sources = [*sequence(self._extra.get("sources")), *sequence(event.get("sources"))]
        self._extra |= {name: value for name, value in event.items() if name not in _OF_CHUNKS}
        if sources:
            self._extra["sources"] = sources
        for choice in (mapping(item) for item in sequence(event.get("choices"))):
            if choice.get("index", 0) != 0:
                continue
            delta = mapping(choice.get("delta"))
            self._content.append(said(delta))
            self._reasoning.append(thought(delta))
            self._calls.add(delta.get("tool_calls"))
            self._finish = text(choice.get("finish_reason")) or self._finish

    def body(self, model: str) -> Body:
        """Return the completion."""
        message: Body = {"role": "assistant", "content": "".join(self._content)}
        if any(self._reasoning):
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = self._calls.calls()
        body = {**self._extra, **completion(model, message, self._finish or "stop")}
        return {**body, "usage": dict(self._usage)} if self._usage else body


def completion(
    model: str,
    message: Body,
    finish_reason: str = "stop",
    *,
    new_id: ids.NewId = ids.new_id,
    clock: ids.Clock = ids.now,
) -> Body:
    """Return a completion around one message."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": f"{model}-{new_id()}",
        "object": "chat.completion",
        "created": clock(),
        "model": model,
        "choices": [choice],
    }


def whole_text(model: str, content: str | None) -> Body:
    """Return a completion that says a text, or nothing at all."""
    return completion(model, {"role": "assistant", "content": None if content is None else text(content)})


def whole_mapping(model: str, value: Body) -> Body:
    """Return a completion that a pipe returned, with what it left out; raises plugin_failed for no JSON."""
    _check_json(value)
    made = completion(model, {})
    return {**{name: made[name] for name in ("id", "object", "created", "model")}, **value}


def plain(item: Any) -> "str | bytes | Body | None":
    """Return an item as text, bytes, a mapping or None; raises plugin_failed for anything else."""
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


def sentence_of(error: Any) -> str:
    """Return the text in the `error` of a reply, which is a text or an object with one."""
    if isinstance(error, str):
        return error
    for name in ("message", "detail"):
        found = mapping(error).get(name)
        if found:
            return sentence_of(found)
    return orjson.dumps(error, default=str).decode()


def _check_json(value: Body) -> None:
    try:
        orjson.dumps(value)
    except TypeError as error:
        raise _unusable(f"it is not JSON: {error}") from None


def _unusable(reason: str) -> GatewayError:
    return GatewayError(Kind.PLUGIN_FAILED, f"cannot use what the function gave: {reason}")
