"""Room for connections, counted by the file descriptors that they and their requests use."""

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
from gatewayd.http.connections.uses import ConcurrencyBounds, ConcurrencyRules, RequestUse

RESERVED_DESCRIPTORS: Final = 104
"""Descriptors kept for a SQLite database, the log, the worker processes and the providers."""

HEALTH_DESCRIPTORS: Final = 32
"""Descriptors kept for connections that ask for the health while all others are taken."""

ACCOUNT_DIVISOR: Final = 4
"""One account holds at most a fourth of the descriptors."""

ADDRESS_DIVISOR: Final = 2
"""One address holds at most half of the descriptors, and so do all connections without a credential."""

RETRY_SECONDS: Final = 2
"""What a refused client is told to wait."""

EVICTION_DIVISOR: Final = 64
"""When room is needed, a 64th of all that there is gives way at once."""

EVICTION_PAUSE_SECONDS: Final = 0.1
"""How long nobody is looked for who could give way, after nobody was found."""

MAX_IDLE_HOLDERS: Final = 1024
"""With more accounts, or addresses, those that hold nothing are dropped."""

MAX_USE_DESCRIPTORS: Final = max(use.files for use in RequestUse)

LOG_PAUSE_SECONDS: Final = 60.0
"""At most one line in this time says that connections are closed or refused."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DescriptorLimits:
    """Descriptors for everybody, those beyond them for questions about the health, those of the first that
    connections without a credential may hold, and how many the process may have open."""

    limit: int
    spare: int
    strangers: int
    open_files: int


class EvictionNeed(Enum):
    """What others give way for: the part of those without a credential, or the room."""

    PART = auto()
    ROOM = auto()


class LimitedConnection(Protocol):
    """A connection, as the room sees it; `is_spare` says that it has a spare place."""

    is_spare: bool

    @property
    def is_waiting(self) -> bool:
        """Whether it has no request."""
        ...

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for its peer: for a request, for the rest of one, or until an answer is taken."""
        ...

    @property
    def is_stranger(self) -> bool:
        """Whether it never had a request with a good credential."""
        ...

    @property
    def is_anonymous(self) -> bool:
        """Whether no account holds its request."""
        ...

    @property
    def since(self) -> float:
        """When it came, or had its last answer: smaller is earlier."""
        ...

    def evict(self) -> None:
        """Close at once."""
        ...


class DescriptorHolder:
    """What one account or one address holds: descriptors, and how many requests of each `RequestUse`."""

    __slots__ = ("counts", "files")

    def __init__(self) -> None:
        self.files = 0
        self.counts = [0] * len(RequestUse)


class HolderTable:
    """The accounts, or the addresses, that hold something; each has bounds.

    Those that hold nothing any more are dropped when there are many.
    """

    def __init__(self, kind: str, bounds: ConcurrencyBounds, most_files: int) -> None:
        self._kind = kind
        self._bounds = bounds.named()
        self._most_files = most_files
        # With fewer descriptors nobody is at a bound: a request has one at least.
        self._checked_from = min([*self._bounds.values(), most_files - MAX_USE_DESCRIPTORS])
        self._held: dict[str, DescriptorHolder] = {}
        self._max_holders = MAX_IDLE_HOLDERS

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._held)

    def add(self, name: str, use: RequestUse) -> DescriptorHolder:
        """Count a request for a holder and return it; rate_limited over a bound."""
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
        """Count a request no more."""
        holder.files -= use.files
        holder.counts[use.place] -= 1

    def _drop_idle(self, new: DescriptorHolder) -> None:
        self._held = {name: each for name, each in self._held.items() if each.files or each is new}
        self._max_holders = max(MAX_IDLE_HOLDERS, 2 * len(self._held))

    def _check(self, holder: DescriptorHolder, use: RequestUse) -> None:
        for name in use.counted:
            most = self._bounds.get(name, math.inf)
            if sum(holder.counts[each.place] for each in RequestUse if name in each.counted) >= most:
                what = f"{most} {name} at once, the most for one {self._kind}"
                raise _too_many(f"the {self._kind} has {what}", name)
        if holder.files + use.files > self._most_files:
            what = f"{holder.files} open files of the gateway, the most for one {self._kind}"
            raise _too_many(f"the {self._kind} holds {what}", use.counted[-1])


class RequestHold:
    """What one request holds, and who answers for it.

    `more` are the descriptors beside that of a connection, which `enter` counts. Each of the `owners` is to
    give it to `DescriptorBudget.release`: the connection, and the work of a request that goes on without its
    client.
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
    """Gives descriptors to connections and to their requests.

    Connections that wait for a request give way to others, the oldest first. So do, when there are none,
    those of strangers that keep the daemon waiting. Strangers that are more than their part have spare
    places, whatever else is free. Who gives way is looked for only when room is needed, for several at once:
    a request costs no more than its count.
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
        self._told_at = -math.inf
        # When nobody was found who could give way: for a part, and for the room.
        self._looked_at = {EvictionNeed.PART: -math.inf, EvictionNeed.ROOM: -math.inf}
        self._closed = self._refused = 0

    def enter(self, seat: LimitedConnection) -> bool:
        """Take a place for a new connection; False when there is none, not even a spare one."""
        self.taken += 1
        self._strangers += 1
        has_room = self._make_part(seat) and self._make_room(seat)
        if has_room and self._files.now(self.taken) > self.places.open_files:
            # Something else holds them; those of who gives way are closed in a moment.
            has_room = self._evict_any(seat)
        self._seats.add(seat)
        if has_room:
            return True
        seat.is_spare = True
        self._refused += 1
        self._tell()
        limit, strangers, spare = self.places.limit, self.places.strangers, self.places.spare
        return self.taken <= limit + spare and self._strangers <= strangers + spare

    def leave(self, seat: LimitedConnection) -> None:
        """Give the place of a connection back; may be called again."""
        if seat in self._seats:
            self._seats.discard(seat)
            self.taken -= 1
            if seat.is_stranger:
                self._strangers -= 1

    def note_authenticated(self, seat: LimitedConnection) -> None:
        """Note that a stranger is about to be none."""
        if seat in self._seats:
            self._strangers -= 1

    def hold(self, seat: LimitedConnection, account: str, address: str, use: RequestUse) -> RequestHold:
        """Count a request; what is returned is to be given to `release`.

        Raises rate_limited over a bound of the account or the address, unavailable when the room is full.
        """
        by_account = self._accounts.add(account, use) if account else None
        hold = RequestHold(by_account, None, use, 0)
        if not (address or use.files > 1 or seat.is_spare):
            return hold
        try:
            hold.address = self._addresses.add(address, use) if address else None
            self._take(seat, hold, use.files - 1)
        except GatewayError:
            self.release(hold)
            raise
        return hold

    def begin_run(self, account: str) -> Callable[[], None]:
        """Count an answer that no request waits for; what is returned is to be called at its end.

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
        """Give back what a request held, once the last owner does."""
        hold.owners -= 1
        if hold.owners:
            return
        self.taken -= hold.more
        if hold.account is not None:
            self._accounts.remove(hold.account, hold.use)
        if hold.address is not None:
            self._addresses.remove(hold.address, hold.use)

    def _take(self, seat: LimitedConnection | None, hold: RequestHold, more: int) -> None:
        """Take descriptors beside that of a connection, and for a spare connection its own."""
        hold.more = more
        self.taken += more
        if seat is not None and seat.is_spare and hold.account is None and not self._make_part(seat):
            raise _no_room(f"{self.places.strangers} connections without a credential")
        if self.taken > self.places.limit and not self._make_room(seat):
            raise _no_room(f"{self.places.limit} connections and files")
        if seat is not None:
            seat.is_spare = False

    def _make_part(self, asking: LimitedConnection) -> bool:
        """Let strangers give way while there are more than their part; False when none of them can.

        `asking` is counted already.
        """

        def gives_way(each: LimitedConnection) -> bool:
            return each.is_stranger and each.is_blocked and each is not asking

        while asking.is_stranger and self._strangers > self.places.strangers:
            if not self._look(EvictionNeed.PART, gives_way):
                return False
        return True

    def _make_room(self, asking: LimitedConnection | None) -> bool:
        """Let others give way while more is taken than there is; False when nobody can."""
        while self.taken > self.places.limit:
            if not self._evict_any(asking):
                return False
        return True

    def _evict_any(self, asking: LimitedConnection | None) -> bool:
        return self._look(
            EvictionNeed.ROOM,
            lambda each: each.is_waiting and each is not asking,
            lambda each: each.is_anonymous and each.is_blocked and each is not asking,
        )

    def _look(self, need: EvictionNeed, *tests: Callable[[LimitedConnection], bool]) -> bool:
        """Let connections give way that pass the first test that any of them passes."""
        now = self._clock()
        if now < self._looked_at[need] + EVICTION_PAUSE_SECONDS:
            # Nobody could give way a moment ago.
            return False
        for test in tests:
            found = [each for each in self._seats if test(each)]
            if found:
                self._evict(found)
                return True
        self._looked_at[need] = now
        return False

    def _evict(self, found: list[LimitedConnection]) -> None:
        """Close the oldest of some connections: one, or several where there is room for many."""
        count = max(1, self.places.limit // EVICTION_DIVISOR)
        for seat in nsmallest(count, found, key=_since):
            self.leave(seat)
            seat.evict()
            self._closed += 1
        self._tell()

    def _tell(self) -> None:
        """Log, at most once a minute, how many connections were closed and refused since the last line."""
        now = self._clock()
        if now < self._told_at + LOG_PAUSE_SECONDS:
            return
        counts = {"closed": self._closed, "refused": self._refused, "limit": self.places.limit}
        log.warning("connections are closed or refused, as there is no room for more", extra=counts)
        self._told_at, self._closed, self._refused = now, 0, 0


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
    """Return the places of the public application, by the limit of open files.

    `pool_size` is how many connections to a database server there may be.
    """
    soft = file_limit()
    limit = max(
        soft - reserved_control_files(soft) - HEALTH_DESCRIPTORS - RESERVED_DESCRIPTORS - pool_size, soft // 2
    )
    return DescriptorLimits(
        limit, HEALTH_DESCRIPTORS, limit // ADDRESS_DIVISOR, soft - reserved_control_files(soft)
    )


def control_descriptor_limits() -> DescriptorLimits:
    """Return the places of the control socket, by the limit of open files."""
    soft = file_limit()
    limit = reserved_control_files(soft)
    return DescriptorLimits(limit, 0, limit, soft)
