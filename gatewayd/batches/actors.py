"""The user of a batch with their current rights, looked up for each line."""

from gatewayd import ids
from gatewayd.accounts.interfaces import KeyStore, UserStore
from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.batches.records import Batch
from gatewayd.errors import ErrorKind, GatewayError


class CurrentBatchActors:
    """Implements `batches.interfaces.BatchActors`."""

    def __init__(self, users: UserStore, keys: KeyStore, rules: KeyRules, clock: ids.Clock = ids.now) -> None:
        self._users = users
        self._keys = keys
        self._rules = rules
        self._clock = clock

    async def of(self, batch: Batch) -> Actor:
        """Return the user of a batch, with the limits of the key that created it."""
        user = await self._users.find(batch.user_id)
        if user is None or not user.is_verified:
            raise _refused("the account was deactivated, removed or made pending", "account_inactive")
        rights = await self._rules.rights(user)
        if batch.key_id is None:
            return Actor(user, CredentialKind.SESSION, rights.group_ids, rights.permissions)
        key = await self._keys.find(batch.key_id)
        if key is None or key.user_id != user.id or self._is_expired(key.expires_at):
            raise _refused("the API key that created the batch was revoked or has expired", "api_key_revoked")
        self._rules.check(user, rights.permissions, "use")
        self._rules.check_endpoint("POST", batch.endpoint)
        return Actor(user, CredentialKind.KEY, rights.group_ids, rights.permissions, key.id)

    def _is_expired(self, expires_at: int | None) -> bool:
        return expires_at is not None and expires_at <= self._clock()


def _refused(reason: str, code: str) -> GatewayError:
    return GatewayError(ErrorKind.FORBIDDEN, f"cannot run the request: {reason}", code=code)
