"""Access control for collections and the files in them."""

from collections.abc import Sequence

from gatewayd.accounts.permissions import is_exempt
from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import WRITE, covers
from gatewayd.ingest.records import File
from gatewayd.knowledge.interfaces import CollectionStore
from gatewayd.knowledge.records import Collection


class CollectionAccess:
    """Decides from ownership and access lists; implements `ingest.interfaces.FileGrants`.

    With `bypass_admins` administrators have every permission. Clients of the control socket always have.
    """

    def __init__(self, collections: CollectionStore, *, bypass_admins: bool = True) -> None:
        self._collections = collections
        self._bypass_admins = bypass_admins

    def is_exempt(self, actor: Actor) -> bool:
        """Return whether an actor is exempt from access lists."""
        return is_exempt(actor, bypass_admins=self._bypass_admins)

    def allows(self, actor: Actor, collection: Collection, permission: str) -> bool:
        """Return whether an actor has a permission (read or write) on a collection."""
        if self.is_exempt(actor) or collection.user_id == actor.user_id:
            return True
        return any(covers(grant, actor, permission) for grant in collection.grants)

    def reader(self, actor: Actor) -> tuple[str, Sequence[str]] | None:
        """Return the `reader` of `CollectionStore.list`: (user id, group ids), None for no restriction."""
        return None if self.is_exempt(actor) else (actor.user_id, actor.group_ids)

    async def may(self, actor: Actor, file: File, permission: str) -> bool:
        """Return whether an actor has a permission on a file, as its owner or through a collection.

        A collection grants write access to a file only when one account owns both.
        """
        if self.is_exempt(actor) or file.user_id == actor.user_id:
            return True
        holding = await self._collections.holding([file.id])
        return any(
            self.allows(actor, collection, permission)
            for collection in holding.get(file.id, ())
            if permission != WRITE or collection.user_id == file.user_id
        )
