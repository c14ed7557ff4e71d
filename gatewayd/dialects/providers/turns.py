"""Writes the turns of a repaired history in the order that a maker takes; pure."""

from typing import Any, Final

from gatewayd.completions.records import Body
from gatewayd.dialects.providers.message_rules import LastTurn, MessageRules
from gatewayd.dialects.providers.message_texts import (
    PREFILL_HEAD,
    headed_content,
    is_empty,
    merge_messages,
    plain_text,
    without_empty,
)
from gatewayd.errors import invalid

ACKNOWLEDGED: Final = "I have the results."
"""Text of the assistant between a result and a message of the user, for makers that demand one."""

OPENING: Final = "Continue."
"""Text of the user before a first message of the assistant, for makers whose conversations the user opens."""

MOVED_PREFILL: Final = (
    "moved the last message of the assistant into a message of the user: "
    "the provider of this model continues no answer"
)

_TALKING: Final = frozenset({"user", "assistant"})


class TurnWriter:
    """Collects the messages of a history in their final order; `is_changed` tells whether it changed any."""

    def __init__(self, rules: MessageRules) -> None:
        self._rules = rules
        self._written: list[Any] = []
        self._same: list[Body] = []
        self.is_changed = False
        self.warnings: list[str] = []

    def write(self, message: Body) -> None:
        """Add the next message."""
        rules = self._rules
        if rules.drops_empty:
            filled = without_empty(message)
            if filled is None:
                self.is_changed = True
                return
            message = filled
        if rules.splits_calls and message.get("tool_calls") and not is_empty(message.get("content")):
            self.is_changed = True
            self._order({name: value for name, value in message.items() if name != "tool_calls"})
            message = {"role": message["role"], "content": None, "tool_calls": message["tool_calls"]}
        self._order(message)

    def finish(self) -> list[Any]:
        """Return the messages; raises invalid_request if the last one cannot be sent."""
        self._flush()
        if self._rules.last is not LastTurn.ANY and self._written:
            self._end()
            self._flush()
        return self._written

    def _order(self, message: Body) -> None:
        rules, role = self._rules, message.get("role")
        before = self._last_role()
        if rules.alternates and role in _TALKING:
            if before == role:
                self.is_changed = True
                self._same.append(message)
                return
            if role == "assistant" and before not in ("user", "tool"):
                self._insert({"role": "user", "content": OPENING})
        elif rules.separates_results and role == "user" and before == "tool":
            self._insert({"role": "assistant", "content": ACKNOWLEDGED})
        self._flush()
        self._same.append(message)

    def _insert(self, message: Body) -> None:
        self.is_changed = True
        self._flush()
        self._written.append(message)

    def _last_role(self) -> object:
        if self._same:
            return self._same[-1].get("role")
        return self._written[-1].get("role") if self._written else None

    def _flush(self) -> None:
        """Write the messages of one turn as one message."""
        if len(self._same) > 1:
            self._written.append(merge_messages(self._same))
        else:
            self._written += self._same
        self._same = []

    def _end(self) -> None:
        last = self._written[-1]
        if last.get("role") != "assistant" or last.get("tool_calls"):
            return
        if self._rules.last is LastTurn.MARKED:
            if not last.get("prefix"):
                self.is_changed = True
                self._written[-1] = {**last, "prefix": True}
            return
        self.is_changed = True
        self._written.pop()
        text = plain_text(last)
        if text is None:
            raise invalid(
                "cannot send messages: the last one is of the assistant and holds more than text, and the "
                "provider of this model continues no answer",
                param=f"messages[{len(self._written)}].content",
            )
        self.warnings.append(MOVED_PREFILL)
        if not text.strip() and self._last_role() in ("user", "tool"):
            return
        moved = {"role": "user", "content": headed_content(PREFILL_HEAD, text) if text.strip() else OPENING}
        if self._rules.alternates and self._last_role() == "user":
            self._same = [self._written.pop()]
        self._same.append(moved)
