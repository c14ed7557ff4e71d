"""Sign-in with e-mail address and password, with limits of failed tries."""

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.accounts import attempts
from gatewayd.accounts.attempts import AttemptCounter, AttemptLimit, network_of, wide_network_of
from gatewayd.accounts.devices import DeviceCookies
from gatewayd.accounts.interfaces import UserStore
from gatewayd.accounts.passwords import Passwords
from gatewayd.accounts.records import Actor, CredentialKind, User
from gatewayd.accounts.shared_attempts.desk import AttemptCounts, AttemptDesk, ClaimedTry, SharedAttempts
from gatewayd.accounts.texts import email_key
from gatewayd.errors import ErrorKind, GatewayError, invalid

FAILURE_SECONDS: Final = 900
ACCOUNT_SECONDS: Final = 3600
WIDE_FACTOR: Final = 4
"""Limit of failures of one IPv6 /48, as a multiple of the limit of one address."""


@dataclass(frozen=True, slots=True)
class SignInLimits:
    """Maximum numbers of failed tries.

    `failures`: of one address on one account in 15 minutes. `by_address`: of one address on all accounts in
    15 minutes. `by_account`: of all unknown addresses on one account in an hour, and the same for all its
    device cookies.
    """

    failures: int = 10
    by_address: int = 100
    by_account: int = 100


@dataclass(frozen=True, slots=True)
class SignInClient:
    """The client of a sign-in: its address, and its device cookie, "" without one."""

    peer: str
    device_cookie: str = ""


class KnownNetworks:
    """The latest `MAX_TRACKED` pairs of an account and a network from which it signed in."""

    def __init__(self) -> None:
        self._pairs: OrderedDict[str, None] = OrderedDict()

    def add(self, pair: str) -> None:
        """Store a pair, and drop the oldest one above the limit."""
        self._pairs[pair] = None
        self._pairs.move_to_end(pair)
        if len(self._pairs) > attempts.MAX_TRACKED:
            self._pairs.popitem(last=False)

    def __contains__(self, pair: str) -> bool:
        return pair in self._pairs


class SignInGuard:
    """Limits the failed tries of every way to sign in with a password.

    Failures of unknown clients do not count against a browser with a device cookie, nor against a network
    from which the account signed in.
    """

    def __init__(
        self,
        devices: DeviceCookies,
        limits: SignInLimits | None = None,
        clock: ids.Clock | None = None,
        shared: SharedAttempts | None = None,
    ) -> None:
        self.desk = AttemptDesk(shared)
        self._devices = devices
        limits = limits or SignInLimits()
        clock = clock or ids.steady_clock()
        self._by_pair = AttemptCounter(AttemptLimit(limits.failures, FAILURE_SECONDS), clock, "pair")
        self._by_peer = AttemptCounter(AttemptLimit(limits.by_address, FAILURE_SECONDS), clock, "address")
        wide = AttemptLimit(limits.by_address * WIDE_FACTOR, FAILURE_SECONDS)
        self._by_site = AttemptCounter(wide, clock, "site")
        self._by_account = AttemptCounter(AttemptLimit(limits.by_account, ACCOUNT_SECONDS), clock, "account")
        self._by_device = AttemptCounter(AttemptLimit(limits.failures, FAILURE_SECONDS), clock, "device")
        self._by_all_devices = AttemptCounter(
            AttemptLimit(limits.by_account, ACCOUNT_SECONDS), clock, "all devices"
        )
        self._known = KnownNetworks()

    @asynccontextmanager
    async def attempt(self, account: str, client: SignInClient) -> AsyncIterator[None]:
        """Count a try in the block, until the block ends without an error.

        It is counted before the check, so that concurrent tries are limited. A try during which the check was
        unavailable does not count. Raises rate_limited with `retry_after` after too many failures.
        """
        pair = f"{network_of(client.peer)} {account}"
        claimed = await self._claim(account, pair, client)
        try:
            yield
        except GatewayError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                await self.desk.release(claimed)
            raise
        await self.desk.release(claimed)
        counter, name = claimed.counts[0]
        await self.desk.forget(counter, name)
        if counter is self._by_pair:
            self._known.add(pair)
            if self.desk.shared is not None:
                await self.desk.shared.remember(pair)

    def issue_device_cookie(self, account: str) -> str:
        """Return a new device cookie for a browser in which the account has just signed in."""
        return self._devices.issue(account)

    async def _claim(self, account: str, pair: str, client: SignInClient) -> ClaimedTry:
        """Count a try by its device cookie, else by its network; raises rate_limited.

        A device cookie at its limit does not count. Each sign-in issues a device cookie; all cookies of an
        account share one limit.
        """
        device = self._devices.find(account, client.device_cookie)
        if device is not None:
            by_device = [(self._by_device, device), (self._by_all_devices, account)]
            claimed = await self.desk.claim(by_device)
            if not isinstance(claimed, int):
                return claimed
        counts = await self._counts(account, pair, client)
        return _granted(await self.desk.claim(counts), "cannot sign in now: too many failed tries")

    async def _counts(self, account: str, pair: str, client: SignInClient) -> AttemptCounts:
        """Return the counters of the network of a try."""
        by_pair = [(self._by_pair, pair)]
        shared = self.desk.shared
        if pair in self._known or (shared is not None and await shared.is_known(pair)):
            return by_pair
        network, site = network_of(client.peer), wide_network_of(client.peer)
        by_network = [*by_pair, (self._by_account, account), (self._by_peer, network)]
        return by_network if site is None else [*by_network, (self._by_site, site)]


class SignIn:
    """Checks e-mail address and password. Every failure has the same text and takes the same time."""

    def __init__(
        self,
        users: UserStore,
        passwords: Passwords,
        guard: SignInGuard,
        limits: SignInLimits | None = None,
        clock: ids.Clock | None = None,
        *,
        enabled: bool = True,
    ) -> None:
        self._enabled = enabled
        self._users = users
        self._passwords = passwords
        self._guard = guard
        failures = AttemptLimit((limits or SignInLimits()).failures, FAILURE_SECONDS)
        self._by_session_user = AttemptCounter(failures, clock or ids.steady_clock(), "session user")

    async def sign_in(self, email: str, password: str, client: SignInClient) -> User:
        """Return the account.

        Raises invalid_request (code `invalid_credentials`) for a wrong e-mail address or password,
        rate_limited with `retry_after` after too many failures, forbidden if password sign-in is off.
        """
        if not self._enabled:
            raise GatewayError(
                ErrorKind.FORBIDDEN, "cannot sign in: passwords are not accepted (ENABLE_PASSWORD_AUTH)"
            )
        account = email_key(email)
        async with self._guard.attempt(account, client):
            user = await self._check(account, password)
            if user is None:
                raise invalid("cannot sign in: wrong e-mail or password", code="invalid_credentials")
        return user

    async def confirm(self, who: Actor, password: str, *, what: str = "change the password") -> None:
        """Check the present password before a change, `what` (ASVS 5.0, 6.2.3 and 7.5.1).

        Raises forbidden for an API key, invalid_request (param `password`) for a wrong password, rate_limited
        after `failures` wrong passwords in 15 minutes.
        """
        if who.kind is not CredentialKind.SESSION:
            raise GatewayError(ErrorKind.FORBIDDEN, f"cannot {what} with an API key: sign in")
        counter, desk = self._by_session_user, self._guard.desk
        claimed = _granted(
            await desk.claim([(counter, who.user_id)]),
            "cannot check the password now: too many failed tries",
        )
        try:
            known = await self._users.find_password_hash(who.user_id)
            fits = await self._passwords.verify(known, password)
        except GatewayError:
            await desk.release(claimed)
            raise
        if not fits:
            raise invalid(f"cannot {what}: the present password is wrong", param="password")
        await desk.forget(counter, who.user_id)

    async def has_password(self, user_id: str) -> bool:
        """Tell whether an account has a password."""
        return await self._users.find_password_hash(user_id) is not None

    def issue_device_cookie(self, user: User) -> str:
        """Return a new device cookie for the browser in which this user has just signed in."""
        return self._guard.issue_device_cookie(user.email)

    async def _check(self, account: str, password: str) -> User | None:
        user = await self._users.find_by_email(account) if account else None
        known = await self._users.find_password_hash(user.id) if user is not None and user.active else None
        if not await self._passwords.verify(known, password) or user is None or known is None:
            return None
        if self._passwords.needs_rehash(known):
            await self._users.set_password_hash(user.id, await self._passwords.hash(password))
        return user


def _granted(claimed: ClaimedTry | int, refusal: str) -> ClaimedTry:
    """Return a try that is counted; raises rate_limited."""
    if isinstance(claimed, int):
        raise GatewayError(ErrorKind.RATE_LIMITED, refusal, retry_after=claimed)
    return claimed
