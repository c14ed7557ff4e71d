"""Authenticator: the single place that turns a key or session token into an actor."""

import hmac
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, Protocol

from gatewayd import ids
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.interfaces import KeyStore, UserStore
from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.keys import KEY_PREFIX
from gatewayd.accounts.records import Actor, CredentialKind, User
from gatewayd.accounts.sessions import Sessions
from gatewayd.cluster.freshness import ALWAYS_FRESH
from gatewayd.cluster.interfaces import Freshness
from gatewayd.errors import ErrorKind, GatewayError

MAX_CREDENTIAL: Final = 4096
MAX_CACHED: Final = 20_000


class _Touchable(Protocol):
    async def touch(self, seen: Mapping[str, int]) -> None: ...


class Authenticator:
    """Authenticates credentials.

    Actors are cached by the SHA-256 of the whole credential; a published change of a user drops the actors of
    that user. Switches, endpoint lists and expiry are checked on every call. While other processes may have
    changed the database unnoticed, the database is asked before a cached actor is used.
    """

    def __init__(
        self,
        users: UserStore,
        keys: KeyStore,
        rules: KeyRules,
        sessions: Sessions,
        changes: AccountChangeNotifier,
        clock: ids.Clock = ids.now,
        freshness: Freshness = ALWAYS_FRESH,
    ) -> None:
        self._users = users
        self._keys = keys
        self._rules = rules
        self._sessions = sessions
        self._clock = clock
        self._freshness = freshness
        self._cache: OrderedDict[str, Actor] = OrderedDict()
        self._cached_of: dict[str, set[str]] = {}
        # Every change increments it: an actor is not cached if a change occurred while it was read.
        self._generation = 0
        self._seen_users: dict[str, int] = {}
        self._seen_keys: dict[str, int] = {}
        self._seen_sessions: dict[str, int] = {}
        changes.subscribe(self._on_change)

    async def authenticate(self, credential: str, method: str, path: str) -> Actor:
        """Return the actor of `credential` for a request with this method and routed path.

        Raises unauthenticated if the credential is unknown, expired or revoked, or the account is
        deactivated; forbidden for a key if keys are off, the permission is missing, or the endpoint is not
        allowed; unavailable if the database must be asked and does not answer.
        """
        if not credential or len(credential) > MAX_CREDENTIAL:
            raise _unknown()
        if not self._freshness.is_fresh():
            await self._freshness.renew()
        digest = ids.digest(credential)
        actor = self._find_cached(digest) or await self._load(credential, digest)
        return self._accept(actor, digest, method, path)

    def find(self, credential: str, method: str, path: str, digest: str = "") -> Actor | None:
        """Return what `authenticate` returns if the actor is cached, else None; raises as it does.

        `digest` is that of the credential, "" if it is not known.
        """
        if len(credential) > MAX_CREDENTIAL or not self._freshness.is_fresh():
            return None
        digest = digest or ids.digest(credential)
        actor = self._find_cached(digest)
        return None if actor is None else self._accept(actor, digest, method, path)

    def _accept(self, actor: Actor, digest: str, method: str, path: str) -> Actor:
        """Return an actor after the checks of every request."""
        now = self._clock()
        if actor.expires_at is not None and actor.expires_at <= now:
            self._forget(digest)
            raise GatewayError(ErrorKind.UNAUTHENTICATED, f"cannot accept the {actor.kind}: it has expired")
        if actor.kind is CredentialKind.KEY:
            self._rules.check(actor.user, actor.permissions, "use")
            self._rules.check_endpoint(method, path)
        self._seen_users[actor.user_id] = now
        if actor.key_id is not None:
            self._seen_keys[actor.key_id] = now
        elif actor.jti is not None:
            self._seen_sessions[actor.jti] = now
        return actor

    async def flush(self) -> None:
        """Write the times of the last use of keys and sessions and of the last activity of users; called
        periodically.

        Raises the error of a failed write; the next call writes its times.
        """
        users, self._seen_users = self._seen_users, {}
        keys, self._seen_keys = self._seen_keys, {}
        sessions, self._seen_sessions = self._seen_sessions, {}
        try:
            await _touch(self._users, users)
            users = {}
            await _touch(self._keys, keys)
            keys = {}
            if sessions:
                await self._sessions.touch(sessions)
            sessions = {}
        finally:
            # Times that were recorded meanwhile are newer and win.
            self._seen_users = {**users, **self._seen_users}
            self._seen_keys = {**keys, **self._seen_keys}
            self._seen_sessions = {**sessions, **self._seen_sessions}

    def _find_cached(self, digest: str) -> Actor | None:
        actor = self._cache.get(digest)
        if actor is not None:
            self._cache.move_to_end(digest)
        return actor

    async def _load(self, credential: str, digest: str) -> Actor:
        generation = self._generation
        if credential.startswith(KEY_PREFIX):
            actor = await self._load_key(digest)
        else:
            actor = await self._load_session(credential)
        if generation == self._generation:
            self._keep(digest, actor)
        return actor

    async def _load_key(self, digest: str) -> Actor:
        key = await self._keys.find_by_digest(digest)
        if key is None or not hmac.compare_digest(key.digest, digest):
            raise _unknown()
        user = await self._find_user(key.user_id)
        rights = await self._rules.rights(user)
        return Actor(
            user=user,
            kind=CredentialKind.KEY,
            group_ids=rights.group_ids,
            permissions=rights.permissions,
            key_id=key.id,
            expires_at=key.expires_at,
            key_prefix=key.prefix,
        )

    async def _load_session(self, token: str) -> Actor:
        claims = self._sessions.read(token)
        user = await self._find_user(claims.user_id)
        if claims.token_version != user.token_version or await self._sessions.is_revoked(claims):
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the session: it was ended")
        rights = await self._rules.rights(user)
        return Actor(
            user=user,
            kind=CredentialKind.SESSION,
            group_ids=rights.group_ids,
            permissions=rights.permissions,
            jti=claims.jti,
            expires_at=claims.expires_at,
        )

    async def _find_user(self, user_id: str) -> User:
        user = await self._users.find(user_id)
        if user is None or not user.active:
            raise _unknown()
        return user

    def _keep(self, digest: str, actor: Actor) -> None:
        self._cache[digest] = actor
        self._cached_of.setdefault(actor.user_id, set()).add(digest)
        if len(self._cache) > MAX_CACHED:
            self._forget(next(iter(self._cache)))

    def _forget(self, digest: str) -> None:
        actor = self._cache.pop(digest, None)
        if actor is None:
            return
        digests = self._cached_of[actor.user_id]
        digests.discard(digest)
        if not digests:
            del self._cached_of[actor.user_id]

    def _on_change(self, change: AccountChange) -> None:
        self._generation += 1
        if change.user_id is None:
            self._cache.clear()
            self._cached_of.clear()
            return
        for digest in self._cached_of.pop(change.user_id, set()):
            self._cache.pop(digest, None)


async def _touch(store: _Touchable, seen: Mapping[str, int]) -> None:
    if seen:
        await store.touch(seen)


def _unknown() -> GatewayError:
    return GatewayError(
        ErrorKind.UNAUTHENTICATED,
        "cannot accept the credential: unknown, revoked, or the account is not active",
    )
