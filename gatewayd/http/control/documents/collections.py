"""Routes of `/v1/collections`: collections and their access lists."""

from collections.abc import Sequence
from dataclasses import replace

from aiohttp import web

from gatewayctl.wire import collections as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayctl.wire.files import Gift
from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import READ, WRITE
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import note_change, note_grants
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.documents.serializers import DocumentViews
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, audit, control_reply, find_page, is_set
from gatewayd.http.routes import Route
from gatewayd.knowledge.collections import CollectionChange, CollectionService, NewCollection
from gatewayd.knowledge.records import Collection

NAMING_LOCK = "collection names"
"""Name of the lock around the creation of a collection, so that no two get the same name at once."""


class CollectionRoutes:
    """Routes of collections on the control socket."""

    def __init__(
        self,
        collections: CollectionService,
        views: DocumentViews,
        principals: GranteeFinder,
        viewers: ControlActors,
        writes: WriteTransactions,
    ) -> None:
        self._collections = collections
        self._views = views
        self._principals = principals
        self._viewers = viewers
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_COLLECTIONS, self.list),
            serve(routes.CREATE_COLLECTION, self.create),
            serve(routes.ENSURE_COLLECTION, self.ensure),
            serve(routes.GET_COLLECTION, self.show),
            serve(routes.CHANGE_COLLECTION, self.change),
            serve(routes.REMOVE_COLLECTION, self.remove),
            serve(routes.GIVE_COLLECTION, self.give),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `CollectionList`, a page of at most 1000.

        `?query=` is part of a name or description, `?orphaned=` limits it to those of removed users.
        """
        offset, limit = find_page(request)
        found, total = await self._collections.list(
            self._operator(request),
            orphaned=is_set(request, "orphaned"),
            query=request.query.get("query", ""),
            offset=offset,
            limit=limit,
        )
        return control_reply(
            wire.CollectionList(collections=await self._views.collections(found), total=total)
        )

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Collection` for an id or name; conflict when several have the name."""
        return control_reply(await self._views.collection(await self._resolve(request)))

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take `NewCollection`, answer `CollectionWritten`."""
        wanted = await read_model(request, wire.NewCollection)
        action, actor = "collection create", self._operator(request)
        async with self._writes.block(request, action, wanted.name, alone=NAMING_LOCK) as dry_run:
            made = await self._create(actor, wanted)
            note_grants(request, made.name, made.grants, id=made.id)
        return await self._written(made, Outcome.CREATED, dry_run=dry_run)

    async def ensure(self, request: web.Request) -> web.StreamResponse:
        """Take `NewCollection`, answer `CollectionWritten`: created, or unchanged when the name exists."""
        wanted = await read_model(request, wire.NewCollection)
        action, actor = "collection ensure", self._operator(request)
        async with self._writes.block(request, action, wanted.name, alone=NAMING_LOCK) as dry_run:
            found, outcome = await self._find(actor, wanted.name), Outcome.UNCHANGED
            if found is None:
                found, outcome = await self._create(actor, wanted), Outcome.CREATED
            note_grants(request, found.name, found.grants, id=found.id)
        return await self._written(found, outcome, dry_run=dry_run)

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Take `CollectionChange`, answer `CollectionWritten`: changed or unchanged."""
        wanted = await read_model(request, wire.CollectionChange)
        actor = self._operator(request)
        async with self._writes.block(request, "collection change", request.match_info["ref"]) as dry_run:
            before = await self._resolve(request)
            change = CollectionChange(
                name=wanted.name,
                description=wanted.description,
                grants=await self._changed_grants(before, wanted),
            )
            collection = await self._collections.change(actor, before.id, change)
            values = {"id": collection.id, "description": wanted.description}
            note_grants(request, collection.name, collection.grants, before.grants, **values)
        outcome = Outcome.UNCHANGED if collection == before else Outcome.CHANGED
        return await self._written(collection, outcome, dry_run=dry_run)

    async def give(self, request: web.Request) -> web.StreamResponse:
        """Take `Gift`, answer `CollectionWritten`: changed, or unchanged when the user owns it already."""
        wanted = await read_model(request, Gift)
        actor = self._operator(request)
        async with self._writes.block(request, "collection give", request.match_info["ref"]) as dry_run:
            owner = await self._principals.owner(wanted.user)
            before = await self._resolve(request)
            collection = await self._collections.give(actor, before.id, owner.id)
            note_change(request, collection.name, {"id": collection.id, "user": owner.email})
        outcome = Outcome.UNCHANGED if collection == before else Outcome.CHANGED
        return await self._written(collection, outcome, dry_run=dry_run)

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `CollectionWritten` with the collection before its removal; its files stay."""
        dry_run = is_set(request, "dry_run")
        collection = await self._resolve(request)
        count = await self._collections.count_files(collection)
        if not dry_run:
            # Not in a transaction block: the index is updated after the removal is committed.
            await self._collections.remove(self._operator(request), collection.id)
            note_change(request, collection.name, {"id": collection.id})
            audit(request, "collection remove", collection.id)
        counted = replace(collection, file_count=count)
        return await self._written(counted, Outcome.REMOVED, dry_run=dry_run)

    async def _written(self, collection: Collection, outcome: Outcome, *, dry_run: bool) -> web.Response:
        # Outside of the block: counting the files of a large collection takes long.
        row = await self._views.collection(collection)
        return control_reply(wire.CollectionWritten(**row.model_dump(), outcome=outcome, dry_run=dry_run))

    async def _resolve(self, request: web.Request) -> Collection:
        return await self._collections.resolve(self._operator(request), request.match_info["ref"])

    async def _find(self, actor: Actor, name: str) -> Collection | None:
        try:
            return await self._collections.resolve(actor, name)
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    async def _create(self, actor: Actor, wanted: wire.NewCollection) -> Collection:
        owner = await self._principals.owner(wanted.user)
        grants = (
            *await self._principals.grants(wanted.readers, READ),
            *await self._principals.grants(wanted.writers, WRITE),
        )
        new = NewCollection(wanted.name, wanted.description, grants=grants)
        return await self._collections.create(actor, new, owner_id=owner.id)

    async def _changed_grants(
        self, before: Collection, wanted: wire.CollectionChange
    ) -> tuple[Grant, ...] | None:
        """Return the access list with its readers, its writers or both replaced; None without a change."""
        if wanted.readers is None and wanted.writers is None:
            return None
        sides = []
        for permission, refs in ((READ, wanted.readers), (WRITE, wanted.writers)):
            held = tuple(grant for grant in before.grants if grant.permission == permission)
            sides.append(held if refs is None else await self._principals.grants(refs, permission))
        after = (*sides[0], *sides[1])
        return None if set(after) == set(before.grants) else after

    def _operator(self, request: web.Request) -> Actor:
        return self._viewers.operator(request[PEER])
