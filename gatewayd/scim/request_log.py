"""The last requests of identity providers, for the administrator who wonders what they do."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

KEPT: Final = 100
LONGEST: Final = 500
"""Characters that are kept of what a client sent."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request; `at` in epoch seconds, `path` with the query, `detail` why it was refused, "" if not."""

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
        self._seen.append(
            replace(
                seen,
                method=seen.method[:LONGEST],
                path=seen.path[:LONGEST],
                address=seen.address[:LONGEST],
                detail=seen.detail[:LONGEST],
            )
        )

    def list(self) -> Sequence[Seen]:
        """Return the requests, the newest first."""
        return list(reversed(self._seen))
