"""Routes of `/v1/models`: models and their access lists."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import models as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.users import Users
from gatewayd.catalog.model_names import find_listed_name
from gatewayd.catalog.records import Grant
from gatewayd.catalog.service import Catalog
from gatewayd.http.audit import note_change, note_grants
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts.access_lists import AccessLists, combine_grants
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.models.serializers import ModelViews
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, is_set
from gatewayd.http.routes import Route


class ControlModelRoutes:
    """Routes of models and their access lists on the control socket."""

    def __init__(
        self,
        catalog: Catalog,
        viewers: ControlActors,
        users: Users,
        groups: Groups,
        writes: WriteTransactions,
    ) -> None:
        self._catalog = catalog
        self._viewers = viewers
        self._users = users
        self._writes = writes
        self._lists = AccessLists(users, groups)
        self._views = ModelViews(catalog, self._lists)

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_MODELS, self.list),
            serve(routes.GET_MODEL, self.show),
            serve(routes.GRANT_MODEL, self.grant),
            serve(routes.REVOKE_MODEL, self.revoke),
            serve(routes.UPDATE_MODEL, self.update),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `ModelList`; `?user=` selects the models of that user, `?refresh=true` asks the sources
        again."""
        ref = request.query.get("user")
        viewer = await self._viewers.choose(ref, request[PEER])
        found = await self._catalog.list(viewer, refresh=is_set(request, "refresh"))
        if ref is None:
            found = await self._catalog.list_all()
        shown = [await self._views.show(model, self._catalog.find_record(model.id)) for model in found]
        if ref is None:
            listed = {model.id for model in found}
            absent = [
                record
                for record in self._catalog.list_records()
                if (record.id if record.base_model_id else find_listed_name(record.id, listed)) not in listed
            ]
            shown += [await self._views.show(None, record) for record in absent]
        problems = (item.problem for item in self._catalog.listings())
        return control_reply(
            wire.ModelList(models=shown, warnings=[problem for problem in problems if problem])
        )

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Model` for `?id=`."""
        model_id = request.query.get("id", "")
        model, record = await self._views.find(model_id)
        return control_reply(await self._views.show(model, record))

    async def grant(self, request: web.Request) -> web.StreamResponse:
        """Take `AccessChange`, answer `ModelWritten`."""
        wanted = await read_model(request, wire.AccessChange)
        named = await self._lists.read(wanted)
        return await self._change(request, "model grant", wanted.model, add=named, drop=())

    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Take `AccessChange`, answer `ModelWritten`."""
        wanted = await read_model(request, wire.AccessChange)
        named = await self._lists.read(wanted)
        return await self._change(request, "model revoke-access", wanted.model, add=(), drop=named)

    async def update(self, request: web.Request) -> web.StreamResponse:
        """Take `ModelChange`, answer `ModelWritten`."""
        wanted = await read_model(request, wire.ModelChange)
        async with (
            self._writes.block(request, "model update", wanted.id) as dry_run,
            self._catalog.changing(),
        ):
            model, record = await self._views.find(wanted.id)
            before = "" if record is None else record.family
            after = before if wanted.family is None else wanted.family
            if after != before:
                record = await self._catalog.name_family(wanted.id, after, by=await self._owner())
            note_change(request, wanted.id, {"family": after})
        shown = await self._views.show(model, record)
        outcome = Outcome.UNCHANGED if after == before else Outcome.CHANGED
        return control_reply(wire.ModelWritten(**shown.model_dump(), outcome=outcome, dry_run=dry_run))

    async def _change(
        self, request: web.Request, action: str, model_id: str, *, add: Sequence[Grant], drop: Sequence[Grant]
    ) -> web.Response:
        async with self._writes.block(request, action, model_id) as dry_run, self._catalog.changing():
            model, record = await self._views.find(model_id)
            before = record.grants if record is not None else ()
            after = combine_grants(before, add=add, drop=drop)
            if after != before:
                record = await self._catalog.regrant(model_id, after, by=await self._owner())
            note_grants(request, model_id, after)
        shown = await self._views.show(model, record)
        outcome = Outcome.UNCHANGED if after == before else Outcome.CHANGED
        return control_reply(wire.ModelWritten(**shown.model_dump(), outcome=outcome, dry_run=dry_run))

    async def _owner(self) -> str:
        primary = await self._users.find_primary()
        return primary.id if primary is not None else ""
