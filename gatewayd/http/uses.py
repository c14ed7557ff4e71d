"""What requests are to the room for connections, and how many of each there may be at once."""

from dataclasses import dataclass
from enum import Enum


class Use(Enum):
    """What a request is: how many descriptors it has, and the bounds that it counts for, its own last."""

    # A question about the health: it has no bound.
    PROBE = ("probe", 1)
    REQUEST = ("request", 1, "connections")
    # A file beside the connection.
    UPLOAD = ("upload", 2, "connections", "uploads")
    DOWNLOAD = ("download", 2, "connections", "downloads")
    # An answer of a model, streamed or not: a connection to a provider beside that of the client.
    ANSWER = ("answer", 2, "connections", "streams")
    # A stream of events.
    LISTENER = ("listener", 1, "connections", "streams")
    # An answer that no request waits for: it has a connection to a provider alone.
    RUN = ("run", 1, "streams")

    def __init__(self, label: str, files: int, *counted: str) -> None:
        self.label = label
        self.files = files
        self.counted = counted


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many requests at once; 0 for no bound."""

    connections: int = 0
    uploads: int = 0
    downloads: int = 0
    streams: int = 0

    def of(self, name: str) -> int:
        """Return a bound by its name in `Use.counted`."""
        most: int = getattr(self, name)
        return most


@dataclass(frozen=True, slots=True)
class RoomRules:
    """The bounds of one account and of one address."""

    account: Bounds = Bounds()
    address: Bounds = Bounds()
