"""Uses of requests, with the descriptors that each takes and the bounds that it counts for."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gatewayd.pipeline.embeddings import MAX_PARALLEL

BOUND_NAMES: Final = ("connections", "uploads", "downloads", "streams")
"""The names of the bounds."""


class RequestUse(Enum):
    """Use of a request: its number of descriptors and the bounds that it counts for, its own bound last.

    `place` is the index of the use.
    """

    # A health check, without a bound.
    PROBE = ("probe", 1)
    REQUEST = ("request", 1, "connections")
    # A stored file: one descriptor beside the connection.
    UPLOAD = ("upload", 2, "connections", "uploads")
    # A form that goes on to a provider: the connection there, and perhaps a stored file.
    FORM = ("form", 3, "connections", "uploads")
    DOWNLOAD = ("download", 2, "connections", "downloads")
    # An answer of a model: a connection to a provider beside that of the client.
    ANSWER = ("answer", 2, "connections", "streams")
    # Embeddings of many texts: several connections to a provider at once.
    EMBEDDINGS = ("embeddings", 1 + MAX_PARALLEL, "connections", "streams")
    # A stream of events.
    LISTENER = ("listener", 1, "connections", "streams")
    # A run without a waiting request: only a connection to a provider.
    RUN = ("run", 1, "streams")

    def __init__(self, label: str, files: int, *counted: str) -> None:
        self.label = label
        self.files = files
        self.counted = counted
        self.place = len(self.__class__.__members__)


@dataclass(frozen=True, slots=True)
class ConcurrencyBounds:
    """Largest numbers of concurrent requests; 0 for no bound."""

    connections: int = 0
    uploads: int = 0
    downloads: int = 0
    streams: int = 0

    def named(self) -> dict[str, int]:
        """Return the bounds above 0, by their names in `BOUND_NAMES`."""
        return {name: most for name in BOUND_NAMES if (most := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class ConcurrencyRules:
    """The bounds of one account and of one address."""

    account: ConcurrencyBounds = ConcurrencyBounds()
    address: ConcurrencyBounds = ConcurrencyBounds()
