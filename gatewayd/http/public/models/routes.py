"""Routes of model lists and model records."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import web
from pydantic import BaseModel, Field

from gatewayd import json_encoder
from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import RULES, Grant, Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.dialects.providers.changes import check_changes
from gatewayd.errors import NO_HEADERS, not_found
from gatewayd.http import body
from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody
from gatewayd.http.context import actor
from gatewayd.http.origins import FETCH_SITE
from gatewayd.http.public.models import anthropic_lists
from gatewayd.http.public.models.kept_lists import KeptLists
from gatewayd.http.reply_schemas import models
from gatewayd.http.responses.fast_response import FastReply
from gatewayd.http.responses.packed_json import packed
from gatewayd.http.routes import BASES, FastHandler, Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import TRUE, answers
from gatewayd.pipeline.documents.model_info import render_model, render_record
from gatewayd.pipeline.functions.model_actions import ModelActions, ModelActionSet
from gatewayd.time_slices import LoopPacer

LISTS: Final = tuple(f"{base}/models" for base in BASES)
LIST_QUERY: Final = {
    "refresh": "With true, providers are asked again.",
    "limit": "With the header anthropic-version: number of models, 1 to 1000.",
    "after_id": "With that header: id of the model before the page.",
    "before_id": "With that header: id of the model behind the page.",
}
RECORD_QUERY: Final = {"id": "Id of the model."}


class GrantBody(RequestBody):
    """A grant of an access list."""

    principal_type: str = "user"
    principal_id: str
    permission: str = "read"


class ModelBody(RequestBody):
    """A model record in the format of Open WebUI."""

    id: str
    name: str = ""
    base_model_id: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    meta: dict[str, Any] = Field(default_factory=dict)
    access_grants: list[GrantBody] | None = None
    is_active: bool = True


class ModelAccessBody(RequestBody):
    """A change of a model's access list."""

    id: str
    name: str = ""
    access_grants: list[GrantBody]


class ModelIdBody(RequestBody):
    """The id of a model."""

    id: str


class PublicModelRoutes:
    """Routes of model lists and model records."""

    def __init__(self, catalog: Catalog, buttons: ModelActions | None = None) -> None:
        self._catalog = catalog
        self._buttons = buttons
        self._kept = KeptLists()

    def routes(self) -> Sequence[Route]:
        """Return the rows of lists, and those of records with the paths of Open WebUI."""
        records = "/api/v1/models"
        return [
            *(_listing(path, self.list, "List the models", begin=self.begin_list) for path in LISTS),
            _record("GET", "/api/models/base", self.list_base, "List all models, for administrators"),
            _record("GET", f"{records}/base", self.list_base, "List all models, for administrators"),
            _record("GET", f"{records}/list", self.list_records, "List model records"),
            _record("GET", f"{records}/model", self.show_record, "Show a model record"),
            _record("POST", f"{records}/create", self.create, "Store a model record", ModelBody),
            _record("POST", f"{records}/model/update", self.create, "Change a model record", ModelBody),
            _record(
                "POST",
                f"{records}/model/access/update",
                self.grant,
                "Change the access list of a model",
                ModelAccessBody,
            ),
            _record("POST", f"{records}/model/toggle", self.toggle, "Switch a model on or off"),
            _record("POST", f"{records}/model/delete", self.remove, "Delete a model record", ModelIdBody),
            # Last, as an id may be any path.
            *(_listing(f"{path}/{{id:.+}}", self.show, "Show a model", slashes=True) for path in LISTS),
        ]

    @answers(models.models, query=LIST_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"object": "list", "data": [...]}` with the models that the caller may use.

        Clients of the messages dialect, which send `anthropic-version`, get a page of that dialect.
        """
        refresh = request.query.get("refresh", "").lower() == "true"
        is_page = anthropic_lists.is_wanted(request)
        state = self._catalog.find_state()
        kept = None if refresh or is_page else self._find_kept(actor(request), state)
        if kept is not None:
            return await packed(request, body.encoded_reply(kept))
        models = await self._catalog.list(actor(request), refresh=refresh)
        buttons = await self._read_buttons()
        listed = await self._all_listed(models, actor(request), buttons)
        if is_page:
            aliased = anthropic_lists.aliased(listed, self._catalog.alias_of)
            return await body.large_reply(anthropic_lists.model_page(aliased, request.query))
        parts = await json_encoder.encode({"object": "list", "data": listed})
        if state is not None and not (buttons.actions or buttons.filters or self._may_have_buttons()):
            self._kept.keep(actor(request), state, parts)
        return await packed(request, body.encoded_reply(parts))

    def begin_list(
        self, request: web.Request, data: bytes, caller: Actor, arrived: Callable[[], None]
    ) -> FastReply | None:
        """Answer a list that was sent before, as `routes.FastHandler` does."""
        if FETCH_SITE in request.headers:
            return None
        kept = self._find_kept(caller, self._catalog.find_state())
        # A client may read a list of several parts slowly.
        return FastReply(kept[0], NO_HEADERS) if kept is not None and len(kept) == 1 else None

    def _find_kept(self, caller: Actor, state: object | None) -> Sequence[bytes] | None:
        return None if state is None or self._may_have_buttons() else self._kept.find(caller, state)

    def _may_have_buttons(self) -> bool:
        return self._buttons is not None and self._buttons.may_have_any()

    @answers(models.model)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a model as an element of the list."""
        model_id = request.match_info["id"].rstrip("/")
        model, _ = await self._catalog.get(model_id, actor(request))
        listed = self._listed(model, actor(request), await self._read_buttons())
        return body.json_reply(
            anthropic_lists.add_dialect_fields(listed) if anthropic_lists.is_wanted(request) else listed
        )

    @answers(models.models)
    async def list_base(self, request: web.Request) -> web.StreamResponse:
        """Answer all models, regardless of access lists."""
        models = await self._catalog.list_all()
        buttons = await self._read_buttons()
        listed = await self._all_listed(models, actor(request), buttons)
        return await body.large_reply({"object": "list", "data": listed})

    @answers(models.model_records)
    async def list_records(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"items": [record], "total"}`."""
        records = self._catalog.list_records()
        return body.json_reply({"items": [render_record(item) for item in records], "total": len(records)})

    @answers(models.shown_record, query=RECORD_QUERY)
    async def show_record(self, request: web.Request) -> web.StreamResponse:
        """Answer the record named by the query parameter `id`."""
        return body.json_reply(
            {**render_record(self._record(request.query.get("id", ""))), "write_access": True}
        )

    @answers(models.model_record)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """Store a record and answer it."""
        form = await body.read_model(request, ModelBody)
        if form.meta.get(RULES) is not None:
            check_changes(form.meta[RULES], f"meta.{RULES}")
        record = ModelRecord(
            id=form.id,
            user_id=actor(request).user_id,
            name=form.name or form.id,
            base_model_id=form.base_model_id,
            params=form.params,
            meta=form.meta,
            is_active=form.is_active,
        )
        grants = None if form.access_grants is None else _grants(form.access_grants)
        described = await self._catalog.describe(record, grants)
        values = form.model_dump(include={"name", "base_model_id", "access_grants", "is_active"})
        note_change(request, form.id, values)
        return body.json_reply(render_record(described))

    @answers(models.model_record)
    async def grant(self, request: web.Request) -> web.StreamResponse:
        """Replace the access list of a model and answer its record."""
        form = await body.read_model(request, ModelAccessBody)
        by = actor(request).user_id
        record = await self._catalog.grant(form.id, _grants(form.access_grants), by=by)
        note_change(request, form.id, form.model_dump(include={"access_grants"}))
        return body.json_reply(render_record(record))

    @answers(models.model_record, query=RECORD_QUERY)
    async def toggle(self, request: web.Request) -> web.StreamResponse:
        """Switch a model on or off for non-administrators and answer its record."""
        record = self._record(request.query.get("id", ""))
        changed = await self._catalog.switch(record.id, active=not record.is_active)
        note_change(request, changed.id, {"is_active": changed.is_active}, {"is_active": record.is_active})
        return body.json_reply(render_record(changed))

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Delete a record and answer true."""
        form = await body.read_model(request, ModelIdBody)
        await self._catalog.remove_record(form.id)
        note_change(request, form.id)
        return body.json_reply(data=True)

    def _record(self, model_id: str) -> ModelRecord:
        record = self._catalog.find_record(model_id)
        if record is None:
            raise not_found("model record", model_id)
        return record

    async def _read_buttons(self) -> ModelActionSet:
        return ModelActionSet() if self._buttons is None else await self._buttons.read()

    async def _all_listed(
        self, models: Sequence[Model], viewer: Actor, buttons: ModelActionSet
    ) -> Sequence[dict[str, Any]]:
        pace = LoopPacer()
        listed = []
        for model in models:
            listed.append(self._listed(model, viewer, buttons))
            await pace.turn()
        return listed

    def _listed(self, model: Model, viewer: Actor, buttons: ModelActionSet) -> dict[str, Any]:
        record = self._catalog.find_record(model.id)
        return {**render_model(model, record, is_whole=viewer.is_admin), **buttons.of(record)}


def _grants(rows: Sequence[GrantBody]) -> tuple[Grant, ...]:
    return tuple(Grant(row.principal_type, row.principal_id, row.permission) for row in rows)


def _listing(
    path: str, handler: Handler, summary: str, *, slashes: bool = False, begin: FastHandler | None = None
) -> Route:
    return Route(
        "GET",
        path,
        handler,
        RouteAccess.VERIFIED,
        summary,
        RouteDialect.OPENAI,
        tag="models",
        slashes=slashes,
        begin=begin,
    )


def _record(
    method: str, path: str, handler: Handler, summary: str, request: type[BaseModel] | None = None
) -> Route:
    return Route(method, path, handler, RouteAccess.ADMIN, summary, request=request, tag="models")
