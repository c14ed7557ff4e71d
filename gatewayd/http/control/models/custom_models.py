"""Routes of `/v1/models` for custom models: a base model with prompt, parameters, documents and plugins."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import models as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.users import Users
from gatewayd.catalog.model_names import find_listed_name
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts.access_lists import AccessLists
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.models import serializers as models_serializers
from gatewayd.http.control.models.serializers import ModelViews
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply
from gatewayd.http.routes import Route
from gatewayd.knowledge.collections import CollectionService
from gatewayd.plugins.records import PluginFamily, PluginKind
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.servers.records import SERVER


class CustomModelParts:
    """Resolver of the parts of a custom model; not_found names a missing part."""

    def __init__(
        self, collections: CollectionService, registry: PluginManager, viewers: ControlActors
    ) -> None:
        self._collections = collections
        self._registry = registry
        self._viewers = viewers

    async def knowledge(self, request: web.Request, refs: Sequence[str]) -> list[dict[str, str]]:
        """Return references to collections."""
        actor = self._viewers.operator(request[PEER])
        found = [await self._collections.resolve(actor, ref) for ref in dict.fromkeys(refs)]
        return [{"type": "collection", "id": one.id, "name": one.name} for one in found]

    def tools(self, refs: Sequence[str]) -> list[str]:
        """Return the ids of tools; ids of tool servers are not checked."""
        return [ref if ref.startswith(SERVER) else self._known(PluginKind.TOOL, ref) for ref in refs]

    def functions(self, kind: PluginKind, refs: Sequence[str]) -> list[str]:
        """Return the ids of functions of a kind; an action may have the name of a part after a dot."""
        return [self._known(kind, ref) for ref in refs]

    def _known(self, kind: PluginKind, ref: str) -> str:
        family = PluginFamily.TOOL if kind is PluginKind.TOOL else PluginFamily.FUNCTION
        plugin_id, dot, part = ref.partition(".")
        plugin = self._registry.find(family, plugin_id.lower())
        if plugin is None or plugin.kind is not kind:
            raise not_found(kind.value, ref)
        return f"{plugin.id}{dot}{part}"


class CustomModelRoutes:
    """Routes of custom models on the control socket."""

    def __init__(
        self,
        catalog: Catalog,
        lists: AccessLists,
        parts: CustomModelParts,
        users: Users,
        writes: WriteTransactions,
    ) -> None:
        self._catalog = catalog
        self._views = ModelViews(catalog, lists)
        self._parts = parts
        self._users = users
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.CREATE_MODEL, self.create),
            serve(routes.REMOVE_MODEL, self.remove),
        ]

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take `NewModel`, answer `ModelWritten`; conflict for an id in use."""
        wanted = await read_model(request, wire.NewModel)
        meta = await self._meta(request, wanted)
        async with (
            self._writes.block(request, "model create", wanted.id) as dry_run,
            self._catalog.changing(),
        ):
            await self._check_ids(wanted)
            record = await self._catalog.put_record(await self._record(wanted, meta))
            note_change(request, record.id, {"name": record.name, "base_model_id": record.base_model_id})
        shown = await self._views.show(await self._listed(record.id), record)
        return control_reply(
            wire.ModelWritten(**shown.model_dump(), outcome=Outcome.CREATED, dry_run=dry_run)
        )

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Remove the record of the model `?id=`, answer `ModelWritten`."""
        model_id = request.query.get("id", "")
        async with (
            self._writes.block(request, "model remove", model_id) as dry_run,
            self._catalog.changing(),
        ):
            model, record = await self._views.find(model_id)
            shown = await self._views.show(model, record)
            await self._catalog.remove_record(model_id)
        return control_reply(
            wire.ModelWritten(**shown.model_dump(), outcome=Outcome.REMOVED, dry_run=dry_run)
        )

    async def _check_ids(self, wanted: wire.NewModel) -> None:
        listed = {model.id for model in await self._catalog.list_all()}
        kept = {record.id for record in self._catalog.list_records()}
        if wanted.id in listed or wanted.id in kept:
            raise GatewayError(
                ErrorKind.CONFLICT, f"cannot create model {wanted.id!r}: the id is taken", param="id"
            )
        if find_listed_name(wanted.base, listed) not in listed:
            raise not_found("model", wanted.base)

    async def _record(self, wanted: wire.NewModel, meta: dict[str, object]) -> ModelRecord:
        primary = await self._users.find_primary()
        system = {} if wanted.system is None else {models_serializers.SYSTEM: wanted.system}
        return ModelRecord(
            id=wanted.id,
            user_id="" if primary is None else primary.id,
            name=wanted.name or wanted.id,
            base_model_id=wanted.base,
            params={**wanted.params, **system},
            meta=meta,
        )

    async def _meta(self, request: web.Request, wanted: wire.NewModel) -> dict[str, object]:
        parts: dict[str, object] = {
            models_serializers.KNOWLEDGE: await self._parts.knowledge(request, wanted.knowledge),
            models_serializers.TOOLS: self._parts.tools(wanted.tools),
            models_serializers.FILTERS: self._parts.functions(PluginKind.FILTER, wanted.filters),
            models_serializers.ACTIONS: self._parts.functions(PluginKind.ACTION, wanted.actions),
        }
        return {name: value for name, value in parts.items() if value}

    async def _listed(self, model_id: str) -> Model | None:
        models = await self._catalog.list_all()
        return next((model for model in models if model.id == model_id), None)
