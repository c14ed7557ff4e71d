"""The last requests of identity providers, for the administrator who wonders what they do."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Seen:
    """One request; `at` in epoch seconds, `detail` why it was refused, "" when it was not."""

    at: int
    method: str
    path: str
    status: int
    address: str
    request_id: str
    detail: str = ""


class Activity:
    """Remembers the last hundred requests since the daemon was started."""

    def __init__(self, kept: int = KEPT) -> None:
        self._seen: deque[Seen] = deque(maxlen=kept)

    def add(self, seen: Seen) -> None:
        """Remember a request."""
        self._seen.append(seen)

    def list(self) -> Sequence[Seen]:
        """Return the requests, the newest first."""
        return list(reversed(self._seen))
