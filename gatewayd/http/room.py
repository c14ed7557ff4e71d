"""Room for connections, counted by the file descriptors that they and their requests use."""

import logging
import math
import resource
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from aiohttp import web

from gatewayd.errors import GatewayError, Kind
from gatewayd.http.uses import Bounds, RoomRules, Use

OWN_FILES: Final = 104
"""Descriptors kept for the database, the log, the worker processes and the providers."""

MIN_CONTROL_FILES: Final = 64
"""Descriptors kept for the control socket at least."""

HEALTH_FILES: Final = 32
"""Descriptors kept for connections that ask for the health while all others are taken."""

ACCOUNT_PART: Final = 4
"""One account holds at most a fourth of the descriptors."""

ADDRESS_PART: Final = 2
"""One address holds at most half of the descriptors, and so do all connections without a credential."""

CONTROL_PART: Final = 32
"""The control socket has a 32nd of all descriptors, where that is more."""

RETRY_SECONDS: Final = 2
"""What a refused client is told to wait."""

TELL_SECONDS: Final = 60.0
"""At most one line in this time says that connections are closed or refused."""

DESCRIPTORS: Final = Path("/proc/self/fd")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Places:
    """Descriptors for everybody, those beyond them for questions about the health, those of the first that
    connections without a credential may hold, and how many the process may have open."""

    limit: int
    spare: int
    strangers: int
    open_files: int


class Seat(Protocol):
    """A connection, as the room sees it."""

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for its peer: for a request, for the rest of one, or until an answer is taken."""
        ...

    def evict(self) -> None:
        """Close at once."""
        ...


class Holder:
    """What one account or one address holds: descriptors, and requests by the names of their bounds."""

    __slots__ = ("counts", "files", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.files = 0
        self.counts: dict[str, int] = {}


class Holders:
    """The accounts, or the addresses, that hold something; each has bounds."""

    def __init__(self, kind: str, bounds: Bounds, most_files: int) -> None:
        self._kind = kind
        self._bounds = bounds
        self._most_files = most_files
        self._held: dict[str, Holder] = {}

    def find(self, name: str, use: Use) -> Holder:
        """Return a holder that may have one more request; rate_limited over a bound."""
        holder = self._held.get(name)
        if holder is None:
            return Holder(name)
        for counted in use.counted:
            most = self._bounds.of(counted)
            if most and holder.counts.get(counted, 0) >= most:
                raise _too_many(
                    f"the {self._kind} has {most} {counted} at once, the most for one {self._kind}", counted
                )
        if holder.files + use.files > self._most_files:
            raise _too_many(
                f"the {self._kind} holds {holder.files} open files of the gateway, the most for one"
                f" {self._kind}",
                use.counted[-1],
            )
        return holder

    def add(self, holder: Holder, use: Use) -> None:
        """Count a request for a holder."""
        self._held[holder.name] = holder
        holder.files += use.files
        for counted in use.counted:
            holder.counts[counted] = holder.counts.get(counted, 0) + 1

    def remove(self, holder: Holder, use: Use) -> None:
        """Count a request no more."""
        holder.files -= use.files
        if not holder.files:
            self._held.pop(holder.name, None)
            return
        for counted in use.counted:
            holder.counts[counted] -= 1


class Hold(NamedTuple):
    """What one request holds, and who answers for it.

    `more` are the descriptors beside that of a connection, which `enter` counts.
    """

    account: Holder | None
    address: Holder | None
    use: Use
    more: int


class Room:
    """Gives descriptors to connections and to their requests.

    Connections that wait for a request give way to others, the oldest first. So do, when there are none,
    those of strangers that keep the daemon waiting; a stranger's request has no good credential.
    """

    def __init__(
        self,
        places: Places,
        rules: RoomRules | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places = places
        self.taken = 0
        self._seats: set[Seat] = set()
        # In the order in which they began to be that.
        self._waiting: OrderedDict[Seat, None] = OrderedDict()
        self._strangers: OrderedDict[Seat, None] = OrderedDict()
        self._spares: set[Seat] = set()
        chosen = rules or RoomRules()
        self._accounts = Holders("account", chosen.account, places.limit // ACCOUNT_PART)
        self._addresses = Holders("address", chosen.address, places.limit // ADDRESS_PART)
        self._clock = clock
        self._told_at = -math.inf
        self._closed = self._refused = 0

    def enter(self, seat: Seat) -> bool:
        """Take a place for a new connection; False when there is none, not even a spare one."""
        if len(self._strangers) >= self.places.strangers:
            self._evict_stranger(seat)
        self.taken += 1
        self._seats.add(seat)
        has_room = self._make_room(seat)
        if has_room and open_files() > self.places.open_files:
            # Something else holds them; those of who gives way are closed in a moment.
            has_room = self._evict_any(seat)
        self._waiting[seat] = None
        self._strangers[seat] = None
        if has_room:
            return True
        self._spares.add(seat)
        self._refused += 1
        self._tell()
        return self.taken <= self.places.limit + self.places.spare

    def leave(self, seat: Seat) -> None:
        """Give the place of a connection back; may be called again."""
        if seat in self._seats:
            self._seats.discard(seat)
            self._spares.discard(seat)
            self.taken -= 1
            self._waiting.pop(seat, None)
            self._strangers.pop(seat, None)

    def begin(self, seat: Seat) -> None:
        """Note that a connection has a request, of nobody yet."""
        if seat in self._seats:
            self._waiting.pop(seat, None)
            self._strangers[seat] = None

    def end(self, seat: Seat) -> None:
        """Note that a connection waits for its next request."""
        if seat in self._seats:
            self._waiting[seat] = None

    def hold(self, seat: Seat, account: str, address: str, use: Use) -> Hold | None:
        """Count a request; what is returned is to be given to `release`.

        Raises rate_limited over a bound of the account or the address, unavailable when the room is full.
        """
        if use is Use.PROBE:
            return None
        hold = self._add(seat, account, address, use, use.files - 1)
        if account:
            self._strangers.pop(seat, None)
        return hold

    def begin_run(self, account: str) -> Callable[[], None]:
        """Count an answer that no request waits for; what is returned is to be called at its end.

        Raises as `hold` does.
        """
        return partial(self.release, self._add(None, account, "", Use.RUN, Use.RUN.files))

    def release(self, hold: Hold) -> None:
        """Give back what a request held."""
        self.taken -= hold.more
        if hold.account is not None:
            self._accounts.remove(hold.account, hold.use)
        if hold.address is not None:
            self._addresses.remove(hold.address, hold.use)

    def _add(self, seat: Seat | None, account: str, address: str, use: Use, more: int) -> Hold:
        by_account = self._accounts.find(account, use) if account else None
        by_address = self._addresses.find(address, use) if address else None
        if more or seat in self._spares:
            self._take(seat, more)
        if by_account is not None:
            self._accounts.add(by_account, use)
        if by_address is not None:
            self._addresses.add(by_address, use)
        return Hold(by_account, by_address, use, more)

    def _take(self, seat: Seat | None, more: int) -> None:
        """Take descriptors beside that of a connection, and for a spare connection its own."""
        self.taken += more
        if not self._make_room(seat):
            self.taken -= more
            most = self.places.limit
            raise GatewayError(
                Kind.UNAVAILABLE,
                f"cannot take the request: the gateway has its {most} connections and files in use",
                code="too_many_connections",
                retry_after=RETRY_SECONDS,
            )
        if seat is not None:
            self._spares.discard(seat)

    def _make_room(self, asking: Seat | None) -> bool:
        """Let others give way while more is taken than there is; False when nobody can."""
        while self.taken > self.places.limit:
            if not self._evict_any(asking):
                return False
        return True

    def _evict_any(self, asking: Seat | None) -> bool:
        if not self._waiting:
            return self._evict_stranger(asking)
        self._evict(next(iter(self._waiting)))
        return True

    def _evict_stranger(self, asking: Seat | None) -> bool:
        for seat in self._strangers:
            if seat.is_blocked and seat is not asking:
                self._evict(seat)
                return True
        return False

    def _evict(self, seat: Seat) -> None:
        self.leave(seat)
        seat.evict()
        self._closed += 1
        self._tell()

    def _tell(self) -> None:
        """Log, at most once a minute, how many connections were closed and refused since the last line."""
        now = self._clock()
        if now < self._told_at + TELL_SECONDS:
            return
        counts = {"closed": self._closed, "refused": self._refused, "limit": self.places.limit}
        log.warning("connections are closed or refused, as there is no room for more", extra=counts)
        self._told_at, self._closed, self._refused = now, 0, 0


ROOM: Final = web.AppKey("room", Room)


def _too_many(reason: str, name: str) -> GatewayError:
    return GatewayError(
        Kind.RATE_LIMITED,
        f"cannot take the request: {reason}",
        code=f"too_many_{name}",
        retry_after=RETRY_SECONDS,
    )


def open_files() -> int:
    """Return how many descriptors the process has open; 0 where the kernel (before 6.2) does not count."""
    return DESCRIPTORS.stat().st_size


def public_places() -> Places:
    """Return the places of the public application, by the limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(soft - _control_files(soft) - HEALTH_FILES - OWN_FILES, soft // 2)
    return Places(limit, HEALTH_FILES, limit // ADDRESS_PART, soft - _control_files(soft))


def control_places() -> Places:
    """Return the places of the control socket, by the limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _control_files(soft)
    return Places(limit, 0, limit, soft)


def _control_files(soft: int) -> int:
    return max(MIN_CONTROL_FILES, soft // CONTROL_PART)
