"""Gathers the chunks of a stream into one completion, whatever shape the provider cut them into."""

from collections.abc import Iterable, Mapping
from typing import Any

from gatewayd import ids
from gatewayd.completions.deltas import REASONING_FIELDS, reasoning_of, text_of, usage_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import ToolCallAssembler

_GATHERED = frozenset({*REASONING_FIELDS, "role", "content", "refusal", "tool_calls", "function_call"})

_HEAD = {"id": str, "created": int, "model": str}
"""Fields of an event that stay as they came first, with the type that clients insist on."""

_NAMING = frozenset({"type", "id", "object", "name", "format"})
"""Fields whose text is said again, not continued."""


class _Choice:
    """One choice while its deltas come in."""

    def __init__(self, index: int, new_id: ids.NewId) -> None:
        self.index = index
        self._role = "assistant"
        self._content: list[str] = []
        self._thoughts: list[str] = []
        self._refusal: list[str] = []
        self._calls = ToolCallAssembler(new_id)
        self._function = ToolCallAssembler(new_id)
        self._logprobs: Body = {}
        self._message: Body = {}
        self._fields: Body = {}

    def add(self, choice: Mapping[str, Any]) -> None:
        """Take this choice of one event."""
        self._add_delta(as_mapping(choice.get("delta")) or as_mapping(choice.get("message")))
        _merge(self._logprobs, as_mapping(choice.get("logprobs")))
        kept = {"index", "delta", "message", "logprobs", "usage"}
        self._fields.update(
            {key: value for key, value in choice.items() if key not in kept and value not in (None, "")}
        )

    def body(self) -> Body:
        """Return the choice with its message; a finish reason that never came is what the message tells."""
        message: Body = {"role": self._role, "content": "".join(self._content), **self._message}
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self._refusal:
            message["refusal"] = "".join(self._refusal)
        calls, functions = self._calls.calls(), self._function.calls()
        if calls:
            message["tool_calls"] = calls
        if functions:
            message["function_call"] = functions[0]["function"]
        if not message["content"] and (calls or functions or self._refusal):
            message["content"] = None
        reason = "tool_calls" if calls else "function_call" if functions else "stop"
        logprobs = self._logprobs or None
        return {
            "index": self.index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": reason,
            **self._fields,
        }

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        self._role = as_text(delta.get("role")) or self._role
        self._content.append(text_of(delta))
        thoughts = reasoning_of(delta)
        if thoughts:
            self._thoughts.append(thoughts)
        if as_text(delta.get("refusal")):
            self._refusal.append(delta["refusal"])
        self._calls.add(delta.get("tool_calls"))
        if isinstance(delta.get("function_call"), dict):
            self._function.add([{"index": 0, "function": delta["function_call"]}])
        _merge(self._message, {key: value for key, value in delta.items() if key not in _GATHERED})


class Gatherer:
    """Takes the events of one stream in order, gives the completion that they add up to.

    Reasoning is in `reasoning_content`, whatever the provider calls it. Usage is the last that was not all
    zeros. Other fields of events and choices are kept as they came last; other fields of deltas are joined.
    """

    def __init__(self, new_id: ids.NewId = ids.new_id) -> None:
        self._new_id = new_id
        self._head: Body = {}
        self._usage: Body = {}
        self._fields: Body = {}
        self._choices: dict[int, _Choice] = {}

    def feed(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take the next events; they are not changed."""
        for event in events:
            for name, value in event.items():
                if name in _HEAD:
                    self._head[name] = self._head.get(name) or (value if type(value) is _HEAD[name] else None)
                elif name not in ("object", "choices", "usage", "error", "event") and value is not None:
                    self._fields[name] = value
            self._add_usage(usage_of(event))
            for choice in as_sequence(event.get("choices")):
                if isinstance(choice, dict):
                    self._choice(choice.get("index")).add(choice)

    def completion(self) -> Body:
        """Return the `chat.completion` of what came so far; it has one choice at least."""
        if not self._choices:
            self._choice(0)
        self._head["id"] = self._head.get("id") or f"chatcmpl-{self._new_id()}"
        body: Body = {
            "id": self._head["id"],
            "object": "chat.completion",
            "created": self._head.get("created") or 0,
            "model": self._head.get("model") or "",
            "choices": [self._choices[index].body() for index in sorted(self._choices)],
            **self._fields,
        }
        if self._usage:
            body["usage"] = dict(self._usage)
        return body

    def _choice(self, index: object) -> _Choice:
        number = index if type(index) is int else 0
        if number not in self._choices:
            self._choices[number] = _Choice(number, self._new_id)
        return self._choices[number]

    def _add_usage(self, usage: Mapping[str, Any]) -> None:
        if any(value for value in usage.values() if isinstance(value, int | float)) or not self._usage:
            self._usage.update(usage)


def _merge(known: Body, more: Mapping[str, Any]) -> None:
    """Join what came in pieces: texts and lists grow, objects are merged, all else is replaced."""
    for name, value in more.items():
        before = known.get(name)
        if isinstance(value, dict):
            known[name] = before if isinstance(before, dict) else {}
            _merge(known[name], value)
        elif isinstance(value, list):
            known[name] = before if isinstance(before, list) else []
            known[name].extend(value)
        elif isinstance(value, str) and isinstance(before, str) and name not in _NAMING:
            known[name] = before + value
        elif value is not None:
            known[name] = value
