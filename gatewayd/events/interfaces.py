"""Interfaces that events use: effects on stored messages, and the bus between processes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from gatewayd.events.records import EventFrame


class MessageEffects(Protocol):
    """Writes to stored messages. Each write is one atomic statement and safe under concurrency.

    All writes return False, and do nothing, if there is no such message. They are committed on return. They
    raise too_large if the content or the list would exceed the limits of a message.
    """

    async def append_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Append text to the content."""
        ...

    async def replace_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Replace the content."""
        ...

    async def append_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Append JSON values, in order, to the list `statusHistory`, `embeds`, `files` or `sources`."""
        ...

    async def put_item(self, chat_id: str, message_id: str, kind: str, value: Mapping[str, Any]) -> bool:
        """Replace the object of a list with the same `type` and `id`, or append it."""
        ...

    async def replace_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Replace a list of a message."""
        ...

    async def items(self, chat_id: str, message_id: str, kind: str) -> Sequence[Any]:
        """Return the values of a list of a message, oldest first; empty if there is no such message."""
        ...


class Bus(Protocol):
    """Carries frames between the processes of one gateway."""

    async def publish(self, user_id: str, frame: EventFrame) -> None:
        """Send a frame to the hubs of all processes, this one included."""
        ...

    def subscribe(self, listener: Callable[[str, EventFrame], None]) -> None:
        """Call `listener` with the user id and the frame of every publish of any process."""
        ...
