"""Store of API keys, and of revoked session tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from gatewayd.accounts.records import ApiKey, StoredSession
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.transactions import placeholder, write_transaction
from gatewayd.storage.tables.accounts import ApiKeyRow, RevocationRow
from gatewayd.text import casefold_nfc


class TortoiseKeys:
    """Implements `accounts.interfaces.KeyStore`."""

    async def add(self, key: ApiKey) -> None:
        """Insert a key; conflict when the user has one of this name (case-insensitive)."""
        async with write_transaction("add the key"):
            await ApiKeyRow(**asdict(key), name_key=casefold_nfc(key.name)).save(force_create=True)

    async def find(self, key_id: str) -> ApiKey | None:
        """Return the key with this id."""
        if not fits_columns(ApiKeyRow, id=key_id):
            return None
        with translate_errors("read a key"):
            row = await ApiKeyRow.get_or_none(id=key_id)
        return None if row is None else _record_of(row)

    async def find_by_digest(self, digest: str) -> ApiKey | None:
        """Return the key with this SHA-256 digest."""
        if not fits_columns(ApiKeyRow, digest=digest):
            return None
        with translate_errors("read a key"):
            row = await ApiKeyRow.get_or_none(digest=digest)
        return None if row is None else _record_of(row)

    async def list(self, *, user_id: str | None = None) -> Sequence[ApiKey]:
        """Return the keys of one user, or all, oldest first."""
        if user_id is not None and not fits_columns(ApiKeyRow, user_id=user_id):
            return []
        wanted = ApiKeyRow.all() if user_id is None else ApiKeyRow.filter(user_id=user_id)
        with translate_errors("list keys"):
            rows = await wanted.order_by("created_at", "id")
        return [_record_of(row) for row in rows]

    async def remove(self, key_id: str) -> bool:
        """Delete a key."""
        if not fits_columns(ApiKeyRow, id=key_id):
            return False
        async with write_transaction("remove the key"):
            return await ApiKeyRow.filter(id=key_id).delete() > 0

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_used_at for many keys in one transaction, never backwards."""
        # The same order everywhere prevents a deadlock between processes.
        rows = [(at, key_id) for key_id, at in sorted(seen.items()) if fits_columns(ApiKeyRow, id=key_id)]
        async with write_transaction("write last-used times") as client:
            one, two = placeholder(client, 1), placeholder(client, 2)
            await client.execute_many(
                f"UPDATE api_keys SET last_used_at = {one} WHERE id = {two}"  # noqa: S608 - placeholders only
                f" AND (last_used_at IS NULL OR last_used_at < {one})",
                rows,
            )


class TortoiseRevocations:
    """Implements `accounts.interfaces.RevocationStore`."""

    async def add(self, jti: str, user_id: str, expires_at: int) -> None:
        """Store a token id as revoked, unless it is."""
        row = RevocationRow(jti=jti, user_id=user_id, expires_at=expires_at)
        async with write_transaction("revoke the session"):
            await RevocationRow.bulk_create([row], ignore_conflicts=True)

    async def add_all(self, sessions: Sequence[StoredSession]) -> None:
        """Store the token ids of sessions as revoked, unless they are."""
        rows = [
            RevocationRow(jti=session.id, user_id=session.user_id, expires_at=session.expires_at)
            for session in sessions
        ]
        async with write_transaction("revoke sessions"):
            await RevocationRow.bulk_create(rows, ignore_conflicts=True)

    async def contains(self, jti: str) -> bool:
        """Return whether a token id is revoked."""
        if not fits_columns(RevocationRow, jti=jti):
            return False
        with translate_errors("read a session"):
            return await RevocationRow.exists(jti=jti)

    async def prune(self, before: int) -> int:
        """Delete tokens that expired before a time; return the number of deleted ones."""
        async with write_transaction("delete revoked sessions"):
            return await RevocationRow.filter(expires_at__lt=before).delete()


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
