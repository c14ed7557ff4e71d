"""Sign in with e-mail and password, against patient guessers."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.accounts import attempts
from gatewayd.accounts.attempts import Limit, Tries, network_of, wide_network_of
from gatewayd.accounts.devices import Devices
from gatewayd.accounts.interfaces import UserStore
from gatewayd.accounts.passwords import Passwords
from gatewayd.accounts.records import Actor, CredentialKind, User
from gatewayd.accounts.texts import email_key
from gatewayd.errors import GatewayError, Kind, invalid

FAILURE_SECONDS: Final = 900
ACCOUNT_SECONDS: Final = 3600
WIDE_FACTOR: Final = 4
"""How often the failures of one address a /48 of IPv6 may have."""


@dataclass(frozen=True, slots=True)
class SignInLimits:
    """How many failures are let through: `failures` of one address on one account and `by_address` of one
    address on all accounts in 15 minutes, `by_account` of all unknown addresses on one account in an hour."""

    failures: int = 10
    by_address: int = 100
    by_account: int = 100


@dataclass(frozen=True, slots=True)
class Client:
    """Who tries: the address that the connection comes from, and the device cookie, "" without one."""

    peer: str
    device_cookie: str = ""


class KnownNetworks:
    """Remembers from which networks people signed in; a bounded number, the latest ones."""

    def __init__(self) -> None:
        self._pairs: OrderedDict[str, None] = OrderedDict()

    def add(self, pair: str) -> None:
        """Remember an account together with a network."""
        self._pairs[pair] = None
        self._pairs.move_to_end(pair)
        if len(self._pairs) > attempts.MAX_TRACKED:
            self._pairs.popitem(last=False)

    def __contains__(self, pair: str) -> bool:
        return pair in self._pairs


class SignIn:
    """Checks e-mail and password. Every failure has one text and costs the same work.

    What strangers do holds up nobody who signed in before: a browser that has a device cookie is counted by
    itself, a network from which the account signed in is counted by the pair of both.
    """

    def __init__(
        self,
        users: UserStore,
        passwords: Passwords,
        devices: Devices,
        limits: SignInLimits | None = None,
        clock: ids.Clock = ids.now,
        *,
        enabled: bool = True,
    ) -> None:
        self._enabled = enabled
        self._users = users
        self._passwords = passwords
        self._devices = devices
        limits = limits or SignInLimits()
        self._by_pair = Tries(Limit(limits.failures, FAILURE_SECONDS), clock)
        self._by_peer = Tries(Limit(limits.by_address, FAILURE_SECONDS), clock)
        self._by_site = Tries(Limit(limits.by_address * WIDE_FACTOR, FAILURE_SECONDS), clock)
        self._by_account = Tries(Limit(limits.by_account, ACCOUNT_SECONDS), clock)
        self._known = KnownNetworks()

    async def sign_in(self, email: str, password: str, client: Client) -> User:
        """Return the account.

        Raises invalid_request (code `invalid_credentials`) when the pair does not fit, rate_limited with
        `retry_after` after too many failures, forbidden when passwords are not accepted at all.
        """
        if not self._enabled:
            raise GatewayError(
                Kind.FORBIDDEN, "cannot sign in: passwords are not accepted (ENABLE_PASSWORD_AUTH)"
            )
        account = email_key(email)
        pair = self._pair(account, client)
        counts = self._counts(account, pair, client)
        _claim(counts, "cannot sign in now: too many failed tries")
        try:
            user = await self._check(account, password)
        except GatewayError as error:
            if error.kind is Kind.UNAVAILABLE:
                _release(counts)
            raise
        if user is None:
            raise invalid("cannot sign in: wrong e-mail or password", code="invalid_credentials")
        _release(counts)
        self._by_pair.forget(pair)
        self._known.add(pair)
        return user

    async def confirm(self, who: Actor, password: str) -> None:
        """Check the present password of somebody who is signed in, before it is changed.

        Raises forbidden for an API key, invalid_request (param `password`) when the password is wrong,
        rate_limited after as many failures as one address may have: who has a session of somebody else
        guesses no faster than a stranger (ASVS 5.0, 6.2.3 and 7.5.1).
        """
        if who.kind is not CredentialKind.SESSION:
            raise GatewayError(Kind.FORBIDDEN, "cannot change the password with an API key: sign in")
        counts = [(self._by_pair, f"confirm {who.user_id}")]
        _claim(counts, "cannot check the password now: too many failed tries")
        known = await self._users.find_password_hash(who.user_id)
        try:
            fits = await self._passwords.verify(known, password)
        except GatewayError:
            _release(counts)
            raise
        if not fits:
            raise invalid("cannot change the password: the present one is wrong", param="password")
        self._by_pair.forget(counts[0][1])

    def issue_device_cookie(self, user: User) -> str:
        """Return the device cookie for a browser in which this user has just signed in."""
        return self._devices.issue(user.email)

    def _pair(self, account: str, client: Client) -> str:
        device = self._devices.find(account, client.device_cookie)
        return f"device {device}" if device else f"{network_of(client.peer)} {account}"

    def _counts(self, account: str, pair: str, client: Client) -> list[tuple[Tries, str]]:
        counts = [(self._by_pair, pair)]
        if pair.startswith("device ") or pair in self._known:
            return counts
        counts += [(self._by_account, account), (self._by_peer, network_of(client.peer))]
        site = wide_network_of(client.peer)
        return counts if site is None else [*counts, (self._by_site, site)]

    async def _check(self, account: str, password: str) -> User | None:
        user = await self._users.find_by_email(account) if account else None
        known = await self._users.find_password_hash(user.id) if user is not None and user.active else None
        if not await self._passwords.verify(known, password) or user is None or known is None:
            return None
        if self._passwords.needs_rehash(known):
            await self._users.set_password_hash(user.id, await self._passwords.hash(password))
        return user


def _claim(counts: list[tuple[Tries, str]], refusal: str) -> None:
    """Count a try before the work, so that a thousand at once are not all let through, or refuse it."""
    wait = max(tries.wait(name) for tries, name in counts)
    if wait:
        raise GatewayError(Kind.RATE_LIMITED, refusal, retry_after=wait)
    for tries, name in counts:
        tries.add(name)


def _release(counts: list[tuple[Tries, str]]) -> None:
    for tries, name in counts:
        tries.take_back(name)
