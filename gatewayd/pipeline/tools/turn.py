"""One round of an answer in which tools are called: what passes on to the caller, what is held back; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.deltas import calls_of, text_of, usage_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.completions.tool_calls import ToolCallAssembler
from gatewayd.pipeline.tools.arguments import to_json_object

_HEAD: Final = ("id", "created", "model")
_LISTS: Final = ("thinking_blocks", "reasoning_details", "server_tool_blocks")
"""Lists of a message that its provider wants back with the results of the calls in it."""

CALLS: Final = ("tool_calls", "function_call")
"""Where the calls of a message or delta stand; see `deltas.calls_of`."""

REASONING_FIELD: Final = "reasoning_content"


class ToolLoopState:
    """What the rounds of one answer have in common: its id, its usage, and the text so far."""

    def __init__(self) -> None:
        self.head: Body = {}
        self.used: Body = {}
        self.rounds = 0
        self.last_character = ""

    def gap(self, words: str) -> str:
        """Return what parts the text of a later round from what was said before."""
        if not words or not self.last_character or self.last_character.isspace() or words[0].isspace():
            return ""
        return "\n\n"

    def name(self, event: Body) -> None:
        """Give an event the id of the first one."""
        for field in _HEAD:
            if event.get(field):
                event[field] = self.head.setdefault(field, event[field])

    def add_usage(self, usage: Mapping[str, Any]) -> None:
        """Count what one round used."""
        self.used = add_usage(self.used, usage)


class ToolTurn:
    """Takes the events of one stream of a source, gives those that the caller may see by now.

    Calls of tools are held back, and with them what ends the stream: whether it ends the answer is known when
    it is over. `is_broken` tells that the source reported an error in band.
    """

    def __init__(self, joined: ToolLoopState) -> None:
        self._joined = joined
        self._calls = ToolCallAssembler()
        self._words: list[str] = []
        self._thoughts: list[str] = []
        self._message: Body = {}
        self._used: Body = {}
        self._tail: list[Body] = []
        self.is_broken = False

    def feed(self, events: Sequence[Body]) -> list[Body]:
        """Return what passes on of these events, which are changed."""
        return [passed for event in events if (passed := self._event(event)) is not None]

    def calls(self) -> list[Body]:
        """Return the calls that the model made."""
        return self._calls.calls()

    def message(self) -> Body:
        """Return the message for the next request."""
        said = {REASONING_FIELD: "".join(self._thoughts), "content": "".join(self._words)}
        return assistant_call_message({**self._message, **said}, self.calls())

    def close(self) -> list[Body]:
        """Note that the stream is over, and return what was held back but for the calls."""
        self._joined.add_usage(self._used)
        self._joined.rounds += 1
        return self._tail

    def _event(self, event: Body) -> Body | None:
        if event.get("error"):
            self.is_broken = True
            return event
        self._joined.name(event)
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
        if self._joined.used:
            event["usage"] = add_usage(self._joined.used, self._used)
        return True

    def _divide(self, choices: Sequence[Any]) -> tuple[list[Body], list[Body]]:
        """Return the choices that pass on, and those that end the stream."""
        passing, ends = [], []
        for choice in choices:
            if not isinstance(choice, dict):
                continue
            if choice.get("index") in (None, 0):
                self._take(choice)
            reason = choice.get("finish_reason")
            if reason is not None:
                ends.append({**choice, "delta": {}, "logprobs": None})
                choice["finish_reason"] = None
            if as_mapping(choice.get("delta")) or choice.get("logprobs"):
                passing.append(choice)
        return passing, ends

    def _take(self, choice: Body) -> None:
        """Keep what the next request needs of a delta, and leave in it what the caller may see."""
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        self._calls.add(calls_of(delta))
        for name in CALLS:
            delta.pop(name, None)
        if self._joined.rounds:
            delta.pop("role", None)
            if delta.get("content") in (None, ""):
                delta.pop("content", None)
        for name in _LISTS:
            self._message.setdefault(name, []).extend(as_sequence(delta.get(name)))
        self._thoughts.append(as_text(delta.get(REASONING_FIELD)))
        words = text_of(delta)
        if words:
            self._words.append(words)
            if isinstance(delta.get("content"), str):
                delta["content"] = self._joined.gap(words) + words if len(self._words) == 1 else words
            self._joined.last_character = words[-1]


def assistant_call_message(message: Mapping[str, Any], calls: list[Body]) -> Body:
    """Return an assistant's message with calls, in the form in which a request may have it."""
    kept = {name: message[name] for name in (REASONING_FIELD, *_LISTS) if message.get(name)}
    asked = [{**call, "function": _function(call["function"])} for call in calls]
    return {"role": "assistant", "content": message.get("content") or None, **kept, "tool_calls": asked}


def _function(function: Body) -> Body:
    return {**function, "arguments": to_json_object(function["arguments"])}


def add_usage(known: Mapping[str, Any], more: Mapping[str, Any]) -> Body:
    """Return the sums of two usages, member by member; what is no number is the later one."""
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
