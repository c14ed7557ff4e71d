"""One round of the tool loop: passes text on to the caller and holds tool calls back; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.deltas import calls_of, text_of, usage_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import ToolCallAssembler
from gatewayd.pipeline.tools.arguments import to_json_object

_HEAD: Final = ("id", "created", "model")
_LISTS: Final = ("thinking_blocks", "reasoning_details", "server_tool_blocks")
"""Lists of a message that its provider needs back with the results of the calls."""

CALLS: Final = ("tool_calls", "function_call")
"""Fields with the calls of a message or delta; see `deltas.calls_of`."""

REASONING_FIELD: Final = "reasoning_content"


class ToolLoopState:
    """State shared by the rounds of one answer: its id, its usage, and the end of its text."""

    def __init__(self) -> None:
        self.head: Body = {}
        self.used: Body = {}
        self.rounds = 0
        self.last_character = ""

    def gap(self, text: str) -> str:
        """Return the separator between the text of earlier rounds and the next text."""
        if not text or not self.last_character or self.last_character.isspace() or text[0].isspace():
            return ""
        return "\n\n"

    def set_id(self, event: Body) -> None:
        """Set the id of an event to that of the first one."""
        for field in _HEAD:
            if event.get(field):
                event[field] = self.head.setdefault(field, event[field])

    def add_usage(self, usage: Mapping[str, Any]) -> None:
        """Add the usage of one round."""
        self.used = add_usage(self.used, usage)


class ToolTurn:
    """Filters the events of one stream for the caller.

    Tool calls and the final events are held back, because only the end of the stream shows whether the answer
    ends. `is_broken` is set if the source reported an in-band error.
    """

    def __init__(self, state: ToolLoopState) -> None:
        self._state = state
        self._calls = ToolCallAssembler()
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._message: Body = {}
        self._used: Body = {}
        self._tail: list[Body] = []
        self.is_broken = False

    def feed(self, events: Sequence[Body]) -> list[Body]:
        """Return the events that pass on; they are changed in place."""
        return [passed for event in events if (passed := self._event(event)) is not None]

    def calls(self) -> list[Body]:
        """Return the calls of the model."""
        return self._calls.calls()

    def message(self) -> Body:
        """Return the assistant message for the next request."""
        fields = {REASONING_FIELD: "".join(self._thoughts), "content": "".join(self._texts)}
        return assistant_call_message({**self._message, **fields}, self.calls())

    def close(self) -> list[Body]:
        """End the round and return the final events without the calls."""
        self._state.add_usage(self._used)
        self._state.rounds += 1
        return self._tail

    def _event(self, event: Body) -> Body | None:
        if event.get("error"):
            self.is_broken = True
            return event
        self._state.set_id(event)
        is_usage = self._take_usage(event)
        choices = as_sequence(event.get("choices"))
        if not choices and not is_usage:
            return event
        passing, ends = self._divide(choices)
        if ends or (not passing and is_usage):
            self._tail.append({**event, "choices": ends})
            event.pop("usage", None)
        event["choices"] = passing
        return event if passing else None

    def _take_usage(self, event: Body) -> bool:
        usage = usage_of(event)
        if not usage:
            return False
        self._used.update(usage)
        if self._state.used:
            event["usage"] = add_usage(self._state.used, self._used)
        return True

    def _divide(self, choices: Sequence[Any]) -> tuple[list[Body], list[Body]]:
        """Return the choices that pass on, and those that end the stream."""
        passing, ends = [], []
        for choice in choices:
            if not isinstance(choice, dict):
                continue
            if choice.get("index") in (None, 0):
                self._collect(choice)
            reason = choice.get("finish_reason")
            if reason is not None:
                ends.append({**choice, "delta": {}, "logprobs": None})
                choice["finish_reason"] = None
            if as_mapping(choice.get("delta")) or choice.get("logprobs"):
                passing.append(choice)
        return passing, ends

    def _collect(self, choice: Body) -> None:
        """Store the parts of a delta that the next request needs, and leave those for the caller."""
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        self._calls.add(calls_of(delta))
        for name in CALLS:
            delta.pop(name, None)
        if self._state.rounds:
            delta.pop("role", None)
            if delta.get("content") in (None, ""):
                delta.pop("content", None)
        for name in _LISTS:
            self._message.setdefault(name, []).extend(as_sequence(delta.get(name)))
        self._thoughts.append(as_text(delta.get(REASONING_FIELD)))
        text = text_of(delta)
        if text:
            self._texts.append(text)
            if isinstance(delta.get("content"), str):
                delta["content"] = self._state.gap(text) + text if len(self._texts) == 1 else text
            self._state.last_character = text[-1]


def assistant_call_message(message: Mapping[str, Any], calls: list[Body]) -> Body:
    """Return an assistant message with calls in the form of a request."""
    kept = {name: message[name] for name in (REASONING_FIELD, *_LISTS) if message.get(name)}
    asked = [{**call, "function": _function(call["function"])} for call in calls]
    return {"role": "assistant", "content": message.get("content") or None, **kept, "tool_calls": asked}


def _function(function: Body) -> Body:
    return {**function, "arguments": to_json_object(function["arguments"])}


def add_usage(known: Mapping[str, Any], more: Mapping[str, Any]) -> Body:
    """Return the sums of two usages, member by member; of other values the later one wins."""
    total: Body = dict(known)
    for name, value in more.items():
        before = total.get(name)
        if isinstance(value, dict):
            total[name] = add_usage(as_mapping(before), value)
        elif _is_number(value) and _is_number(before):
            total[name] = before + value
        elif value is not None or before is None:
            total[name] = value
    return total


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
