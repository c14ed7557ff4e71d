"""Sign in with e-mail and password, against patient guessers."""

import ipaddress
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.accounts.interfaces import UserStore
from gatewayd.accounts.passwords import Passwords
from gatewayd.accounts.records import User
from gatewayd.accounts.texts import normalise_email
from gatewayd.errors import GatewayError, Kind, invalid

MAX_TRACKED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Limit:
    """So many failures in so many seconds."""

    tries: int
    seconds: int


PER_ACCOUNT: Final = Limit(15, 180)
PER_PEER: Final = Limit(60, 180)


class Tries:
    """Counts tries by name in a sliding window; remembers a bounded number of names."""

    def __init__(self, limit: Limit, clock: ids.Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._times: OrderedDict[str, deque[int]] = OrderedDict()

    def wait(self, name: str) -> int:
        """Return the seconds until another try is allowed, 0 for now."""
        times = self._times.get(name)
        if times is None:
            return 0
        now = self._clock()
        while times and times[0] <= now - self._limit.seconds:
            times.popleft()
        if len(times) < self._limit.tries:
            return 0
        return max(1, times[0] + self._limit.seconds - now)

    def add(self, name: str) -> None:
        """Count a try."""
        self._times.setdefault(name, deque()).append(self._clock())
        self._times.move_to_end(name)
        if len(self._times) > MAX_TRACKED:
            self._times.popitem(last=False)

    def take_back(self, name: str) -> None:
        """Uncount the latest try: it succeeded, or was none."""
        times = self._times.get(name)
        if times:
            times.pop()
        if not times:
            self._times.pop(name, None)


class SignIn:
    """Checks e-mail and password. Every failure has one text and costs the same work."""

    def __init__(
        self, users: UserStore, passwords: Passwords, clock: ids.Clock = ids.now, *, enabled: bool = True
    ) -> None:
        self._enabled = enabled
        self._users = users
        self._passwords = passwords
        self._by_account = Tries(PER_ACCOUNT, clock)
        self._by_peer = Tries(PER_PEER, clock)

    async def sign_in(self, email: str, password: str, peer: str) -> User:
        """Return the account; `peer` is the address that the connection comes from.

        Raises invalid_request (code `invalid_credentials`) when the pair does not fit, rate_limited with
        `retry_after` after 15 failures per account or 60 per peer within 180 seconds, forbidden when
        passwords are not accepted at all.
        """
        if not self._enabled:
            raise GatewayError(
                Kind.FORBIDDEN, "cannot sign in: passwords are not accepted (ENABLE_PASSWORD_AUTH)"
            )
        account, peer = _account(email), _network(peer)
        wait = max(self._by_account.wait(account), self._by_peer.wait(peer))
        if wait:
            raise GatewayError(
                Kind.RATE_LIMITED, "cannot sign in now: too many failed tries", retry_after=wait
            )
        # Counted before the work, so that a thousand tries at once are not all let through.
        self._by_account.add(account)
        self._by_peer.add(peer)
        try:
            user = await self._check(account, password)
        except GatewayError as error:
            if error.kind is Kind.UNAVAILABLE:
                self._take_back(account, peer)
            raise
        if user is None:
            raise invalid("cannot sign in: wrong e-mail or password", code="invalid_credentials")
        self._take_back(account, peer)
        return user

    async def _check(self, account: str, password: str) -> User | None:
        user = await self._users.find_by_email(account) if account else None
        known = await self._users.find_password_hash(user.id) if user is not None and user.active else None
        if not await self._passwords.verify(known, password) or user is None or known is None:
            return None
        if self._passwords.needs_rehash(known):
            await self._users.set_password_hash(user.id, await self._passwords.hash(password))
        return user

    def _take_back(self, account: str, peer: str) -> None:
        self._by_account.take_back(account)
        self._by_peer.take_back(peer)


def _account(email: str) -> str:
    try:
        return normalise_email(email)
    except GatewayError:
        # No account can have it; all such addresses share one count.
        return ""


def _network(peer: str) -> str:
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer[:64]
    if isinstance(address, ipaddress.IPv6Address):
        # One household has a whole /64.
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
