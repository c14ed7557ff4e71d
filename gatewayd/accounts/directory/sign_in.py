"""Sign-in with the name and the password of a directory."""

from collections.abc import Awaitable, Callable
from typing import Final

from gatewayd.accounts.directory.interfaces import Directory
from gatewayd.accounts.directory.records import DirectoryEntry
from gatewayd.accounts.identity.records import ExternalIdentity, IdentityRules, ResolvedAccount
from gatewayd.accounts.sign_in import SignInClient, SignInGuard
from gatewayd.errors import invalid
from gatewayd.text import casefold_nfkc, is_storable

PROVIDER: Final = "ldap"
"""Provider and issuer of the identities of the directory."""
MAX_NAME_CHARACTERS: Final = 255
MAX_PASSWORD_BYTES: Final = 1024

Resolve = Callable[[ExternalIdentity, IdentityRules], Awaitable[ResolvedAccount]]


class DirectorySignIn:
    """Checks name and password in a directory and finds or creates the account of its entry.

    Every failure has the same text. The tries have the limits of those with a password of the gateway, so
    that nobody can make the directory lock a person out.
    """

    def __init__(
        self, directory: Directory, resolve: Resolve, guard: SignInGuard, rules: IdentityRules
    ) -> None:
        self._directory = directory
        self._resolve = resolve
        self._guard = guard
        self._rules = rules

    async def sign_in(self, name: str, password: str, client: SignInClient) -> ResolvedAccount:
        """Return the account.

        Raises invalid_request (code `invalid_credentials`) for a wrong name or password, rate_limited after
        too many failures, unavailable without an answer of the directory, forbidden as
        `ExternalAccounts.resolve`. A name or a password that no directory has is refused without asking it.
        """
        account = account_of(name)
        async with self._guard.attempt(account, client):
            entry = await self._find(name.strip(), password)
            if entry is None:
                raise invalid("cannot sign in: wrong user name or password", code="invalid_credentials")
        return await self._resolve(_identity_of(entry, self._rules), self._rules)

    def issue_device_cookie(self, name: str) -> str:
        """Return a new device cookie for the browser in which this name has just signed in."""
        return self._guard.issue_device_cookie(account_of(name))

    async def _find(self, name: str, password: str) -> DirectoryEntry | None:
        if not name or len(name) > MAX_NAME_CHARACTERS or not is_storable(name):
            return None
        # A bind with an empty password succeeds without a check (RFC 4513, 5.1.2).
        if not password.strip() or not is_storable(password):
            return None
        if len(password.encode()) > MAX_PASSWORD_BYTES:
            return None
        return await self._directory.authenticate(name, password)


def account_of(name: str) -> str:
    """Return the name under which the tries of a directory name are counted, apart from addresses."""
    return f"{PROVIDER}:{casefold_nfkc(name[:MAX_NAME_CHARACTERS]).strip()}"


def _identity_of(entry: DirectoryEntry, rules: IdentityRules) -> ExternalIdentity:
    return ExternalIdentity(
        provider=PROVIDER,
        issuer=PROVIDER,
        subject=entry.id,
        email=entry.email,
        # Whoever may write the attribute chooses the address: it joins accounts only when switched on.
        email_verified=rules.merge_by_email,
        name=entry.name,
        groups=entry.groups,
    )
