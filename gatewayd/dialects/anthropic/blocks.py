"""Content blocks of an answer in the order that the messages protocol requires; pure.

Blocks of that protocol must not interleave, but OpenAI deltas may. Text of a later block is buffered until
the earlier blocks are closed.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from gatewayd.completions.deltas import ReasoningPiece, calls_of, reasoning_pieces_of, text_or_refusal_of
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import PLACEHOLDERS, ToolCall, ToolCallAssembler, parse_object
from gatewayd.ids import NewId

INVALID_INPUT: Final = "INVALID_JSON"
"""Only key of the `input` of a tool call whose arguments are no JSON object, in a whole message."""


@dataclass(slots=True)
class ContentBlock:
    """One content block.

    `parts` holds texts not yet taken, `thoughts` all texts of a thinking block, and `call` the call of a
    tool_use block. `is_signed` is set once a stream has sent the `signature`. A thinking block without a
    signature has none: it is not invented.
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
        """Whether the block can be started: a call needs a complete name, which real arguments prove."""
        return self.call is None or (bool(self.call.name) and not self.call.is_placeholder)

    @property
    def is_ended(self) -> bool:
        """Whether the block can be closed when another block follows."""
        return self.call is None or self.call.is_ended

    @property
    def is_empty(self) -> bool:
        """Whether the block is a call without a name and arguments, which cannot be run."""
        return self.call is not None and not self.call.name and self.call.is_placeholder

    def take(self) -> str:
        """Return the text or arguments not yet taken."""
        if self.call is not None:
            return self.call.take()
        text = "".join(self.parts)
        self.parts.clear()
        return text

    def head(self) -> Body:
        """Return the block as its `content_block_start` event holds it."""
        match self.kind:
            case "thinking":
                return {"type": "thinking", "thinking": ""}
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
                signed = {"signature": self.signature} if self.signature else {}
                return {**self.head(), "thinking": "".join(self.thoughts), **signed}
            case "redacted_thinking":
                return self.head()
            case "text":
                return {"type": "text", "text": "".join(self.parts)}
            case "tool_use":
                return {**self.head(), "input": input_of(self.call) if self.call else {}}


class ContentBlockQueue:
    """Converts messages or deltas into the blocks of `queue`, from which the caller may take the first.

    `mark` is what a closed thinking block has instead of a signature, "" for nothing
    (`completions.reasoning_marks`). Calls get another id than the `used_ids` of the history.
    """

    def __init__(self, new_id: NewId, mark: str = "", used_ids: Collection[str] = ()) -> None:
        self._new_id = new_id
        self._mark = mark
        self._calls = ToolCallAssembler(new_id)
        self._tools: list[ContentBlock] = []
        self._ids = set(used_ids)
        self.queue: deque[ContentBlock] = deque()
        self.characters = 0

    @property
    def calls_tools(self) -> bool:
        """Whether the answer calls a tool."""
        return any(not block.is_empty for block in self._tools)

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add the content of a message or delta: its thinking, then its text, then its calls."""
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
        blocks = [block for block in self.queue if not block.is_empty]
        for block in blocks:
            if block.kind == "tool_use":
                self.name_call(block)
            self.mark_unsigned(block)
        return [block.whole() for block in blocks]

    def head(self, block: ContentBlock) -> Body:
        """Return a block as it starts; clients with typed blocks want a signature from the start."""
        head = block.head()
        return {**head, "signature": self._mark} if self._mark and block.kind == "thinking" else head

    def mark_unsigned(self, block: ContentBlock) -> None:
        """Give a closed thinking block without a signature the mark."""
        if block.kind == "thinking" and not block.signature:
            block.signature = self._mark

    def name_call(self, block: ContentBlock) -> None:
        """Set the id of a tool_use block: the provider's, or a new one if that is missing or a duplicate."""
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
        # Some providers repeat the whole thinking text beside its signature.
        if not (thought.signature and thought.text == "".join(block.thoughts)):
            block.parts.append(thought.text)
            block.thoughts.append(thought.text)
            self.characters += len(thought.text)
        block.signature = thought.signature


def input_of(call: ToolCall) -> Body:
    """Return the arguments of a call as an object; text that is no JSON object goes under `INVALID_INPUT`."""
    text = call.arguments
    if text.strip() in PLACEHOLDERS:
        return {}
    parsed = parse_object(text)
    return {INVALID_INPUT: text} if parsed is None else parsed
