"""The store of external identities in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatewayd.accounts.identity.records import LinkedIdentity, ProviderTokens
from gatewayd.accounts.texts import object_or_empty
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.memory_stores import Memory


class MemoryIdentities:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def _links(self) -> dict[tuple[str, str], LinkedIdentity]:
        return self._memory.tables.identities

    async def add(self, link: LinkedIdentity) -> None:
        async with self._memory.transaction():
            is_taken = (link.issuer, link.subject) in self._links
            if is_taken or link.provider in {each.provider for each in await self.list(link.user_id)}:
                raise GatewayError(ErrorKind.CONFLICT, "cannot add the identity: it is taken", code="taken")
            self._links[link.issuer, link.subject] = link

    async def find(self, issuer: str, subject: str) -> LinkedIdentity | None:
        found = self._links.get((issuer, subject))
        return found if found is not None and found.user_id in self._memory.tables.users else None

    async def list(self, user_id: str) -> Sequence[LinkedIdentity]:
        found = [each for each in self._links.values() if each.user_id == user_id]
        return sorted(found, key=lambda each: each.provider)

    async def touch(self, link: LinkedIdentity) -> None:
        async with self._memory.transaction():
            for key, each in list(self._links.items()):
                if (each.user_id, each.provider) == (link.user_id, link.provider):
                    new = {"provisioning_id": link.provisioning_id, "email": link.email}
                    self._links[key] = replace(each, **new, used_at=link.used_at)

    async def remove(self, user_id: str, provider: str) -> bool:
        async with self._memory.transaction():
            owned = {
                key: each
                for key, each in self._links.items()
                if (each.user_id, each.provider) == (user_id, provider)
            }
            for key in owned:
                del self._links[key]
            self._memory.tables.tokens.pop((user_id, provider), None)
            return bool(owned)

    async def find_subject_owner(self, provider: str, subject: str) -> str | None:
        users = self._memory.tables.users.values()
        return next((each.id for each in users if _entry(each.oauth, provider, "sub") == subject), None)

    async def find_external_id_owner(self, provider: str, external_id: str) -> str | None:
        users = self._memory.tables.users.values()
        found = (each.id for each in users if _entry(each.scim, provider, "external_id") == external_id)
        return next(found, None)

    async def put_tokens(self, user_id: str, provider: str, tokens: ProviderTokens) -> None:
        async with self._memory.transaction():
            if provider not in {each.provider for each in await self.list(user_id)}:
                return
            known = await self.find_tokens(user_id, provider)
            newest = tokens if tokens.access_token else known
            self._memory.tables.tokens[user_id, provider] = ProviderTokens(
                tokens.id_token or known.id_token,
                tokens.refresh_token or known.refresh_token,
                newest.access_token,
                newest.expires_at,
            )

    async def find_tokens(self, user_id: str, provider: str) -> ProviderTokens:
        return self._memory.tables.tokens.get((user_id, provider), ProviderTokens())

    async def use_once(self, digest: str, expires_at: int) -> bool:
        async with self._memory.transaction():
            if digest in self._memory.tables.used:
                return False
            self._memory.tables.used[digest] = expires_at
            return True

    async def prune(self, before: int) -> int:
        async with self._memory.transaction():
            old = [digest for digest, at in self._memory.tables.used.items() if at < before]
            for digest in old:
                del self._memory.tables.used[digest]
            return len(old)


def _entry(providers: Mapping[str, Any] | None, provider: str, member: str) -> Any:
    return object_or_empty(object_or_empty(providers).get(provider)).get(member)
