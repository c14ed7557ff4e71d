"""The store of SCIM tokens in memory."""

from collections.abc import Sequence
from dataclasses import replace

from gatewayd.scim.records import StoredScimToken
from tests.fakes.accounts.memory_stores import Memory


class MemoryScimTokens:
    """Implements `scim.interfaces.ScimTokenStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def list(self) -> Sequence[StoredScimToken]:
        async with self._memory.transaction():
            return [*self._memory.tables.scim_tokens.values()][::-1]

    async def add(self, digest: str, at: int) -> None:
        async with self._memory.transaction():
            assert digest not in self._memory.tables.scim_tokens
            self._memory.tables.scim_tokens[digest] = StoredScimToken(digest, at)

    async def retire(self, digest: str, at: int) -> None:
        async with self._memory.transaction():
            tokens = self._memory.tables.scim_tokens
            tokens[digest] = replace(tokens[digest], retired_at=at)
