"""Reads the reasoning and the further members of calls in an answer, for the memory; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.completions.deltas import (
    THOUGHT_FIELDS,
    calls_of,
    delta_of,
    first_choices,
    has_thinking_parts,
    reasoning_of,
)
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.limits import AnswerSizeError
from gatewayd.completions.reasoning_marks import is_signed
from gatewayd.completions.reasoning_memory import (
    MAX_ENTRY_BYTES,
    KeptCall,
    KeptReasoning,
    ReasoningMemory,
    call_key,
    content_keys,
    signature_key,
    text_key,
)
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.completions.tool_call_assembler import ToolCallAssembler

DETAIL_FIELDS: Final = ("reasoning_details", "thinking_blocks", "extra_content")
"""Members of a message that only their maker reads."""

CALL_MEMBERS: Final = frozenset({"id", "type", "function", "index"})
"""Members of a call in every protocol; others belong to its maker."""

REASONING: Final = b'"reasoning'
CALLS: Final = b'"tool_calls"'
THINKING: Final = b'"thinking'
"""Beginnings of the names, one of which events with reasoning or calls hold."""

MAX_DETAILS: Final = 4096
"""Maximum number of elements in one of these lists."""

PLAIN_MEMBERS: Final = frozenset({"role", "content", "refusal", "annotations", "audio"})
"""Members of a message without reasoning and calls, unless its content is a list."""

_JOINED: Final = ("text", "summary", "data")
_ENDS: Final = (b'"finish_reason":"', b'"finish_reason": "')


def is_plain_answer(completion: Mapping[str, Any]) -> bool:
    """Return True for a whole answer of one choice that has text alone: no reasoning and no calls."""
    choices = completion.get("choices")
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict:
        return False
    message = choices[0].get("message")
    return (
        type(message) is dict
        and PLAIN_MEMBERS.issuperset(message)
        and type(message.get("content")) is not list
    )


def is_text_answer(completion: Mapping[str, Any]) -> bool:
    """Return True for a plain answer with a text that lacks no field, as most answers are."""
    choices = completion.get("choices")
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict:
        return False
    choice = choices[0]
    message = choice.get("message")
    return (
        type(message) is dict
        and PLAIN_MEMBERS.issuperset(message)
        and type(message.get("content")) is str
        and "role" in message
        and type(choice.get("index")) is int
        and bool(choice.get("finish_reason"))
    )


class ReasoningWatch:
    """Watches one answer of a user, whole or in chunks, and remembers it at its end."""

    def __init__(self, memory: ReasoningMemory, user_id: str, origin: str) -> None:
        self._memory = memory
        self._user_id = user_id
        self._origin = origin
        self._texts: list[str] = []
        self._size = 0
        self._objects: dict[str, Body] = {}
        self._lists: dict[str, list[list[Body]]] = {}
        self._calls: ToolCallAssembler | None = None
        self._is_over = False

    def whole(self, completion: Mapping[str, Any]) -> None:
        """Remember a whole answer."""
        for choice in first_choices(completion):
            self._add(as_mapping(choice.get("message")))
            self._remember()
            return

    def feed(self, chunk: CompletionChunk) -> None:
        """Read the next chunk, which is not changed; one without reasoning and calls is not decoded."""
        if self._is_over:
            return
        events = chunk.decoded
        if events is None:
            raw = chunk.raw
            if not (REASONING in raw or CALLS in raw or THINKING in raw) and not (
                self._size and any(end in raw for end in _ENDS)
            ):
                return
            events = [orjson.loads(data) for data in chunk.data]
        for event in events:
            for choice in first_choices(event):
                self._add(delta_of(choice))
                if choice.get("finish_reason") and not self._is_over:
                    self._remember()

    def _add(self, delta: Mapping[str, Any]) -> None:
        if self._is_over or not _is_concerned(delta):
            return
        text = reasoning_of(delta)
        if text:
            self._texts.append(text)
            self._size += len(text)
        for name in DETAIL_FIELDS:
            self._detail(name, delta.get(name))
        calls = calls_of(delta)
        if calls:
            self._size += 1
            self._calls = self._calls or ToolCallAssembler()
            try:
                self._calls.add(calls)
            except AnswerSizeError:
                # The answer is refused where it is read.
                self._is_over = True
        self._is_over = self._is_over or self._size > MAX_ENTRY_BYTES

    def _detail(self, name: str, value: object) -> None:
        """Add elements of a list, or the members of an object; a router streams an element in pieces."""
        if isinstance(value, dict):
            self._objects[name] = {**self._objects.get(name, {}), **value}
            self._size += _length(value)
            return
        for item in as_sequence(value):
            if not isinstance(item, dict) or (name == "thinking_blocks" and not is_signed(item)):
                continue
            self._size += _length(item)
            known = self._lists.setdefault(name, [])
            if known and _continues(known[-1][0], item):
                known[-1].append(item)
            elif len(known) < MAX_DETAILS:
                known.append([item])

    def _members(self) -> Body:
        lists = {name: [_joined(pieces) for pieces in groups] for name, groups in self._lists.items()}
        return {name: value for name, value in {**lists, **self._objects}.items() if value}

    def _remember(self) -> None:
        self._is_over = True
        if not self._size:
            return
        text = "".join(self._texts)
        found = [] if self._calls is None else self._calls.calls()
        calls = [_kept_call(call, key) for call, key in zip(found, content_keys(found), strict=True)]
        members = self._members()
        if not (text or members or any(call.members for call in calls)):
            return
        keys = [call_key(call.id, call.key) for call in calls if call.id]
        keys += [call.key for call in calls]
        if text:
            keys.append(text_key(text))
        for block in as_sequence(members.get("thinking_blocks")):
            keys.append(signature_key(as_text(block.get("signature")) or as_text(block.get("data"))))
        self._memory.put(self._user_id, keys, KeptReasoning(self._origin, text, members, tuple(calls)))


def _is_concerned(delta: Mapping[str, Any]) -> bool:
    return (
        not THOUGHT_FIELDS.isdisjoint(delta)
        or bool(delta.get("tool_calls"))
        or has_thinking_parts(delta.get("content"))
    )


def _kept_call(call: Mapping[str, Any], key: str) -> KeptCall:
    members = {name: value for name, value in call.items() if name not in CALL_MEMBERS}
    return KeptCall(as_text(call.get("id")), key, members)


def _continues(known: Mapping[str, Any], piece: Mapping[str, Any]) -> bool:
    """Return True if a piece of `reasoning_details` continues the last one; routers stream them so."""
    if known.get("type") in ("thinking", "redacted_thinking") or known.get("type") != piece.get("type"):
        return False
    if piece.get("id") is not None and piece.get("id") != known.get("id"):
        return False
    return "index" in piece and piece.get("index") == known.get("index")


def _joined(pieces: Sequence[Body]) -> Body:
    if len(pieces) == 1:
        return pieces[0]
    joined: Body = {}
    texts: dict[str, list[str]] = {}
    for piece in pieces:
        joined.update({name: value for name, value in piece.items() if value is not None})
        for name in _JOINED:
            if isinstance(piece.get(name), str):
                texts.setdefault(name, []).append(piece[name])
    return {**joined, **{name: "".join(parts) for name, parts in texts.items()}}


def _length(item: Mapping[str, Any]) -> int:
    return 64 + sum(len(value) for value in item.values() if isinstance(value, str))
