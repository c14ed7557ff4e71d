"""Short-lived tickets for clients that cannot send a header, as a browser's EventSource."""

import time
from collections.abc import Callable
from typing import Final

from gatewayd import ids

LIFE_SECONDS: Final = 30
MAX_TICKETS: Final = 10_000


class Tickets:
    """Keeps a credential for half a minute under a ticket that is good once.

    What a ticket opens is decided by the credential at the moment when it is used: one that has ended
    meanwhile opens nothing.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[str, float]] = {}

    def issue(self, credential: str) -> str:
        """Return a new ticket for a credential; the oldest one goes when there are ten thousand."""
        self._prune()
        if len(self._kept) >= MAX_TICKETS:
            del self._kept[next(iter(self._kept))]
        ticket = ids.new_secret()
        # Only the digest is kept, as of every secret that we hand out.
        self._kept[ids.digest(ticket)] = (credential, self._clock() + LIFE_SECONDS)
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """Return the credential behind a ticket, which is used up; None when it is not good."""
        credential, ends = self._kept.pop(ids.digest(ticket), ("", 0.0))
        return credential if ends > self._clock() else None

    def _prune(self) -> None:
        now = self._clock()
        # The oldest stand first.
        while self._kept and self._kept[oldest := next(iter(self._kept))][1] <= now:
            del self._kept[oldest]
