"""Who may read and change which collection, and the files in it."""

from collections.abc import Sequence

from gatewayd.accounts.permissions import is_exempt
from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import WRITE, covers
from gatewayd.ingest.records import File
from gatewayd.knowledge.interfaces import CollectionStore
from gatewayd.knowledge.records import Collection


class CollectionAccess:
    """Decides from ownership and access lists (6.6); an `ingest.interfaces.FileGrants`.

    With `bypass_admins` administrators may everything. So may whoever holds the control socket.
    """

    def __init__(self, collections: CollectionStore, *, bypass_admins: bool = True) -> None:
        self._collections = collections
        self._bypass_admins = bypass_admins

    def is_exempt(self, actor: Actor) -> bool:
        """Tell whether access lists do not bind an actor."""
        return is_exempt(actor, bypass_admins=self._bypass_admins)

    def allows(self, actor: Actor, collection: Collection, permission: str) -> bool:
        """Tell whether an actor may read or write (`permission`) a collection."""
        if self.is_exempt(actor) or collection.user_id == actor.user_id:
            return True
        return any(covers(grant, actor, permission) for grant in collection.grants)

    def reader(self, actor: Actor) -> tuple[str, Sequence[str]] | None:
        """Return whose collections `CollectionStore.list` may show, None for everybody's."""
        return None if self.is_exempt(actor) else (actor.user_id, actor.group_ids)

    async def may(self, actor: Actor, file: File, permission: str) -> bool:
        """Tell whether an actor may read or write a file, as its owner or through a collection.

        A collection gives the right to write its files only when one account owns both.
        """
        if self.is_exempt(actor) or file.user_id == actor.user_id:
            return True
        holding = await self._collections.holding([file.id])
        return any(
            self.allows(actor, collection, permission)
            for collection in holding.get(file.id, ())
            if permission != WRITE or collection.user_id == file.user_id
        )
