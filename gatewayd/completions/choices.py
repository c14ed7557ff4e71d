"""Fills in missing fields of completion choices, and converts choices to stream deltas; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.deltas import has_thinking_parts, reasoning_of, text_of
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.limits import check_choices
from gatewayd.completions.tool_call_assembler import whole_calls

_PART_TEXTS: Final = frozenset({"text", "thinking"})


def complete_choices(completion: dict[str, Any]) -> bool:
    """Fill in the missing fields of each choice of a whole completion; return True if any was missing.

    A missing index becomes the position, a missing finish reason is derived from the message, a missing role
    becomes `assistant`, and a `delta` becomes the message. Raises AnswerSizeError for too many choices.
    """
    choices = as_sequence(completion.get("choices"))
    check_choices(len(choices))
    changed = False
    for position, choice in enumerate(choices):
        if not isinstance(choice, dict):
            continue
        if not _is_complete(choice):
            _complete(choice, position)
            changed = True
        changed = flatten_thinking(choice["message"]) or changed
    return changed


def flatten_thinking(message: Any) -> bool:
    """Make the content of a message or delta a text if it has parts with thinking; return True if it has.

    Mistral answers so; clients of OpenAI expect a text. The thinking moves to `reasoning_content`. Contents
    with parts of other kinds stay.
    """
    if type(message) is not dict or type(message.get("content")) is not list:
        return False
    parts = [as_mapping(part) for part in message["content"]]
    if not has_thinking_parts(message["content"]) or not all(map(_PART_TEXTS.intersection, parts)):
        return False
    thoughts = reasoning_of(message)
    message["content"] = text_of(message) or None
    if thoughts:
        message["reasoning_content"] = thoughts
    return True


def choice_to_delta(choice: Mapping[str, Any], position: int) -> dict[str, Any]:
    """Return a finished choice as a stream choice: the message as `delta`, whole tool calls with their index.

    A missing finish reason is derived from the message; a missing index becomes the position.
    """
    delta = dict(as_mapping(choice.get("message")) or as_mapping(choice.get("delta")))
    calls = [
        {"index": index, **call} for index, call in enumerate(whole_calls(delta.pop("tool_calls", None)))
    ]
    if calls:
        delta["tool_calls"] = calls
    index = choice.get("index")
    kept = {name: value for name, value in choice.items() if name != "message"}
    return {
        **kept,
        "index": index if type(index) is int else position,
        "delta": delta,
        "finish_reason": choice.get("finish_reason") or default_finish_reason(calls),
    }


def final_choice(delta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choice of a later chunk that ends a choice made by `choice_to_delta`."""
    return {"index": delta["index"], "delta": {}, "finish_reason": delta["finish_reason"]}


def default_finish_reason(calls: Sequence[Any]) -> str:
    """Return the finish reason of a completion whose provider gave none."""
    return "tool_calls" if calls else "stop"


def _is_complete(choice: Mapping[str, Any]) -> bool:
    message = choice.get("message")
    has_role = isinstance(message, dict) and "role" in message
    return has_role and type(choice.get("index")) is int and bool(choice.get("finish_reason"))


def _complete(choice: dict[str, Any], position: int) -> None:
    message = choice.get("message")
    if not isinstance(message, dict):
        message = dict(as_mapping(choice.pop("delta", None)))
    message.setdefault("role", "assistant")
    choice["message"] = message
    if type(choice.get("index")) is not int:
        choice["index"] = position
    if not choice.get("finish_reason"):
        choice["finish_reason"] = default_finish_reason(as_sequence(message.get("tool_calls")))
