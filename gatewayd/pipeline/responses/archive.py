"""Keeps responses for a bounded time, so that their owners can read, delete and continue them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gatewayd import ids
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, invalid, not_found, shorten
from gatewayd.metering.usage_records import UsageKey, UsageSums

log = logging.getLogger(__name__)

MAX_CHAIN: Final = 1000
"""Maximum number of responses of one conversation."""

MAX_RESPONSES_PER_USER: Final = 10_000
"""Maximum number of stored responses of one user."""

UNUSABLE: Final = frozenset({"queued", "in_progress", "cancelled", "failed"})
"""Status of responses that cannot be continued, as their output is missing."""

PREVIOUS_FIELD: Final = "previous_response_id"
PREVIOUS_MISSING_CODE: Final = "previous_response_not_found"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response of one user.

    `response` has all output items with their `encrypted_content`, `input` the items of its own request.
    `pieces` and `pings` describe the events of its stream (`dialects.responses.event_writer`). A response
    that a provider stores has the name of its `source`, and no content here; its `response` has what is
    pending of its usage (`pipeline.responses.pending_usage`).
    """

    id: str
    user_id: str
    model: str
    response: Body
    input: list[Any]
    created_at: int
    expires_at: int
    previous_id: str | None = None
    source: str = ""
    pieces: list[int] = field(default_factory=list)
    pings: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ArchiveBounds:
    """How long a response is kept after its last use, in seconds, and how many bytes one user may keep.

    With 0 seconds nothing is kept.
    """

    seconds: int = 7 * 86_400
    user_bytes: int = 32 * 1024 * 1024
    user_responses: int = MAX_RESPONSES_PER_USER


class StoredResponses(Protocol):
    """The stored responses; each change is committed on return."""

    async def add(self, response: StoredResponse, bounds: ArchiveBounds) -> bool:
        """Store a response and delete the oldest of its user that are over the bounds.

        Returns False, and stores nothing, if it alone is over the bounds or its id is taken.
        """
        ...

    async def replace(self, response: StoredResponse, bounds: ArchiveBounds) -> bool:
        """Store another state of a response; return False if it is over the bounds, or was deleted."""
        ...

    async def settle(self, response: StoredResponse, usage: Mapping[UsageKey, UsageSums]) -> bool:
        """Add to the usage and empty the content of a response that a provider stores, in one transaction.

        Returns False, and adds nothing, if it is empty already or was deleted.
        """
        ...

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return one response."""
        ...

    async def chain(self, response_id: str, most: int) -> Sequence[StoredResponse]:
        """Return a response and those before it, the oldest first, all of the same user; at most `most`."""
        ...

    async def renew(self, response_ids: Sequence[str], expires_at: int) -> None:
        """Change when responses expire."""
        ...

    async def remove(self, response_id: str) -> bool:
        """Delete one response; return False if there is none."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the responses that expire before a time; return the count."""
        ...


class ResponseArchive:
    """The stored responses of all users, each for its owner only."""

    def __init__(
        self,
        store: StoredResponses,
        bounds: ArchiveBounds | None = None,
        clock: ids.Clock = ids.now,
        prune_clock: ids.Clock | None = None,
    ) -> None:
        self._store = store
        self._bounds = bounds or ArchiveBounds()
        self._clock = clock
        self._prune_clock = prune_clock or ids.retention_clock()

    @property
    def is_on(self) -> bool:
        """Whether responses are kept at all."""
        return self._bounds.seconds > 0

    def expiry(self) -> int:
        """Return when a response that is used now expires."""
        return self._clock() + self._bounds.seconds

    async def keep(self, response: StoredResponse, request_id: str) -> bool:
        """Store a response and return whether it is stored; a failure is logged, the answer still passes."""
        if not self.is_on:
            return False
        try:
            return await self._store.add(response, self._bounds)
        except GatewayError as error:
            log.error("response not stored: %s", error.full_message, extra={"request_id": request_id})
            return False

    async def replace(self, response: StoredResponse, request_id: str) -> bool:
        """Store another state of a response and return whether it is stored; a failure is logged."""
        try:
            return await self._store.replace(response, self._bounds)
        except GatewayError as error:
            log.error("response not stored: %s", error.full_message, extra={"request_id": request_id})
            return False

    async def settle(self, response: StoredResponse, usage: Mapping[UsageKey, UsageSums]) -> bool:
        """Add to the usage for a response that a provider stores; return False if that was done before."""
        return await self._store.settle(response, usage)

    async def find(self, response_id: str, user_id: str) -> StoredResponse:
        """Return a response of a user; not_found for any other, also for another user's and expired ones."""
        found = await self._own(response_id, user_id)
        if found is None:
            raise not_found("response", response_id)
        return found

    async def find_own(self, response_id: str, user_id: str) -> StoredResponse | None:
        """Return a response of a user, or None."""
        return await self._own(response_id, user_id)

    async def remove(self, response_id: str, user_id: str) -> None:
        """Delete a response of a user; raises as `find` does."""
        await self.find(response_id, user_id)
        if not await self._store.remove(response_id):
            raise not_found("response", response_id)

    async def history(self, response_id: str, user_id: str) -> Sequence[StoredResponse]:
        """Return the conversation up to a response, the oldest first, and keep it for another period.

        Raises invalid_request with the code previous_response_not_found if a part of it is missing, and for a
        response in the background that has not ended, or without success.
        """
        chain = await self._store.chain(response_id, MAX_CHAIN) if self.is_on else ()
        now = self._clock()
        is_whole = bool(chain) and chain[0].previous_id is None
        if not is_whole or any(each.user_id != user_id or each.expires_at <= now for each in chain):
            raise previous_missing(response_id)
        unusable = next((each for each in chain if each.response.get("status") in UNUSABLE), None)
        if unusable is not None:
            status = unusable.response["status"]
            raise invalid(
                f"cannot continue response {shorten(unusable.id)!r}: it is {status}", param=PREVIOUS_FIELD
            )
        await self._store.renew([each.id for each in chain], self.expiry())
        return chain

    async def prune(self) -> int:
        """Delete expired responses; return the count."""
        return await self._store.prune(self._prune_clock())

    async def _own(self, response_id: str, user_id: str) -> StoredResponse | None:
        found = await self._store.find(response_id)
        if found is None or found.user_id != user_id or found.expires_at <= self._clock():
            return None
        return found


def previous_missing(response_id: str) -> GatewayError:
    """Return the error for a conversation that the gateway does not have."""
    return invalid(
        f"cannot find response {shorten(response_id)!r}", param=PREVIOUS_FIELD, code=PREVIOUS_MISSING_CODE
    )
