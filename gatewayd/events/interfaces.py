"""Interfaces that events use: effects on stored messages, and the bus between processes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from gatewayd.events.records import EventFrame, FramePlace, MissedFrames


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


FrameListener = Callable[[str, EventFrame, FramePlace | None], None]
"""Gets the user id, the frame, and its place; None for a frame that this process alone has."""

GapListener = Callable[[str | None], None]
"""Gets the id of a user who has lost frames, None for all users."""


class Bus(Protocol):
    """Carries frames between the processes of one gateway. All implementations pass one suite."""

    is_shared: bool
    """Whether other processes may publish, so that frames have places."""

    @property
    def is_whole(self) -> bool:
        """Whether the frames of other processes arrive here just now."""
        ...

    async def publish(self, user_id: str, frame: EventFrame) -> None:
        """Send a frame to the hubs of all processes, this one included.

        Raises nothing, and waits for nobody.
        """
        ...

    def subscribe(self, listener: FrameListener) -> None:
        """Call `listener` for every publish of any process, in one order."""
        ...

    def watch_gaps(self, listener: GapListener) -> None:
        """Call `listener` when users have lost frames."""
        ...

    def position(self, user_id: str) -> str | None:
        """Return the id of the newest frame that a user may have here, None if frames have no place now."""
        ...

    async def missed(self, user_id: str, last_id: str) -> MissedFrames:
        """Return the frames of a user after an id, of every process."""
        ...

    async def settle(self) -> None:
        """Wait until what was published here before is delivered here, or for a second."""
        ...


class TicketDesk(Protocol):
    """Tickets for clients that cannot send a header; each is valid once, for 30 s, on every node."""

    async def issue(self, credential: str) -> str:
        """Return a new ticket for a credential."""
        ...

    async def redeem(self, ticket: str) -> str | None:
        """Consume a ticket and return its credential; None for an invalid or expired ticket."""
        ...
