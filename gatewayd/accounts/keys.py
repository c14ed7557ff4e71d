"""API keys: issue, list, revoke."""

from collections.abc import Sequence
from typing import Final

from gatewayd import ids
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.interfaces import KeyStore
from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.records import ApiKey, User
from gatewayd.accounts.texts import clean
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found

KEY_PREFIX: Final = "sk-"
SHOWN_PREFIX_CHARACTERS: Final = len(KEY_PREFIX) + 8
MAX_NAME_CHARACTERS: Final = 128
MAX_KEYS_PER_USER: Final = 1000
MAX_EXPIRES_AT: Final = 253_402_300_799  # the end of the year 9999
DEFAULT_NAME: Final = "API key"


class Keys:
    """Makes keys whose value is shown once and never stored, and ends them."""

    def __init__(
        self, keys: KeyStore, rules: KeyRules, changes: AccountChangeNotifier, clock: ids.Clock = ids.now
    ) -> None:
        self._keys = keys
        self._rules = rules
        self._changes = changes
        self._clock = clock

    async def issue(
        self,
        user: User,
        name: str | None = None,
        expires_at: int | None = None,
        *,
        until: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Return a new key and its value, which nobody can read again.

        Without a name it gets one that is free. `until` is when the key that asks ends, None for any other
        caller: no key makes one that outlives it. Raises forbidden when either level of 5.2 is missing,
        invalid_request for a bad name or expiry, conflict when the user has a key of this name.
        """
        await self.check(user, "create")
        if until is not None and expires_at is not None and expires_at > until:
            raise invalid(
                "cannot accept expires_at: it is later than the end of the key that asks", param="expires_at"
            )
        return await self.make(user, name, until if expires_at is None else expires_at)

    async def make(
        self, user: User, name: str | None = None, expires_at: int | None = None
    ) -> tuple[ApiKey, str]:
        """Do what `issue` does without asking whether the user may: for setup, which grants it beside."""
        now = self._clock()
        if expires_at is not None and not now < expires_at <= MAX_EXPIRES_AT:
            raise invalid("cannot accept expires_at: it is not in the future", param="expires_at")
        existing = await self._keys.list(user_id=user.id)
        if len(existing) >= MAX_KEYS_PER_USER:
            raise GatewayError(
                ErrorKind.CONFLICT, f"cannot create an API key: user {user.id!r} has {len(existing)} already"
            )
        value = KEY_PREFIX + ids.new_secret()
        key = ApiKey(
            id=ids.new_id(),
            user_id=user.id,
            name=f"{DEFAULT_NAME} {ids.new_secret(4)}"
            if name is None
            else clean(name, "name", longest=MAX_NAME_CHARACTERS),
            digest=ids.digest(value),
            prefix=value[:SHOWN_PREFIX_CHARACTERS],
            expires_at=expires_at,
            created_at=now,
        )
        await self._keys.add(key)
        return key, value

    async def list(self, user_id: str | None = None) -> Sequence[ApiKey]:
        """Return the keys of one user, or all, oldest first."""
        return await self._keys.list(user_id=user_id)

    async def get(self, key_id: str) -> ApiKey:
        """Return a key; not_found when there is none."""
        key = await self._keys.find(key_id)
        if key is None:
            raise not_found("API key", key_id)
        return key

    async def revoke(self, key_id: str, user_id: str | None = None) -> None:
        """End a key at once; not_found when there is none, or none of this user."""
        key = await self.get(key_id)
        if user_id is not None and key.user_id != user_id:
            raise not_found("API key", key_id)
        if not await self._keys.remove(key_id):
            raise not_found("API key", key_id)
        self._changes.publish(AccountChange(key.user_id, asks_again=True))

    async def revoke_all(self, user_id: str) -> int:
        """End every key of a user; return how many there were."""
        count = 0
        for key in await self._keys.list(user_id=user_id):
            count += await self._keys.remove(key.id)
        self._changes.publish(AccountChange(user_id, asks_again=True))
        return count

    async def why(self, user: User) -> Sequence[str]:
        """Return what keeps the user from creating and using keys, one sentence each."""
        return self._rules.missing(user, (await self._rules.rights(user)).permissions)

    async def check(self, user: User, verb: str) -> None:
        """Raise forbidden, saying what is missing, when the user may not `verb` (use, create, ...) keys."""
        self._rules.check(user, (await self._rules.rights(user)).permissions, verb)
