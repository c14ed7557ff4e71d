"""In-memory bus of a gateway that is one process: publishing calls the listeners directly."""

from gatewayd.events.interfaces import FrameListener, GapListener
from gatewayd.events.records import EventFrame, MissedFrames
from gatewayd.nodes.messages import NoChannel


class MemoryBus(NoChannel):
    """Passes each frame to the listeners at once, in the order of publishing."""

    is_shared = False
    is_whole = True

    def __init__(self) -> None:
        self._listeners: list[FrameListener] = []

    async def publish(self, user_id: str, frame: EventFrame) -> None:
        """Pass a frame to the listeners."""
        for listener in self._listeners:
            listener(user_id, frame, None)

    def subscribe(self, listener: FrameListener) -> None:
        """Pass each further frame to `listener`."""
        self._listeners.append(listener)

    def watch_gaps(self, listener: GapListener) -> None:
        """Do nothing: no frame is lost on the way."""

    def position(self, user_id: str) -> str | None:
        """Return None: the hub numbers the frames."""
        return None

    async def missed(self, user_id: str, last_id: str) -> MissedFrames:
        """Return a gap: the hub has all frames that are kept."""
        return MissedFrames((), is_gap=True)

    async def settle(self) -> None:
        """Do nothing: frames are delivered when they are published."""
