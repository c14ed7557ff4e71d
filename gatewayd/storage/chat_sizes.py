"""Size limit of chats for message events."""

import asyncio
from dataclasses import dataclass
from typing import Final

from gatewayd.chats.records import MAX_CHAT_BYTES, chat_too_large
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.messages import size_of_chat

MEASURE_INTERVAL_BYTES: Final = 1024 * 1024
"""Bytes that events may write to a chat before it is measured again."""

FULL_SECONDS: Final = 10.0
"""Time for which a full chat is not measured again."""

MAX_COUNTED_CHATS: Final = 10_000


@dataclass(slots=True)
class WrittenBytes:
    """Bytes that events wrote to one chat since it was measured, and the time until which it counts as
    full."""

    count: int = 0
    full_until: float = 0.0


class ChatSizes:
    """Counts the bytes that events write to each chat, and measures a chat every MEASURE_INTERVAL_BYTES.

    Measuring reads the whole chat, which is too expensive for each short event. Each process has its own
    counts, of MAX_COUNTED_CHATS chats at most; the chat with the oldest event is dropped first. So a chat
    exceeds its limit by at most one event and MEASURE_INTERVAL_BYTES per process.
    """

    def __init__(self) -> None:
        self._written: dict[str, WrittenBytes] = {}

    async def check(self, chat_id: str, size: int) -> None:
        """Count an event of `size` bytes; too_large when the chat is already full."""
        written = self._count(chat_id, size)
        now = asyncio.get_running_loop().time()
        if now < written.full_until:
            raise chat_too_large(chat_id)
        if written.count < MEASURE_INTERVAL_BYTES:
            return
        written.count = 0
        with translate_errors("measure the messages of a chat"):
            held = await size_of_chat(chat_id)
        if held > MAX_CHAT_BYTES:
            written.count = MEASURE_INTERVAL_BYTES
            written.full_until = now + FULL_SECONDS
            raise chat_too_large(chat_id)

    def _count(self, chat_id: str, size: int) -> WrittenBytes:
        written = self._written.pop(chat_id, None) or WrittenBytes()
        if len(self._written) >= MAX_COUNTED_CHATS:
            del self._written[next(iter(self._written))]
        self._written[chat_id] = written
        written.count += size
        return written


def size_of_text(text: str) -> int:
    """Return the maximum number of bytes of a text in the database."""
    # NUL is replaced by a character that is not ASCII.
    return len(text) if text.isascii() and "\x00" not in text else 4 * len(text)
