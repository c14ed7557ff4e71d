"""`/v1/models`: which models there are, and who may use them."""

from collections.abc import Sequence
from dataclasses import replace

from aiohttp import web

from gatewayctl.wire import models as wire
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.users import Users
from gatewayd.catalog.records import EVERYBODY, Grant, Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.errors import invalid, not_found
from gatewayd.http.body import read_model
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.viewers import Viewers
from gatewayd.http.control.writes import Writes, answer, is_set
from gatewayd.http.routes import Access, Dialect, Route


class ModelRoutes:
    """Models and their access lists on the control socket."""

    def __init__(
        self, catalog: Catalog, viewers: Viewers, users: Users, groups: Groups, writes: Writes
    ) -> None:
        self._catalog = catalog
        self._viewers = viewers
        self._users = users
        self._groups = groups
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        access, dialect = Access.CONTROL, Dialect.CONTROL
        root = "/v1/models"
        return [
            Route("GET", root, self.list, access, "List models", dialect),
            Route("GET", f"{root}/one", self.show, access, "Show a model", dialect),
            Route("POST", f"{root}/grant", self.grant, access, "Give a right on a model", dialect),
            Route("POST", f"{root}/revoke", self.revoke, access, "Take a right on a model", dialect),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `ModelList`; `?user=` is for what that user may use, `?refresh=true` asks the sources."""
        ref = request.query.get("user")
        viewer = await self._viewers.choose(ref, request[PEER])
        found = await self._catalog.list(viewer, refresh=is_set(request, "refresh"))
        if ref is None:
            found = await self._catalog.list_all()
        shown = [await self._render(model, self._catalog.find_record(model.id)) for model in found]
        if ref is None:
            listed = {model.id for model in found}
            absent = [record for record in self._catalog.list_records() if record.id not in listed]
            shown += [await self._render(None, record) for record in absent]
        return answer(wire.ModelList(models=shown))

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Model` for `?id=`."""
        model_id = request.query.get("id", "")
        model, record = await self._find(model_id)
        return answer(await self._render(model, record))

    async def grant(self, request: web.Request) -> web.StreamResponse:
        """Take `AccessChange`, answer `ModelWritten`."""
        wanted = await read_model(request, wire.AccessChange)
        named = await self._grants(wanted)
        return await self._change(request, "model grant", wanted.model, add=named, drop=())

    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Take `AccessChange`, answer `ModelWritten`."""
        wanted = await read_model(request, wire.AccessChange)
        named = await self._grants(wanted)
        return await self._change(request, "model revoke-access", wanted.model, add=(), drop=named)

    async def _change(
        self, request: web.Request, action: str, model_id: str, *, add: Sequence[Grant], drop: Sequence[Grant]
    ) -> web.Response:
        async with self._catalog.changing, self._writes.block(request, action, model_id) as dry_run:
            model, record = await self._find(model_id)
            before = record.grants if record is not None else ()
            kept = tuple(grant for grant in before if grant not in drop)
            after = kept + tuple(grant for grant in add if grant not in kept)
            if after != before:
                record = await self._catalog.regrant(model_id, after, by=await self._owner())
        shown = await self._render(model, record)
        outcome = Outcome.UNCHANGED if after == before else Outcome.CHANGED
        return answer(wire.ModelWritten(**shown.model_dump(), outcome=outcome, dry_run=dry_run))

    async def _find(self, model_id: str) -> tuple[Model | None, ModelRecord | None]:
        listed = {model.id: model for model in await self._catalog.list_all()}
        model, record = listed.get(model_id), self._catalog.find_record(model_id)
        if model is None and record is None:
            raise not_found("model", model_id)
        return model, record

    async def _owner(self) -> str:
        primary = await self._users.find_primary()
        return primary.id if primary is not None else ""

    async def _grants(self, wanted: wire.AccessChange) -> tuple[Grant, ...]:
        blank = Grant(principal_type="user", principal_id=EVERYBODY, permission=wanted.permission)
        named = [replace(blank, principal_id=(await self._users.resolve(ref)).id) for ref in wanted.users]
        for ref in wanted.groups:
            group = await self._groups.resolve(ref)
            named.append(replace(blank, principal_type="group", principal_id=group.id))
        if wanted.everyone:
            named.append(blank)
        if not named:
            raise invalid("cannot change the access: nobody was named", param="users")
        return tuple(dict.fromkeys(named))

    async def _render(self, model: Model | None, record: ModelRecord | None) -> wire.Model:
        known = model if model is not None else record
        if known is None:
            raise ValueError("a model or a record is needed")
        grants = record.grants if record is not None else ()
        return wire.Model(
            id=known.id,
            name=record.name if record is not None else known.name,
            owned_by=model.owned_by if model is not None else "",
            source=model.source if model is not None else "",
            available=model is not None,
            recorded=record is not None,
            active=record is None or record.is_active,
            grants=[await self._render_grant(grant) for grant in grants],
        )

    async def _render_grant(self, grant: Grant) -> wire.Grant:
        return wire.Grant(
            principal_type=grant.principal_type,
            principal_id=grant.principal_id,
            principal=await self._name(grant),
            permission=grant.permission,
        )

    async def _name(self, grant: Grant) -> str:
        # Whoever is gone has the id for a name: the grant is harmless and can still be taken away.
        if grant.principal_type == "group":
            group = await self._groups.find(grant.principal_id)
            return grant.principal_id if group is None else group.name
        if grant.principal_id == EVERYBODY:
            return EVERYBODY
        user = await self._users.find(grant.principal_id)
        return grant.principal_id if user is None else user.email
