"""Assembles one assistant message from consecutive items; pure."""

from collections.abc import Mapping
from typing import Any

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.reasoning_history import ORIGIN_FIELD
from gatewayd.completions.records import Body


class AssistantTurn:
    """The reasoning, texts and calls of one assistant message."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._blocks: list[Body] = []
        self._details: list[Any] = []
        self._calls: list[Body] = []
        self._extras: dict[str, Any] = {}
        self._origin = ""

    @property
    def needs_new_message(self) -> bool:
        """Whether further reasoning or text belongs to another message.

        Calls keep the message open, because their results must follow the message with all of them.
        """
        return bool(self._texts) and not self._calls

    def add_text(self, text: str) -> None:
        """Add a text; an empty one still makes a message."""
        self._texts.append(text)

    def add_call(self, call: Body) -> None:
        """Add a call."""
        self._calls.append(call)

    def add_sealed(self, content: Mapping[str, Any]) -> None:
        """Add the decrypted content of a reasoning item (see `output.ReasoningItem.content`)."""
        text, signature, data = (as_text(content.get(name)) for name in ("text", "signature", "data"))
        if text:
            self._thoughts.append(text)
        if signature:
            self._blocks.append({"type": "thinking", "thinking": text, "signature": signature})
        if data:
            self._blocks.append({"type": "redacted_thinking", "data": data})
        self._details += as_sequence(content.get("details"))
        self._origin = self._origin or as_text(content.get("origin"))
        self._extras.update(as_mapping(content.get("calls")))

    def take(self) -> Body | None:
        """Return the message, None if there is none, and begin another one."""
        if not (self._texts or self._calls):
            # Reasoning without an answer says nothing to a model.
            self._clear()
            return None
        text = "\n\n".join(filter(None, self._texts))
        message: Body = {"role": "assistant", "content": text if text or not self._calls else None}
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if self._blocks:
            message["thinking_blocks"] = self._blocks
        if self._details:
            message["reasoning_details"] = self._details
        if self._origin:
            message[ORIGIN_FIELD] = self._origin
        if self._calls:
            message["tool_calls"] = [
                {**as_mapping(self._extras.get(call["id"])), **call} for call in self._calls
            ]
        self._clear()
        return message
