"""Budget of file descriptors for connections and their requests."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from heapq import nsmallest
from typing import Final, Protocol

from aiohttp import web

from gatewayd.descriptors import FileCount, file_limit, reserved_control_files
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.connections.request_uses import ConcurrencyBounds, ConcurrencyRules, RequestUse

RESERVED_DESCRIPTORS: Final = 104
"""Descriptors reserved for a SQLite database, the log, the worker processes and the providers."""

HEALTH_DESCRIPTORS: Final = 32
"""Descriptors reserved for health checks while all others are in use."""

ACCOUNT_DIVISOR: Final = 4
"""One account holds at most a fourth of the descriptors."""

ADDRESS_DIVISOR: Final = 2
"""One address holds at most half of the descriptors, and so do all connections without a credential."""

RETRY_SECONDS: Final = 2
"""Value of Retry-After in a refusal."""

EVICTION_DIVISOR: Final = 64
"""An eviction closes up to a 64th of all places at once."""

EVICTION_PAUSE_SECONDS: Final = 0.1
"""Pause between two searches for connections to evict, after a search found none."""

MAX_IDLE_HOLDERS: Final = 1024
"""Above this number of accounts or addresses, those without a request are dropped."""

MAX_USE_DESCRIPTORS: Final = max(use.files for use in RequestUse)

LOG_PAUSE_SECONDS: Final = 60.0
"""Least time between two log lines about closed and refused connections."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DescriptorLimits:
    """Limits of a budget: all descriptors (`limit`), the spare ones for health checks, the part that
    unauthenticated connections may hold, and the open files of the process."""

    limit: int
    spare: int
    strangers: int
    open_files: int


class EvictionNeed(Enum):
    """The limit that an eviction serves: that of unauthenticated connections, or that of all."""

    PART = auto()
    ROOM = auto()


class LimitedConnection(Protocol):
    """A connection in the budget; `is_spare` is whether it has a spare place."""

    is_spare: bool

    @property
    def is_waiting(self) -> bool:
        """Whether the connection has no request."""
        ...

    @property
    def is_blocked(self) -> bool:
        """Whether the connection waits for its peer: for a request, its rest, or the reading of an answer."""
        ...

    @property
    def is_stranger(self) -> bool:
        """Whether no request of the connection had a valid credential yet."""
        ...

    @property
    def is_anonymous(self) -> bool:
        """Whether the request of the connection has no account."""
        ...

    @property
    def since(self) -> float:
        """Time of the accept or of the last answer; smaller is earlier."""
        ...

    def evict(self) -> None:
        """Close the connection at once."""
        ...


class DescriptorHolder:
    """Descriptors of one account or one address, and its number of requests of each `RequestUse`."""

    __slots__ = ("counts", "files")

    def __init__(self) -> None:
        self.files = 0
        self.counts = [0] * len(RequestUse)


class HolderTable:
    """The accounts, or the addresses, with their descriptors and bounds.

    Entries without a request are dropped when there are many.
    """

    def __init__(self, kind: str, bounds: ConcurrencyBounds, max_files: int) -> None:
        self._kind = kind
        self._bounds = bounds.named()
        self._max_files = max_files
        # A request has one descriptor at least: below this number no bound can be reached.
        self._checked_from = min([*self._bounds.values(), max_files - MAX_USE_DESCRIPTORS])
        self._held: dict[str, DescriptorHolder] = {}
        self._max_holders = MAX_IDLE_HOLDERS

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._held)

    def add(self, name: str, use: RequestUse) -> DescriptorHolder:
        """Count a request for the named holder and return the holder; rate_limited over a bound."""
        holder = self._held.get(name)
        if holder is None:
            holder = self._held[name] = DescriptorHolder()
            if len(self._held) > self._max_holders:
                self._drop_idle(holder)
        elif holder.files >= self._checked_from:
            self._check(holder, use)
        holder.files += use.files
        holder.counts[use.place] += 1
        return holder

    def remove(self, holder: DescriptorHolder, use: RequestUse) -> None:
        """Remove a request from the counts of its holder."""
        holder.files -= use.files
        holder.counts[use.place] -= 1

    def _drop_idle(self, new: DescriptorHolder) -> None:
        self._held = {name: each for name, each in self._held.items() if each.files or each is new}
        self._max_holders = max(MAX_IDLE_HOLDERS, 2 * len(self._held))

    def _check(self, holder: DescriptorHolder, use: RequestUse) -> None:
        for name in use.counted:
            bound = self._bounds.get(name, math.inf)
            if sum(holder.counts[each.place] for each in RequestUse if name in each.counted) >= bound:
                what = f"{bound} {name} at once, the most for one {self._kind}"
                raise _too_many(f"the {self._kind} has {what}", name)
        if holder.files + use.files > self._max_files:
            what = f"{holder.files} open files of the gateway, the most for one {self._kind}"
            raise _too_many(f"the {self._kind} holds {what}", use.counted[-1])


class RequestHold:
    """The descriptors and counts of one request, and the number of its owners.

    `more` are the descriptors beside that of the connection, which `enter` counts. Owners are the connection
    and the work that goes on without its client. Each owner calls `DescriptorBudget.release`.
    """

    __slots__ = ("account", "address", "more", "owners", "use")

    def __init__(
        self, account: DescriptorHolder | None, address: DescriptorHolder | None, use: RequestUse, more: int
    ) -> None:
        self.account = account
        self.address = address
        self.use = use
        self.more = more
        self.owners = 1


class DescriptorBudget:
    """Budget of descriptors for connections and their requests.

    A full budget evicts idle connections, the oldest first, and then unauthenticated connections that keep
    the daemon waiting. Unauthenticated connections above their limit get spare places, even when regular ones
    are free. The search for connections to evict runs only when a place is needed, and evicts several at
    once, so that a request only costs its count.
    """

    def __init__(
        self,
        places: DescriptorLimits,
        rules: ConcurrencyRules | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places = places
        self.taken = 0
        self._strangers = 0
        self._seats: set[LimitedConnection] = set()
        chosen = rules or ConcurrencyRules()
        self._accounts = HolderTable("account", chosen.account, places.limit // ACCOUNT_DIVISOR)
        self._addresses = HolderTable("address", chosen.address, places.limit // ADDRESS_DIVISOR)
        self._clock = clock
        self._files = FileCount(clock)
        self._logged_at = -math.inf
        # Time of the last search that found no connection to evict, by its need.
        self._searched_at = {EvictionNeed.PART: -math.inf, EvictionNeed.ROOM: -math.inf}
        self._closed = self._refused = 0

    def enter(self, seat: LimitedConnection) -> bool:
        """Take a place for a new connection; False when no regular and no spare place is free."""
        self.taken += 1
        self._strangers += 1
        has_room = self._evict_unauthenticated(seat) and self._free_descriptors(seat)
        if has_room and self._files.now(self.taken) > self.places.open_files:
            # Other parts of the process hold them; evicted connections are closed in a moment.
            has_room = self._evict_any(seat)
        self._seats.add(seat)
        if has_room:
            return True
        seat.is_spare = True
        self._refused += 1
        self._log_evictions()
        limit, strangers, spare = self.places.limit, self.places.strangers, self.places.spare
        return self.taken <= limit + spare and self._strangers <= strangers + spare

    def leave(self, seat: LimitedConnection) -> None:
        """Release the place of a connection; may be called again."""
        if seat in self._seats:
            self._seats.discard(seat)
            self.taken -= 1
            if seat.is_stranger:
                self._strangers -= 1

    def note_authenticated(self, seat: LimitedConnection) -> None:
        """Remove a connection from the count of unauthenticated ones."""
        if seat in self._seats:
            self._strangers -= 1

    def hold(self, seat: LimitedConnection, account: str, address: str, use: RequestUse) -> RequestHold:
        """Count a request and return its hold, which its owners give to `release`.

        Raises rate_limited over a bound of the account or the address, unavailable when the budget is used
        up.
        """
        by_account = self._accounts.add(account, use) if account else None
        hold = RequestHold(by_account, None, use, 0)
        if not (address or seat.is_spare):
            more = use.files - 1
            if not more:
                return hold
            if self.taken + more <= self.places.limit:
                # Nothing has to be evicted.
                hold.more = more
                self.taken += more
                return hold
        try:
            hold.address = self._addresses.add(address, use) if address else None
            self._take(seat, hold, use.files - 1)
        except GatewayError:
            self.release(hold)
            raise
        return hold

    def begin_run(self, account: str) -> Callable[[], None]:
        """Count a run without a waiting request, and return the function to call at its end.

        Raises as `hold` does.
        """
        hold = RequestHold(self._accounts.add(account, RequestUse.RUN), None, RequestUse.RUN, 0)
        try:
            self._take(None, hold, RequestUse.RUN.files)
        except GatewayError:
            self.release(hold)
            raise
        return partial(self.release, hold)

    def release(self, hold: RequestHold) -> None:
        """Release the hold of a request when its last owner calls."""
        hold.owners -= 1
        if hold.owners:
            return
        self.taken -= hold.more
        if hold.account is not None:
            self._accounts.remove(hold.account, hold.use)
        if hold.address is not None:
            self._addresses.remove(hold.address, hold.use)

    def _take(self, seat: LimitedConnection | None, hold: RequestHold, more: int) -> None:
        """Take the descriptors of a request, and a regular place for a connection with a spare one."""
        hold.more = more
        self.taken += more
        spare = seat if seat is not None and seat.is_spare and hold.account is None else None
        if spare is not None and not self._evict_unauthenticated(spare):
            raise _no_room(f"{self.places.strangers} connections without a credential")
        if self.taken > self.places.limit and not self._free_descriptors(seat):
            raise _no_room(f"{self.places.limit} connections and files")
        if seat is not None:
            seat.is_spare = False

    def _evict_unauthenticated(self, requester: LimitedConnection) -> bool:
        """Evict unauthenticated connections above their limit; False when none can be evicted.

        `requester` is counted already and is not evicted.
        """

        def is_evictable(each: LimitedConnection) -> bool:
            return each.is_stranger and each.is_blocked and each is not requester

        while requester.is_stranger and self._strangers > self.places.strangers:
            if not self._evict_first_match(EvictionNeed.PART, is_evictable):
                return False
        return True

    def _free_descriptors(self, requester: LimitedConnection | None) -> bool:
        """Evict connections while more descriptors are taken than exist; False when none can be evicted."""
        while self.taken > self.places.limit:
            if not self._evict_any(requester):
                return False
        return True

    def _evict_any(self, requester: LimitedConnection | None) -> bool:
        return self._evict_first_match(
            EvictionNeed.ROOM,
            lambda each: each.is_waiting and each is not requester,
            lambda each: each.is_anonymous and each.is_blocked and each is not requester,
        )

    def _evict_first_match(self, need: EvictionNeed, *tests: Callable[[LimitedConnection], bool]) -> bool:
        """Evict connections that pass the first test that any connection passes."""
        now = self._clock()
        if now < self._searched_at[need] + EVICTION_PAUSE_SECONDS:
            # A search found no connection a moment ago.
            return False
        for test in tests:
            found = [each for each in self._seats if test(each)]
            if found:
                self._evict(found)
                return True
        self._searched_at[need] = now
        return False

    def _evict(self, found: list[LimitedConnection]) -> None:
        """Close the oldest of the found connections: several of them in a large budget."""
        count = max(1, self.places.limit // EVICTION_DIVISOR)
        for seat in nsmallest(count, found, key=_since):
            self.leave(seat)
            seat.evict()
            self._closed += 1
        self._log_evictions()

    def _log_evictions(self) -> None:
        """Log, at most once a minute, the number of closed and refused connections since the last line."""
        now = self._clock()
        if now < self._logged_at + LOG_PAUSE_SECONDS:
            return
        counts = {"closed": self._closed, "refused": self._refused, "limit": self.places.limit}
        log.warning("connections are closed or refused: a limit of connections is reached", extra=counts)
        self._logged_at, self._closed, self._refused = now, 0, 0


def _since(seat: LimitedConnection) -> float:
    return seat.since


DESCRIPTOR_BUDGET: Final = web.AppKey("room", DescriptorBudget)


def _no_room(what: str) -> GatewayError:
    return GatewayError(
        ErrorKind.UNAVAILABLE,
        f"cannot take the request: the gateway has its {what} in use",
        code="too_many_connections",
        retry_after=RETRY_SECONDS,
    )


def _too_many(reason: str, name: str) -> GatewayError:
    return GatewayError(
        ErrorKind.RATE_LIMITED,
        f"cannot take the request: {reason}",
        code=f"too_many_{name}",
        retry_after=RETRY_SECONDS,
    )


def public_descriptor_limits(pool_size: int = 0) -> DescriptorLimits:
    """Return the limits of the public application, computed from the limit of open files.

    `pool_size` is the largest number of connections to the database server.
    """
    soft = file_limit()
    limit = max(
        soft - reserved_control_files(soft) - HEALTH_DESCRIPTORS - RESERVED_DESCRIPTORS - pool_size, soft // 2
    )
    return DescriptorLimits(
        limit, HEALTH_DESCRIPTORS, limit // ADDRESS_DIVISOR, soft - reserved_control_files(soft)
    )


def control_descriptor_limits() -> DescriptorLimits:
    """Return the limits of the control socket, computed from the limit of open files."""
    soft = file_limit()
    limit = reserved_control_files(soft)
    return DescriptorLimits(limit, 0, limit, soft)
