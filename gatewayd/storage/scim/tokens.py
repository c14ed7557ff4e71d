"""Store of the tokens of SCIM clients."""

from collections.abc import Sequence

from gatewayd.scim.records import StoredScimToken
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.accounts import ScimTokenRow


class TortoiseScimTokens:
    """Implements `scim.interfaces.ScimTokenStore`."""

    async def list(self) -> Sequence[StoredScimToken]:
        """Return all tokens, the newest first."""
        with translate_errors("list the SCIM tokens"):
            rows = await ScimTokenRow.all().order_by("-id")
        return [StoredScimToken(row.digest, row.created_at, row.retired_at) for row in rows]

    async def add(self, digest: str, at: int) -> None:
        """Insert a token, which is the newest."""
        async with write_transaction("add the SCIM token"):
            await ScimTokenRow(digest=digest, created_at=at).save(force_create=True)

    async def retire(self, digest: str, at: int) -> None:
        """Note that a token is not valid any more."""
        async with write_transaction("retire the SCIM token"):
            await ScimTokenRow.filter(digest=digest).update(retired_at=at)
