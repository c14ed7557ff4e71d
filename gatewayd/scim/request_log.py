"""Log of the last requests of identity providers, for diagnosis by the administrator."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

MAX_LOGGED_REQUESTS: Final = 100
MAX_TEXT_CHARACTERS: Final = 500
"""Maximum characters that are stored of each text from a client."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request; `at` in epoch seconds, `path` with the query, `detail` the error, "" without one."""

    at: int
    method: str
    path: str
    status: int
    address: str
    request_id: str
    detail: str = ""


class ScimRequestLog:
    """Stores the last 100 requests since the start of the daemon."""

    def __init__(self, size: int = MAX_LOGGED_REQUESTS) -> None:
        self._requests: deque[LoggedRequest] = deque(maxlen=size)

    def add(self, request: LoggedRequest) -> None:
        """Store a request with shortened texts."""
        self._requests.append(
            replace(
                request,
                method=request.method[:MAX_TEXT_CHARACTERS],
                path=request.path[:MAX_TEXT_CHARACTERS],
                address=request.address[:MAX_TEXT_CHARACTERS],
                detail=request.detail[:MAX_TEXT_CHARACTERS],
            )
        )

    def list(self) -> Sequence[LoggedRequest]:
        """Return the requests, the newest first."""
        return list(reversed(self._requests))
