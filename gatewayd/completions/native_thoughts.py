"""Thinking, and ids of calls, in requests and answers that stay in the messages protocol; pure."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd.completions.call_ids import CallIdForm, CallIdMap
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.reasoning_history import is_known_foreign
from gatewayd.completions.reasoning_marks import is_signed
from gatewayd.completions.reasoning_memory import KeptReasoning, ReasoningMemory, signature_key
from gatewayd.completions.records import Body, CompletionChunk

THINKING_LEFT_OUT: Final = (
    "left out thinking: the last tool calls were made without the thinking of this provider, "
    "which demands it with a budget"
)

MAX_SIGNATURES: Final = 256
"""Maximum number of signatures of one answer that are remembered."""

THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class NativeRequest:
    """A messages request for its source, and a warning for the caller, "" for none."""

    body: Body
    warning: str = ""


class NativeHistory:
    """Leaves out the thinking that is unsigned, carries a mark of the gateway, or was signed by others.

    Ids of calls that the protocol refuses, or that two calls share, become others.
    """

    def __init__(self, memory: ReasoningMemory, user_id: str, origin: str) -> None:
        self._memory = memory
        self._user_id = user_id
        self._origin = origin
        self._kept: list[Any] = []
        self._is_changed = False
        self._lacks_thinking = False
        self._ids = CallIdMap(CallIdForm.WORD)
        self._open: dict[str, deque[str]] = {}

    def add(self, message: Any) -> None:
        """Add the next message."""
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, list):
            self._lacks_thinking = False
            self._kept.append(message)
        elif role == "assistant":
            self._assistant(message, content)
        else:
            self._user(message, content)

    def _assistant(self, message: Body, content: list[Any]) -> None:
        self._open.clear()
        kept = [block for block in content if self._may_pass(block)]
        blocks = [self._named_call(block) for block in kept]
        self._add(message, content, blocks)
        # Models without reasoning leave nothing behind, and the provider refuses their calls as well.
        self._lacks_thinking = bool(self._open) and not any(map(is_signed, blocks))

    def _user(self, message: Body, content: list[Any]) -> None:
        blocks = [self._named_result(block) for block in content]
        self._add(message, content, blocks)
        if not any(as_mapping(block).get("type") == "tool_result" for block in content):
            self._lacks_thinking = False

    def _add(self, message: Body, content: list[Any], blocks: list[Any]) -> None:
        if len(blocks) < len(content) or any(
            new is not old for new, old in zip(blocks, content, strict=True)
        ):
            self._is_changed = True
            message = {**message, "content": blocks}
        if blocks or not content:
            self._kept.append(message)

    def _named_call(self, block: Any) -> Any:
        if not isinstance(block, dict) or block.get("type") != "tool_use":
            return block
        given = as_text(block.get("id"))
        sent = self._ids.sent(given)
        self._open.setdefault(given, deque()).append(sent)
        return block if sent == given else {**block, "id": sent}

    def _named_result(self, block: Any) -> Any:
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            return block
        given = as_text(block.get("tool_use_id"))
        opened = self._open.get(given)
        sent = opened.popleft() if opened else given
        return block if sent == given else {**block, "tool_use_id": sent}

    def finish(self, native: Body) -> NativeRequest:
        """Return the request; `native` itself if nothing was left out."""
        is_refused = self._lacks_thinking and as_mapping(native.get("thinking")).get("type") == "enabled"
        if not self._is_changed and not is_refused:
            return NativeRequest(native)
        body = {**native, "messages": self._kept}
        if is_refused:
            del body["thinking"]
            return NativeRequest(body, THINKING_LEFT_OUT)
        return NativeRequest(body)

    def _may_pass(self, block: Any) -> bool:
        if as_text(as_mapping(block).get("type")) not in THOUGHTS:
            return True
        return is_signed(block) and not is_known_foreign(self._memory, self._user_id, block, self._origin)


class NativeWatch:
    """Remembers who made the signatures of an answer."""

    def __init__(self, memory: ReasoningMemory, user_id: str, origin: str) -> None:
        self._memory = memory
        self._user_id = user_id
        self._origin = origin
        self._count = 0

    def feed(self, chunk: CompletionChunk) -> None:
        """Read whole events of a stream."""
        raw = chunk.raw
        if b'"signature' not in raw and b'"redacted_thinking"' not in raw:
            return
        for line in raw.split(b"\n"):
            if line.startswith(b"data:") and (b'"signature' in line or b'"redacted_thinking"' in line):
                event = as_mapping(orjson.loads(line[5:]))
                self._block(as_mapping(event.get("content_block")))
                self._block(as_mapping(event.get("delta")))

    def whole(self, message: Mapping[str, Any]) -> None:
        """Read a whole message."""
        for block in as_sequence(message.get("content")):
            self._block(as_mapping(block))

    def _block(self, block: Mapping[str, Any]) -> None:
        signature = as_text(block.get("signature")) or as_text(block.get("data"))
        if not signature or self._count >= MAX_SIGNATURES:
            return
        self._count += 1
        self._memory.put(self._user_id, [signature_key(signature)], KeptReasoning(self._origin))
