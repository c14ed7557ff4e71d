"""Session tokens that were ended before they expired."""

from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.accounts import (
    RevocationRow,
)


class TortoiseRevocations:
    """Implements `accounts.interfaces.RevocationStore`."""

    async def add(self, jti: str, user_id: str, expires_at: int) -> None:
        """Remember a token id as revoked; doing it twice is no error."""
        row = RevocationRow(jti=jti, user_id=user_id, expires_at=expires_at)
        async with write_transaction("revoke the session"):
            await RevocationRow.bulk_create([row], ignore_conflicts=True)

    async def contains(self, jti: str) -> bool:
        """Tell whether the token was revoked."""
        if not fits_columns(RevocationRow, jti=jti):
            return False
        with translate_errors("read a session"):
            return await RevocationRow.exists(jti=jti)

    async def prune(self, before: int) -> int:
        """Forget tokens that expired before this time; return how many."""
        async with write_transaction("forget revoked sessions"):
            return await RevocationRow.filter(expires_at__lt=before).delete()
