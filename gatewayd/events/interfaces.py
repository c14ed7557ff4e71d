"""What events need: stored messages to write to, and a bus between processes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from gatewayd.events.records import EventFrame


class MessageEffects(Protocol):
    """Writes to stored messages, each one atomic statement, right under concurrency (6.5).

    All return False, and do nothing, when there is no such message. They are committed on return. Whoever
    writes raises too_large when the content or the list would be over the limits of a message.
    """

    async def append_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Add text to the end of the content."""
        ...

    async def replace_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Make the content this text."""
        ...

    async def append_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Add JSON values to the end of `statusHistory`, `embeds`, `files` or `sources`, in their order."""
        ...

    async def put_item(self, chat_id: str, message_id: str, kind: str, value: Mapping[str, Any]) -> bool:
        """Put an object in the place of the one with the same `type` and `id` of a list, or at its end."""
        ...

    async def replace_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Make a list of a message these values."""
        ...

    async def items(self, chat_id: str, message_id: str, kind: str) -> Sequence[Any]:
        """Return the values of a list of a message, oldest first; empty when there is no such message."""
        ...


class Bus(Protocol):
    """Carries frames between the processes of one gateway."""

    async def publish(self, user_id: str, frame: EventFrame) -> None:
        """Give a frame to the listeners in every process, this one included."""
        ...

    def subscribe(self, listener: Callable[[str, EventFrame], None]) -> None:
        """Call the listener with the user's id and each frame that any process publishes."""
        ...
