"""The content blocks of an answer in the order in which the messages protocol tells them; pure.

Blocks of that protocol do not interleave, while OpenAI deltas may: what belongs to a later block waits in it
until the blocks before are closed.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from gatewayd.completions.deltas import ReasoningPiece, calls_of, reasoning_pieces_of, text_or_refusal_of
from gatewayd.completions.records import Body
from gatewayd.completions.tool_calls import PLACEHOLDERS, ToolCall, ToolCallAssembler, parse_object
from gatewayd.ids import NewId

INVALID_INPUT: Final = "INVALID_JSON"
"""The only key of the `input` of a whole answer's tool call whose arguments are not a JSON object."""


@dataclass(slots=True)
class ContentBlock:
    """One content block.

    `parts` are texts not yet taken, `thoughts` all of a thinking block's, `call` is a tool_use block's.
    `is_signed` tells that a stream told the `signature`.
    """

    kind: Literal["thinking", "redacted_thinking", "text", "tool_use"]
    id: str = ""
    parts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    signature: str = ""
    is_signed: bool = False
    data: str = ""
    call: ToolCall | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it can be begun: a call needs its name, and arguments that say that the name is whole."""
        return self.call is None or (bool(self.call.name) and not self.call.is_placeholder)

    @property
    def is_ended(self) -> bool:
        """Whether it can be closed when another one follows."""
        return self.call is None or self.call.is_ended

    @property
    def is_void(self) -> bool:
        """Whether it is a call of which nothing came that could be run."""
        return self.call is not None and not self.call.name and self.call.is_placeholder

    def take(self) -> str:
        """Return the text or arguments not yet taken."""
        if self.call is not None:
            return self.call.take()
        said = "".join(self.parts)
        self.parts.clear()
        return said

    def head(self) -> Body:
        """Return the block as a stream begins it."""
        match self.kind:
            case "thinking":
                return {"type": "thinking", "thinking": "", "signature": ""}
            case "redacted_thinking":
                return {"type": "redacted_thinking", "data": self.data}
            case "text":
                return {"type": "text", "text": ""}
            case "tool_use":
                name = self.call.name if self.call else ""
                return {"type": "tool_use", "id": self.id, "name": name, "input": {}}

    def whole(self) -> Body:
        """Return the block as a whole message holds it."""
        match self.kind:
            case "thinking":
                return {**self.head(), "thinking": "".join(self.thoughts), "signature": self.signature}
            case "redacted_thinking":
                return self.head()
            case "text":
                return {"type": "text", "text": "".join(self.parts)}
            case "tool_use":
                return {**self.head(), "input": input_of(self.call) if self.call else {}}


class ContentBlockQueue:
    """Takes messages or deltas in order; `queue` holds the blocks, whose first may be taken away."""

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id
        self._calls = ToolCallAssembler(new_id)
        self._tools: list[ContentBlock] = []
        self._ids: set[str] = set()
        self.queue: deque[ContentBlock] = deque()
        self.characters = 0

    @property
    def calls_tools(self) -> bool:
        """Whether the answer calls a tool."""
        return any(not block.is_void for block in self._tools)

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add what a message or a delta says: its thinking, then its text, then its calls."""
        for thought in reasoning_pieces_of(delta):
            self._think(thought)
        words = text_or_refusal_of(delta)
        if words:
            self.characters += len(words)
            self._tail("text").parts.append(words)
        for piece in self._calls.add(calls_of(delta)):
            if piece.is_first:
                block = ContentBlock("tool_use", call=piece.call)
                self.queue.append(block)
                self._tools.append(block)

    def whole(self) -> list[Body]:
        """Return all blocks as a whole message holds them."""
        blocks = [block for block in self.queue if not block.is_void]
        for block in blocks:
            if block.kind == "tool_use":
                self.name_call(block)
        return [block.whole() for block in blocks]

    def name_call(self, block: ContentBlock) -> None:
        """Give a tool_use block its id: the provider's, or a new one where that is missing or used twice."""
        given = block.call.id if block.call is not None else ""
        block.id = given if given and given not in self._ids else f"toolu_{self._new_id().replace('-', '')}"
        self._ids.add(block.id)

    def _tail(self, kind: Literal["thinking", "text"]) -> ContentBlock:
        """Return the last block if it is of this kind and open, else a new one."""
        if self.queue and self.queue[-1].kind == kind and not self.queue[-1].signature:
            return self.queue[-1]
        self.queue.append(ContentBlock(kind))
        return self.queue[-1]

    def _think(self, thought: ReasoningPiece) -> None:
        if thought.data:
            self.queue.append(ContentBlock("redacted_thinking", data=thought.data))
            return
        if thought.signature and self.queue and self.queue[-1].signature == thought.signature:
            return
        block = self._tail("thinking")
        # A signature may come with a repetition of all that it signs.
        if not (thought.signature and thought.text == "".join(block.thoughts)):
            block.parts.append(thought.text)
            block.thoughts.append(thought.text)
            self.characters += len(thought.text)
        block.signature = thought.signature


def input_of(call: ToolCall) -> Body:
    """Return the arguments of a call as an object; what is none is kept as text under `INVALID_INPUT`."""
    said = call.arguments
    if said.strip() in PLACEHOLDERS:
        return {}
    parsed = parse_object(said)
    return {INVALID_INPUT: said} if parsed is None else parsed
