"""The last requests of identity providers, for the administrator who wonders what they do."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

MAX_LOGGED_REQUESTS: Final = 100
MAX_TEXT_CHARACTERS: Final = 500
"""Characters that are kept of what a client sent."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request; `at` in epoch seconds, `path` with the query, `detail` why it was refused, "" if not."""

    at: int
    method: str
    path: str
    status: int
    address: str
    request_id: str
    detail: str = ""


class ScimRequestLog:
    """Remembers the last hundred requests since the daemon was started."""

    def __init__(self, kept: int = MAX_LOGGED_REQUESTS) -> None:
        self._seen: deque[LoggedRequest] = deque(maxlen=kept)

    def add(self, seen: LoggedRequest) -> None:
        """Remember a request."""
        self._seen.append(
            replace(
                seen,
                method=seen.method[:MAX_TEXT_CHARACTERS],
                path=seen.path[:MAX_TEXT_CHARACTERS],
                address=seen.address[:MAX_TEXT_CHARACTERS],
                detail=seen.detail[:MAX_TEXT_CHARACTERS],
            )
        )

    def list(self) -> Sequence[LoggedRequest]:
        """Return the requests, the newest first."""
        return list(reversed(self._seen))
