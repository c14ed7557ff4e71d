"""What requests are to the room for connections, and how many of each there may be at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Use(StrEnum):
    """What a request is."""

    # A question about the health: it has no bound.
    PROBE = "probe"
    REQUEST = "request"
    UPLOAD = "upload"
    DOWNLOAD = "download"
    # An answer of a model, streamed or not.
    ANSWER = "answer"
    # A stream of events.
    LISTENER = "listener"
    # An answer that no request waits for.
    RUN = "run"


COUNTED: Final[Mapping[Use, tuple[str, ...]]] = MappingProxyType(
    {
        Use.PROBE: (),
        Use.REQUEST: ("connections",),
        Use.UPLOAD: ("connections", "uploads"),
        Use.DOWNLOAD: ("connections", "downloads"),
        Use.ANSWER: ("connections", "streams"),
        Use.LISTENER: ("connections", "streams"),
        Use.RUN: ("streams",),
    }
)
"""The bounds that a request counts for, its own last."""

FILES: Final[Mapping[Use, int]] = MappingProxyType(
    {
        Use.PROBE: 1,
        Use.REQUEST: 1,
        # A file beside the connection.
        Use.UPLOAD: 2,
        Use.DOWNLOAD: 2,
        # A connection to a provider.
        Use.ANSWER: 2,
        Use.LISTENER: 1,
        # The connection to a provider alone.
        Use.RUN: 1,
    }
)
"""The descriptors of a request, that of its connection included."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many requests at once; 0 for no bound."""

    connections: int = 0
    uploads: int = 0
    downloads: int = 0
    streams: int = 0

    def of(self, name: str) -> int:
        """Return a bound by its name in `COUNTED`."""
        most: int = getattr(self, name)
        return most


@dataclass(frozen=True, slots=True)
class RoomRules:
    """The bounds of one account and of one address."""

    account: Bounds = Bounds()
    address: Bounds = Bounds()
