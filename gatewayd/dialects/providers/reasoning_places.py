"""Places the reasoning of an assistant message where a maker takes it, and drops what it refuses; pure."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.deltas import (
    REASONING_FIELDS,
    THOUGHT_FIELDS,
    has_thinking_parts,
    reasoning_of,
    text_of,
)
from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.message_rules import MessageRules, ReasoningPlace

PLACEHOLDER: Final = "unavailable"
"""Reasoning of a message with calls whose own is unknown, for makers that demand some; one word passes."""

SIGNATURE_FIELD: Final = "thought_signature"
"""Member of `extra_content.google` of a call with the signature of Gemini."""

_OWN_CALL_MEMBERS: Final = frozenset({"id", "type", "function"})
_OWN_MEMBERS: Final = frozenset({"role", "content"})


def place_reasoning(message: Body, rules: MessageRules) -> Body:
    """Return an assistant message with its reasoning in the place of the rules; itself if it stands there."""
    place = rules.reasoning
    has_parts = has_thinking_parts(message.get("content"))
    if place is ReasoningPlace.ANY or (THOUGHT_FIELDS.isdisjoint(message) and not has_parts):
        thoughts = ""
    else:
        thoughts = reasoning_of(message)
    if not thoughts and rules.demands_reasoning and message.get("tool_calls"):
        thoughts = PLACEHOLDER
    placed = message
    if place is not ReasoningPlace.ANY:
        placed = _without_reasoning(message, rules, has_parts=has_parts)
    if thoughts:
        placed = _with_reasoning(placed, thoughts, place)
    return message if placed == message else placed


def trim_members(message: Body, rules: MessageRules) -> Body:
    """Return a message without the members that a maker refuses; itself if it has none of them."""
    allowed = rules.members
    if allowed is not None and not all(name in allowed or name in _OWN_MEMBERS for name in message):
        message = {name: value for name, value in message.items() if name in allowed or name in _OWN_MEMBERS}
    calls = message.get("tool_calls")
    if rules.call_members is None or not isinstance(calls, list):
        return message
    kept = [_trimmed(call, rules.call_members) for call in calls]
    if all(new is old for new, old in zip(kept, calls, strict=True)):
        return message
    return {**message, "tool_calls": kept}


def mark_unsigned(message: Body, mark: str) -> Body:
    """Return a message whose first call has a signature, or the maker's word for one that it did not make."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls or not isinstance(calls[0], dict) or _is_signed(calls[0]):
        return message
    first = calls[0]
    google = {**as_mapping(as_mapping(first.get("extra_content")).get("google")), SIGNATURE_FIELD: mark}
    extra = {**as_mapping(first.get("extra_content")), "google": google}
    return {**message, "tool_calls": [{**first, "extra_content": extra}, *calls[1:]]}


def _is_signed(call: Mapping[str, Any]) -> bool:
    google = as_mapping(as_mapping(call.get("extra_content")).get("google"))
    return bool(as_text(google.get(SIGNATURE_FIELD)))


def _trimmed(call: Any, allowed: frozenset[str]) -> Any:
    if not isinstance(call, dict) or _OWN_CALL_MEMBERS.issuperset(call):
        return call
    kept = {name: value for name, value in call.items() if name in _OWN_CALL_MEMBERS or name in allowed}
    return call if len(kept) == len(call) else kept


def _without_reasoning(message: Body, rules: MessageRules, *, has_parts: bool) -> Body:
    dropped = {*REASONING_FIELDS, "thinking_blocks"}
    if not rules.takes_details:
        dropped.add("reasoning_details")
    kept = {name: value for name, value in message.items() if name not in dropped}
    if has_parts:
        parts = [part for part in message["content"] if as_mapping(part).get("thinking") is None]
        kept["content"] = parts or (None if message.get("tool_calls") else "")
    return kept


def _with_reasoning(message: Body, thoughts: str, place: ReasoningPlace) -> Body:
    match place:
        case ReasoningPlace.CONTENT:
            return {**message, "reasoning_content": thoughts}
        case ReasoningPlace.REASONING:
            return {**message, "reasoning": thoughts}
        case ReasoningPlace.TEXT:
            return _with_think_text(message, thoughts)
        case ReasoningPlace.PARTS:
            part = {"type": "thinking", "thinking": [{"type": "text", "text": thoughts}]}
            content = message.get("content")
            rest = content if isinstance(content, list) else []
            if isinstance(content, str) and content:
                rest = [{"type": "text", "text": content}]
            return {**message, "content": [part, *rest]}
        case ReasoningPlace.ANY | ReasoningPlace.NONE:
            return message


def _with_think_text(message: Body, thoughts: str) -> Body:
    head = f"<think>{thoughts}</think>\n"
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": head}, *content]}
    return {**message, "content": head + text_of(message)}
