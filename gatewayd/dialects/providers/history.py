"""Repairs the messages of a request for a maker: system messages, tool calls and results, order; pure.

What is repaired, and how, is listed in gatewayd-dialects(7), REASONING. All work is linear in the messages.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd.completions.call_ids import CallIdForm, CallIdMap
from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.message_rules import (
    NO_MESSAGE_RULES,
    MessageRules,
    SystemPlace,
)
from gatewayd.dialects.providers.message_texts import (
    MISSING_RESULT,
    SYSTEM_HEAD,
    call_text,
    headed_content,
    join_contents,
    merge_messages,
    result_content,
)
from gatewayd.dialects.providers.reasoning_places import mark_unsigned, place_reasoning, trim_members
from gatewayd.dialects.providers.turns import TurnWriter
from gatewayd.time_slices import LoopPacer

SLICE_MESSAGES: Final = 256
"""Number of messages between two looks at the clock."""

MOVED_SYSTEM: Final = (
    "moved later system messages into messages of the user: the provider takes one at the start"
)
FLATTENED: Final = (
    "sent tool calls and results of earlier turns as text: the provider does not take them here"
)
ORPHAN: Final = "sent a tool result without its call as text of the user"
UNANSWERED: Final = "added a result to a tool call that has none"

_SYSTEM: Final = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class RepairedHistory:
    """Messages for a maker: the given list itself if it needs no repair.

    `warnings` are sentences for the caller. `ids` has the caller's id of each tool call whose id was changed.
    """

    messages: list[Any]
    warnings: Sequence[str] = ()
    ids: Mapping[str, str] = field(default_factory=dict)


def repair_messages(messages: list[Any], rules: MessageRules, *, has_tools: bool = True) -> RepairedHistory:
    """Return the messages as a maker takes them; raises invalid_request for a last one that it cannot take.

    `has_tools` tells whether the request offers tools. Long histories are for `repair_in_slices`.
    """
    if rules is NO_MESSAGE_RULES or rules == NO_MESSAGE_RULES:
        return RepairedHistory(messages)
    repair = HistoryRepair(rules, has_tools=has_tools)
    for message in messages:
        repair.add(message)
    return repair.finish(messages)


async def repair_in_slices(
    messages: list[Any], rules: MessageRules, *, has_tools: bool = True
) -> RepairedHistory:
    """Return what `repair_messages` returns; other tasks run in between."""
    if len(messages) <= SLICE_MESSAGES or rules == NO_MESSAGE_RULES:
        return repair_messages(messages, rules, has_tools=has_tools)
    repair, pace = HistoryRepair(rules, has_tools=has_tools), LoopPacer()
    for start in range(0, len(messages), SLICE_MESSAGES):
        for message in messages[start : start + SLICE_MESSAGES]:
            repair.add(message)
        await pace.turn()
    return repair.finish(messages)


class HistoryRepair:
    """Repairs one history, message by message.

    The calls of a message stay open until the next message of the assistant; what comes in between and is no
    result is held back, because a maker that pairs calls wants the results first.
    """

    def __init__(self, rules: MessageRules, *, has_tools: bool = True) -> None:
        self._rules = rules
        self._flattens = not rules.takes_calls or (rules.needs_tools and not has_tools)
        self._ids = CallIdMap(rules.call_ids)
        self._maps_ids = rules.pairs_calls or rules.call_ids is not CallIdForm.ANY
        self._turns = TurnWriter(rules)
        self._head: list[Body] | None = [] if rules.system is SystemPlace.FIRST else None
        self._has_begun = False
        self._open: dict[str, deque[str]] = {}
        self._names: dict[str, str] = {}
        self._held: list[Body] = []
        self._callers: list[Body] = []
        self._warnings: dict[str, None] = {}

    def add(self, message: Any) -> None:
        """Add the next message; one that is no object is left for the maker to refuse."""
        if not isinstance(message, dict):
            message = {"role": "user", "content": message} if isinstance(message, str) else {}
        role = as_text(message.get("role"))
        if role in _SYSTEM and self._head is not None:
            self._system(message, self._head)
            return
        self._begin()
        if role == "assistant":
            self._assistant(message)
            return
        message = trim_members(message, self._rules)
        if role == "tool":
            self._result(message)
        elif self._open:
            self._held.append(message)
        else:
            self._turns.write(message)

    def finish(self, given: list[Any]) -> RepairedHistory:
        """Return the repaired history; `given` are the messages that were added."""
        self._begin()
        self._close()
        messages = self._turns.finish()
        if not self._turns.is_changed and len(messages) == len(given) and _are_same(messages, given):
            return RepairedHistory(given)
        return RepairedHistory(messages, [*self._warnings, *self._turns.warnings], self._ids.changed)

    def _system(self, message: Body, head: list[Body]) -> None:
        if not self._has_begun:
            head.append(message)
            return
        content = headed_content(SYSTEM_HEAD, message.get("content"))
        moved = {"role": "user", "content": content}
        self._warnings[MOVED_SYSTEM] = None
        if self._open:
            self._held.append(moved)
        else:
            self._turns.write(moved)

    def _begin(self) -> None:
        """Write the instructions at the start as one message."""
        if self._has_begun:
            return
        self._has_begun = True
        head = self._head or []
        if len(head) > 1:
            joined = join_contents([message.get("content") for message in head])
            head = [{**head[0], "content": joined}]
        for message in head:
            self._turns.write(trim_members(message, self._rules))

    def _assistant(self, message: Body) -> None:
        if not self._callers or self._held:
            self._close()
        message = trim_members(place_reasoning(message, self._rules), self._rules)
        calls = message.get("tool_calls")
        if not isinstance(calls, list) or not calls:
            self._write_or_join(message)
            return
        if self._flattens:
            self._flatten(message, calls)
            return
        if self._maps_ids:
            message = self._with_ids(message, calls)
        if self._rules.unsigned_mark:
            message = mark_unsigned(message, self._rules.unsigned_mark)
        if self._maps_ids:
            self._callers.append(message)
        else:
            self._turns.write(message)

    def _write_or_join(self, message: Body) -> None:
        if self._callers:
            self._callers.append(message)
        else:
            self._turns.write(message)

    def _write_callers(self) -> None:
        """Write the message with the open calls; some clients send each call in a message of its own."""
        callers, self._callers = self._callers, []
        if callers:
            self._turns.write(callers[0] if len(callers) == 1 else merge_messages(callers))

    def _flatten(self, message: Body, calls: list[Any]) -> None:
        """Write a message whose calls are texts."""
        self._warnings[FLATTENED] = None
        texts = [call_text(as_mapping(call)) for call in calls]
        for call in map(as_mapping, calls):
            self._names[as_text(call.get("id"))] = as_text(as_mapping(call.get("function")).get("name"))
        kept = {name: value for name, value in message.items() if name not in ("tool_calls", "content")}
        self._turns.write({**kept, "content": join_contents([message.get("content"), *texts])})

    def _with_ids(self, message: Body, calls: list[Any]) -> Body:
        """Give each call its id, and open it for its result."""
        named, is_changed = [], False
        for call in calls:
            given = as_text(as_mapping(call).get("id"))
            sent = self._ids.sent(given)
            self._open.setdefault(given, deque()).append(sent)
            if sent != given and isinstance(call, dict):
                call, is_changed = {**call, "id": sent}, True
            named.append(call)
        return {**message, "tool_calls": named} if is_changed else message

    def _result(self, message: Body) -> None:
        given = as_text(message.get("tool_call_id"))
        if self._flattens:
            name = self._names.get(given, "") or as_text(message.get("name"))
            self._turns.write({"role": "user", "content": result_content(name, message.get("content"))})
            return
        if not self._maps_ids:
            self._turns.write(message)
            return
        opened = self._open.get(given)
        if not opened:
            self._orphan(message)
            return
        self._write_callers()
        sent = opened.popleft()
        if not opened:
            del self._open[given]
        self._turns.write(message if sent == given else {**message, "tool_call_id": sent})
        if not self._open:
            self._release()

    def _orphan(self, message: Body) -> None:
        self._warnings[ORPHAN] = None
        content = result_content(as_text(message.get("name")), message.get("content"))
        orphan: Body = {"role": "user", "content": content}
        if self._open:
            self._held.append(orphan)
        else:
            self._turns.write(orphan)

    def _close(self) -> None:
        """Answer the calls that have no result, and write what was held back."""
        self._write_callers()
        if self._open and self._rules.pairs_calls:
            self._warnings[UNANSWERED] = None
            for waiting in self._open.values():
                for sent in waiting:
                    self._turns.write({"role": "tool", "tool_call_id": sent, "content": MISSING_RESULT})
        self._open.clear()
        self._release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for message in held:
            self._turns.write(message)


def _are_same(messages: Sequence[Any], given: Sequence[Any]) -> bool:
    return all(new is old for new, old in zip(messages, given, strict=True))
