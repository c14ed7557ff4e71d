"""API keys by digest."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from tortoise.expressions import Q
from tortoise.transactions import in_transaction

from gatewayd.accounts.records import ApiKey
from gatewayd.storage.failures import translated
from gatewayd.storage.rows import ApiKeyRow
from gatewayd.storage.users import fold


class TortoiseKeys:
    """Implements `accounts.interfaces.KeyStore`."""

    async def add(self, key: ApiKey) -> None:
        """Insert a key; conflict when the user has one of this name (any case)."""
        async with translated(f"add API key {key.name!r}", "the user has a key of this name"):
            await ApiKeyRow(**asdict(key), name_key=fold(key.name)).save(force_create=True)

    async def find(self, key_id: str) -> ApiKey | None:
        """Return the key with this id."""
        async with translated("read an API key"):
            row = await ApiKeyRow.get_or_none(id=key_id)
        return None if row is None else _record_of(row)

    async def find_by_digest(self, digest: str) -> ApiKey | None:
        """Return the key with this SHA-256."""
        async with translated("read an API key"):
            row = await ApiKeyRow.get_or_none(digest=digest)
        return None if row is None else _record_of(row)

    async def list(self, *, user_id: str | None = None) -> Sequence[ApiKey]:
        """Return the keys of one user, or all, oldest first."""
        async with translated("list API keys"):
            rows = await (ApiKeyRow.all() if user_id is None else ApiKeyRow.filter(user_id=user_id)).order_by(
                "created_at", "id"
            )
        return [_record_of(row) for row in rows]

    async def remove(self, key_id: str) -> bool:
        """Delete a key."""
        async with translated("remove an API key"):
            return await ApiKeyRow.filter(id=key_id).delete() > 0

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_used_at for many keys in one transaction, never backwards."""
        async with translated("write last-used times"), in_transaction():
            for key_id, at in seen.items():
                older = Q(last_used_at__isnull=True) | Q(last_used_at__lt=at)
                await ApiKeyRow.filter(Q(id=key_id) & older).update(last_used_at=at)


def _record_of(row: ApiKeyRow) -> ApiKey:
    return ApiKey(
        id=row.id,
        user_id=str(row.user_id),  # type: ignore[attr-defined]
        name=row.name,
        digest=row.digest,
        prefix=row.prefix,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        created_at=row.created_at,
    )
