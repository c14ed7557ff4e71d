"""Returns reasoning to its maker in the messages of a request, and keeps it from others; pure.

The table of what happens is in gatewayd-dialects(7), REASONING.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.deltas import THOUGHT_FIELDS, has_thinking_parts, reasoning_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.reasoning_marks import is_signed
from gatewayd.completions.reasoning_memory import (
    MAX_KEYED_CALLS,
    KeptCall,
    KeptReasoning,
    ReasoningMemory,
    call_key,
    content_keys,
    signature_key,
    text_key,
)
from gatewayd.completions.reasoning_watch import CALL_MEMBERS
from gatewayd.completions.records import Body

ORIGIN_FIELD: Final = "reasoning_origin"
"""Member that a converted message has for the origin that a mark names; no source gets it."""

_MADE_ID: Final = re.compile(r"call\d{5,}")
"""An id that the gateway gave to a call of the Ollama dialect, whose clients drop the ids of calls."""

_OPAQUE: Final = frozenset({"extra_content", ORIGIN_FIELD, *THOUGHT_FIELDS})


def is_answer(message: object) -> bool:
    """Return True for a message of the assistant."""
    return isinstance(message, dict) and message.get("role") == "assistant"


class ReasoningHistory:
    """The reasoning in the messages of one request of a user to a source with an `origin`.

    With `is_converted` the messages come from another protocol, in which no client knows where a provider
    wants its reasoning: what nobody remembers is left out.

    The last message comes first: calls with the same id and arguments get what is remembered of them from the
    newest answer to the oldest. Each is used once, so that a request cannot grow beyond what is remembered.
    """

    def __init__(
        self, memory: ReasoningMemory, user_id: str, origin: str, *, is_converted: bool = False
    ) -> None:
        self._memory = memory
        self._user_id = user_id
        self._origin = origin
        self._is_converted = is_converted
        self._remembers = memory.holds(user_id)
        self._used: set[int] = set()

    def concerns(self, message: Mapping[str, Any]) -> bool:
        """Return True if a message of the assistant may have to change."""
        if not _OPAQUE.isdisjoint(message) or has_thinking_parts(message.get("content")):
            return True
        return self._remembers and bool(message.get("tool_calls"))

    def restore(self, message: Body) -> Body:
        """Return the message for the source; itself if nothing changes."""
        found = self._find(message)
        named = as_text(message.get(ORIGIN_FIELD))
        origin = found.origin if found is not None else named
        if ORIGIN_FIELD in message:
            message = {name: value for name, value in message.items() if name != ORIGIN_FIELD}
        if origin == self._origin:
            return message if found is None else _completed(message, found)
        if origin or self._is_converted:
            return _without_opaque(message, keeps_signed=not origin)
        return message

    def _find(self, message: Mapping[str, Any]) -> KeptReasoning | None:
        """Return what is remembered of the message."""
        if not self._remembers:
            return None
        for key in _keys(message):
            found = self._memory.find(self._user_id, key, self._used)
            if found is not None:
                self._used.add(found.number)
                return found
        return None


def is_known_foreign(memory: ReasoningMemory, user_id: str, block: Mapping[str, Any], origin: str) -> bool:
    """Return True if a signed thinking block is remembered as made by another origin."""
    signature = as_text(block.get("signature")) or as_text(block.get("data"))
    return memory.find_origin(user_id, signature_key(signature)) not in (None, origin)


def _keys(message: Mapping[str, Any]) -> list[str]:
    """Return the keys under which a message may be remembered, the surest first."""
    calls = as_sequence(message.get("tool_calls"))
    ids = [as_text(as_mapping(call).get("id")) for call in calls]
    contents = content_keys(calls)
    keys = [call_key(call_id, content) for call_id, content in zip(ids, contents, strict=True)]
    text = reasoning_of(message)
    if text:
        keys.append(text_key(text))
    for block in map(as_mapping, as_sequence(message.get("thinking_blocks"))[:MAX_KEYED_CALLS]):
        thinking = as_text(block.get("thinking"))
        keys += [text_key(thinking)] if thinking else []
        keys.append(signature_key(as_text(block.get("signature")) or as_text(block.get("data"))))
    for call_id, content in zip(ids, contents, strict=True):
        if _MADE_ID.fullmatch(call_id):
            keys.append(content)
    return [key for key in keys if key]


def _completed(message: Body, found: KeptReasoning) -> Body:
    """Return a message with what its maker wants back, where the client did not send it."""
    added: Body = {name: value for name, value in found.members.items() if name not in message}
    if found.text and not reasoning_of(message):
        added["reasoning_content"] = found.text
    calls = message.get("tool_calls")
    if isinstance(calls, list) and any(call.members for call in found.calls):
        completed = _completed_calls(calls, found.calls)
        if any(new is not old for new, old in zip(completed, calls, strict=True)):
            added["tool_calls"] = completed
    return {**message, **added} if added else message


def _completed_calls(calls: list[Any], kept: tuple[KeptCall, ...]) -> list[Any]:
    by_id = {call.id: call for call in kept if call.id}
    by_key = {call.key: call for call in kept if call.key}
    completed = []
    for call, content in zip(calls, content_keys(calls), strict=True):
        known = None
        if isinstance(call, dict):
            known = by_id.get(as_text(call.get("id"))) or by_key.get(content)
        if known is not None and not known.members.keys() <= call.keys():
            call = {**known.members, **call}
        completed.append(call)
    return completed


def _without_opaque(message: Body, *, keeps_signed: bool) -> Body:
    """Return a message without reasoning and further members of calls.

    With `keeps_signed` thinking that a provider signed stays: a source of its protocol may be its maker.
    """
    kept = {name: value for name, value in message.items() if name not in _OPAQUE}
    blocks = [block for block in as_sequence(message.get("thinking_blocks")) if is_signed(block)]
    if keeps_signed and blocks:
        kept["thinking_blocks"] = blocks
    content = kept.get("content")
    if has_thinking_parts(content):
        parts = [part for part in as_sequence(content) if as_mapping(part).get("thinking") is None]
        kept["content"] = parts or None
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        plain = [_plain_call(call) for call in calls]
        if any(new is not old for new, old in zip(plain, calls, strict=True)):
            kept["tool_calls"] = plain
    is_same = kept.get("content") is message.get("content") and kept.get("tool_calls") is calls
    return message if is_same and len(kept) == len(message) else kept


def _plain_call(call: Any) -> Any:
    if not isinstance(call, dict) or CALL_MEMBERS.issuperset(call):
        return call
    return {name: value for name, value in call.items() if name in CALL_MEMBERS}
