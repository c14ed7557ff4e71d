"""API key service: issue, list and revoke keys."""

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
    """Issues and revokes keys. The value of a key is returned once and never stored."""

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
        """Return a new key and its value, which cannot be read again.

        Without a name the key gets a free one. `until` is the expiry of the key of the caller, None for
        another credential: a key cannot create a key that outlives it. Raises forbidden if keys are switched
        off or the permission is missing, invalid_request for a bad name or expiry, conflict if the user has a
        key with this name.
        """
        await self.check(user, "create")
        if until is not None and expires_at is not None and expires_at > until:
            raise invalid(
                "cannot accept expires_at: it is later than the expiry of your own key", param="expires_at"
            )
        return await self.make(user, name, until if expires_at is None else expires_at)

    async def make(
        self, user: User, name: str | None = None, expires_at: int | None = None
    ) -> tuple[ApiKey, str]:
        """Create a key as `issue` does, without a check of the right: for setup, which grants it."""
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
        """Return a key; raise not_found without it."""
        key = await self._keys.find(key_id)
        if key is None:
            raise not_found("API key", key_id)
        return key

    async def revoke(self, key_id: str, user_id: str | None = None) -> None:
        """Revoke a key at once; raise not_found if there is none, or it belongs to another user."""
        key = await self.get(key_id)
        if user_id is not None and key.user_id != user_id:
            raise not_found("API key", key_id)
        if not await self._keys.remove(key_id):
            raise not_found("API key", key_id)
        self._changes.publish(AccountChange(key.user_id, asks_again=True))

    async def revoke_all(self, user_id: str) -> int:
        """Revoke all keys of a user; return how many."""
        count = 0
        for key in await self._keys.list(user_id=user_id):
            count += await self._keys.remove(key.id)
        self._changes.publish(AccountChange(user_id, asks_again=True))
        return count

    async def why(self, user: User) -> Sequence[str]:
        """Return the reasons why the user may not create and use keys, one sentence each."""
        return self._rules.missing(user, (await self._rules.rights(user)).permissions)

    async def check(self, user: User, verb: str) -> None:
        """Raise forbidden with the reasons if the user may not `verb` (use, create, ...) keys."""
        self._rules.check(user, (await self._rules.rights(user)).permissions, verb)
