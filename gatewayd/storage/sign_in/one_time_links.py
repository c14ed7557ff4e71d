"""Store of links that work once."""

from collections.abc import Sequence

from gatewayd.accounts.links.records import LinkKind, OneTimeLink
from gatewayd.accounts.records import Role
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.accounts import OneTimeLinkRow


class TortoiseOneTimeLinks:
    """Implements `accounts.links.interfaces.OneTimeLinkStore`."""

    async def add(self, link: OneTimeLink) -> None:
        """Insert a link."""
        row = OneTimeLinkRow(
            id=link.id,
            digest=link.digest,
            kind=link.kind.value,
            email=link.email,
            user_id=link.user_id,
            role=link.role.value,
            group_ids=encode(list(link.group_ids), "group_ids"),
            created_by=link.created_by,
            created_at=link.created_at,
            expires_at=link.expires_at,
        )
        async with write_transaction("add the link"):
            await row.save(force_create=True)

    async def find(self, link_id: str) -> OneTimeLink | None:
        """Return the link with this id."""
        if not fits_columns(OneTimeLinkRow, id=link_id):
            return None
        with translate_errors("read a link"):
            row = await OneTimeLinkRow.get_or_none(id=link_id)
        return None if row is None else _record_of(row)

    async def find_by_digest(self, digest: str) -> OneTimeLink | None:
        """Return the link with this digest."""
        if not fits_columns(OneTimeLinkRow, digest=digest):
            return None
        with translate_errors("read a link"):
            row = await OneTimeLinkRow.get_or_none(digest=digest)
        return None if row is None else _record_of(row)

    async def list(self, kind: LinkKind, *, after: int) -> Sequence[OneTimeLink]:
        """Return the links of a kind that expire later than `after`, oldest first."""
        with translate_errors("list links"):
            wanted = OneTimeLinkRow.filter(kind=kind.value, expires_at__gt=after)
            return [_record_of(row) for row in await wanted.order_by("created_at", "id")]

    async def remove(self, link_id: str) -> bool:
        """Delete a link; of several concurrent calls one returns True."""
        if not fits_columns(OneTimeLinkRow, id=link_id):
            return False
        async with write_transaction("remove the link"):
            return await OneTimeLinkRow.filter(id=link_id).delete() > 0

    async def remove_of_user(self, user_id: str) -> int:
        """Delete the sign-in links of an account; return how many."""
        async with write_transaction("remove links"):
            return await OneTimeLinkRow.filter(user_id=user_id, kind=LinkKind.SIGN_IN.value).delete()

    async def prune(self, before: int) -> int:
        """Delete the links that expired before a time; return how many."""
        async with write_transaction("delete expired links"):
            return await OneTimeLinkRow.filter(expires_at__lt=before).delete()


def _record_of(row: OneTimeLinkRow) -> OneTimeLink:
    return OneTimeLink(
        id=row.id,
        digest=row.digest,
        kind=LinkKind(row.kind),
        created_by=row.created_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
        email=row.email,
        user_id=row.user_id,
        role=Role(row.role),
        group_ids=tuple(decode(row.group_ids, f"the groups of link {row.id}")),
    )
