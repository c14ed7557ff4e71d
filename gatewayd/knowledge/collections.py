"""The collection service: create, find, change, share and remove collections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.permissions import require
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import clean, clean_long, clean_object, is_plain
from gatewayd.catalog.access_grants import READ, WRITE, allowed_grants
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError, not_found, shorten
from gatewayd.knowledge.access import CollectionAccess
from gatewayd.knowledge.index_updates import IndexNotifier
from gatewayd.knowledge.interfaces import CollectionStore
from gatewayd.knowledge.records import Collection
from gatewayd.transactions import Transactor

MAX_DESCRIPTION_CHARACTERS: Final = 10_000
MAX_ID_CHARACTERS: Final = 64
MAX_LISTED_IDS: Final = 10
CHANGE_LOCK: Final = "collections"


@dataclass(frozen=True, slots=True)
class NewCollection:
    """The initial fields of a new collection."""

    name: str
    description: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    grants: Sequence[Grant] = ()


@dataclass(frozen=True, slots=True)
class CollectionChange:
    """Changes of a collection; None leaves a field unchanged."""

    name: str | None = None
    description: str | None = None
    meta: Mapping[str, Any] | None = None
    grants: Sequence[Grant] | None = None


class CollectionService:
    """The collection service.

    Errors: not_found for a collection that the actor may not read, forbidden for one that they may read but
    not change, invalid_request naming the field.
    """

    def __init__(
        self,
        store: CollectionStore,
        access: CollectionAccess,
        transactor: Transactor,
        notifier: IndexNotifier,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._store = store
        self._access = access
        self._transactor = transactor
        self._notifier = notifier
        self._clock = clock

    async def create(self, actor: Actor, new: NewCollection, *, owner_id: str | None = None) -> Collection:
        """Add an empty collection owned by the actor; needs the permission workspace.knowledge.

        An administrator may name another account as the owner (`owner_id`).
        """
        if owner_id is not None and not actor.is_admin:
            raise GatewayError(ErrorKind.FORBIDDEN, "cannot make a collection for another account")
        if not actor.is_admin:
            require(actor, "workspace", "knowledge")
        now = self._clock()
        collection = Collection(
            id=ids.new_id(),
            user_id=actor.user_id if owner_id is None else owner_id,
            name=clean(new.name, "name"),
            description=_description(new.description),
            meta=clean_object(new.meta, "meta"),
            grants=_grants(actor, new.grants),
            updated_at=now,
            created_at=now,
        )
        await self._store.add(collection)
        return collection

    async def get(self, actor: Actor, collection_id: str) -> Collection:
        """Return a collection that the actor may read."""
        collection = await self._find(collection_id)
        if collection is None or not self._access.allows(actor, collection, READ):
            raise not_found("collection", collection_id)
        return collection

    async def get_writable(self, actor: Actor, collection_id: str) -> Collection:
        """Return a collection that the actor may change."""
        collection = await self.get(actor, collection_id)
        if not self.may_write(actor, collection):
            raise GatewayError(
                ErrorKind.FORBIDDEN, f"cannot change collection {collection_id!r}: no write access"
            )
        return collection

    async def resolve(self, actor: Actor, ref: str) -> Collection:
        """Return the readable collection with this id, or else the one with exactly this name.

        Raises conflict, naming the ids, when several collections have the name.
        """
        found = await self._find(ref)
        if found is not None and self._access.allows(actor, found, READ):
            return found
        named = await self._store.find_by_name(ref.strip()) if is_plain(ref) else ()
        readable = [each for each in named if self._access.allows(actor, each, READ)]
        if not readable:
            raise not_found("collection", ref)
        if len(readable) > 1:
            listed = ", ".join(each.id for each in readable[:MAX_LISTED_IDS])
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot tell which collection {shorten(ref)!r} is: several have this name ({listed})",
            )
        return readable[0]

    async def holding(self, file_ids: Sequence[str]) -> Mapping[str, Sequence[Collection]]:
        """Return the collections that contain each of the files, by file id, without an access check."""
        return await self._store.holding(file_ids)

    async def count_files(self, collection: Collection) -> int:
        """Return the number of completed files of a collection."""
        return await self._store.count_files(collection.id)

    async def has_files(self, collection: Collection) -> bool:
        """Return whether a collection has a completed file."""
        return await self._store.has_files(collection.id)

    async def list(
        self,
        actor: Actor,
        *,
        orphaned: bool = False,
        query: str = "",
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[Collection], int]:
        """Return one page of the collections that the actor may read, and the total count.

        The collections have a `file_count` and are sorted by last change, newest first. `orphaned` selects
        the collections of removed accounts.
        """
        if not is_plain(query):
            return [], 0
        reader = self._access.reader(actor)
        return await self._store.list(
            reader=reader, orphaned=orphaned, query=query.strip(), offset=offset, limit=limit
        )

    def may_write(self, actor: Actor, collection: Collection) -> bool:
        """Return whether an actor may change a collection."""
        return self._access.allows(actor, collection, WRITE)

    async def change(self, actor: Actor, collection_id: str, change: CollectionChange) -> Collection:
        """Change a collection and return it."""
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self.get_writable(actor, collection_id)
            collection = _changed(actor, before, change)
            if collection == before:
                return before
            return await self._put(collection)

    async def give(self, actor: Actor, collection_id: str, owner_id: str) -> Collection:
        """Make another account, which exists, the owner of a collection; for administrators only."""
        if not actor.is_admin:
            raise GatewayError(ErrorKind.FORBIDDEN, "cannot give collections to another account")
        async with self._transactor.exclusive(CHANGE_LOCK):
            before = await self.get_writable(actor, collection_id)
            if before.user_id == owner_id:
                return before
            return await self._put(replace(before, user_id=owner_id))

    async def set_grants(self, actor: Actor, collection_id: str, grants: Sequence[Grant]) -> Collection:
        """Replace the access list and return the collection; grants that the actor may not add are
        dropped."""
        return await self.change(actor, collection_id, CollectionChange(grants=grants))

    async def touch(self, collection: Collection) -> Collection:
        """Set `updated_at` after a change of a collection's files, and return the current record."""
        async with self._transactor.exclusive(CHANGE_LOCK):
            current = await self._find(collection.id)
            if current is None:
                raise not_found("collection", collection.id)
            return await self._put(current)

    async def remove(self, actor: Actor, collection_id: str) -> Collection:
        """Delete a collection but not its files; return the deleted record."""
        collection = await self.get_writable(actor, collection_id)
        if not await self._store.remove(collection_id):
            raise not_found("collection", collection_id)
        await self._notifier.gone(collection_id)
        return collection

    async def remove_any(self, collection_id: str) -> None:
        """Delete a collection but not its files, without an access check; nothing if it does not exist."""
        if await self._store.remove(collection_id):
            await self._notifier.gone(collection_id)

    async def _find(self, collection_id: str) -> Collection | None:
        if not collection_id or len(collection_id) > MAX_ID_CHARACTERS or not is_plain(collection_id):
            return None
        return await self._store.find(collection_id)

    async def _put(self, collection: Collection) -> Collection:
        collection = replace(collection, updated_at=self._clock())
        if not await self._store.change(collection):
            raise not_found("collection", collection.id)
        return collection


def _changed(actor: Actor, before: Collection, change: CollectionChange) -> Collection:
    values: dict[str, Any] = {}
    if change.name is not None:
        values["name"] = clean(change.name, "name")
    if change.description is not None:
        values["description"] = _description(change.description)
    if change.meta is not None:
        values["meta"] = clean_object(change.meta, "meta")
    if change.grants is not None:
        values["grants"] = _grants(actor, change.grants, before.grants)
    return replace(before, **values)


def _description(text: str) -> str:
    return clean_long(text, "description", longest=MAX_DESCRIPTION_CHARACTERS)


def _grants(actor: Actor, wanted: Sequence[Grant], held: Sequence[Grant] = ()) -> tuple[Grant, ...]:
    return allowed_grants(actor, wanted, held, public="public_knowledge")
