"""Model lists (interface specification 2.4, 4.1) and the records that administrators keep about models."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gatewayd.catalog.records import Grant, Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.errors import not_found
from gatewayd.http import body
from gatewayd.http.context import actor
from gatewayd.http.routes import Access, Dialect, Route


class GrantBody(BaseModel):
    """One row of an access list (6.6)."""

    model_config = ConfigDict(extra="ignore")

    principal_type: str = "user"
    principal_id: str
    permission: str = "read"


class ModelBody(BaseModel):
    """A model record as scripts send it (1.5)."""

    model_config = ConfigDict(extra="ignore")

    id: str
    name: str = ""
    base_model_id: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    meta: dict[str, Any] = Field(default_factory=dict)
    access_grants: list[GrantBody] | None = None
    is_active: bool = True


class ModelAccessBody(BaseModel):
    """A change of a model's access list."""

    model_config = ConfigDict(extra="ignore")

    id: str
    name: str = ""
    access_grants: list[GrantBody]


class ModelIdBody(BaseModel):
    """Names a model."""

    model_config = ConfigDict(extra="ignore")

    id: str


class ModelRoutes:
    """Lists models and keeps their records."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def routes(self) -> Sequence[Route]:
        """Return the rows of 4.1 and peer-compatible record routes."""
        lists = [
            Route("GET", path, self.list, Access.VERIFIED, "List the models", Dialect.OPENAI, tag="models")
            for path in ("/api/models", "/api/v1/models", "/v1/models")
        ]
        singles = [
            Route(
                "GET",
                f"{path}/{{id:.+}}",
                self.show,
                Access.VERIFIED,
                "Show one model",
                Dialect.OPENAI,
                tag="models",
                slashes=True,
            )
            for path in ("/api/models", "/api/v1/models", "/v1/models")
        ]
        records = [
            Route("GET", "/api/models/base", self.list_base, Access.ADMIN, "List every model", tag="models"),
            Route(
                "GET", "/api/v1/models/base", self.list_base, Access.ADMIN, "List every model", tag="models"
            ),
            Route(
                "GET",
                "/api/v1/models/list",
                self.list_records,
                Access.ADMIN,
                "List model records",
                tag="models",
            ),
            Route(
                "GET", "/api/v1/models/model", self.show_record, Access.ADMIN, "Show a record", tag="models"
            ),
            Route("POST", "/api/v1/models/create", self.create, Access.ADMIN, "Store a record", tag="models"),
            Route(
                "POST",
                "/api/v1/models/model/update",
                self.create,
                Access.ADMIN,
                "Change a record",
                tag="models",
            ),
            Route(
                "POST",
                "/api/v1/models/model/access/update",
                self.grant,
                Access.ADMIN,
                "Change who may use a model",
                tag="models",
            ),
            Route(
                "POST",
                "/api/v1/models/model/toggle",
                self.toggle,
                Access.ADMIN,
                "Switch a model",
                tag="models",
            ),
            Route(
                "POST",
                "/api/v1/models/model/delete",
                self.remove,
                Access.ADMIN,
                "Delete a record",
                tag="models",
            ),
        ]
        return [*lists, *records, *singles]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"object": "list", "data": [...]}` with the models that the caller may use."""
        refresh = request.query.get("refresh", "").lower() == "true"
        models = await self._catalog.list(actor(request), refresh=refresh)
        return body.json_reply({"object": "list", "data": [self._listed(model) for model in models]})

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer one element of the list."""
        model_id = request.match_info["id"].rstrip("/")
        model, _ = await self._catalog.get(model_id, actor(request))
        return body.json_reply(self._listed(model))

    async def list_base(self, request: web.Request) -> web.StreamResponse:
        """Answer every model, whoever may use it."""
        models = await self._catalog.list_all()
        return body.json_reply({"object": "list", "data": [self._listed(model) for model in models]})

    async def list_records(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"items": [record], "total"}`."""
        records = self._catalog.list_records()
        return body.json_reply({"items": [render_record(item) for item in records], "total": len(records)})

    async def show_record(self, request: web.Request) -> web.StreamResponse:
        """Answer the record named by the query parameter `id`."""
        return body.json_reply(
            {**render_record(self._record(request.query.get("id", ""))), "write_access": True}
        )

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Store a record and answer it."""
        form = await body.read_model(request, ModelBody)
        known = self._catalog.find_record(form.id)
        grants = known.grants if known and form.access_grants is None else _grants(form.access_grants or [])
        record = ModelRecord(
            id=form.id,
            user_id=known.user_id if known else actor(request).user_id,
            name=form.name or form.id,
            base_model_id=form.base_model_id,
            params=form.params,
            meta=form.meta,
            is_active=form.is_active,
            grants=grants,
        )
        return body.json_reply(render_record(await self._catalog.put_record(record)))

    async def grant(self, request: web.Request) -> web.StreamResponse:
        """Replace the access list of a model and answer its record."""
        form = await body.read_model(request, ModelAccessBody)
        by = actor(request).user_id
        record = await self._catalog.grant(form.id, _grants(form.access_grants), by=by)
        return body.json_reply(render_record(record))

    async def toggle(self, request: web.Request) -> web.StreamResponse:
        """Switch a model on or off for non-administrators and answer its record."""
        record = self._record(request.query.get("id", ""))
        changed = await self._catalog.switch(record.id, active=not record.is_active)
        return body.json_reply(render_record(changed))

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Delete a record and answer true."""
        form = await body.read_model(request, ModelIdBody)
        await self._catalog.remove_record(form.id)
        return body.json_reply(data=True)

    def _record(self, model_id: str) -> ModelRecord:
        record = self._catalog.find_record(model_id)
        if record is None:
            raise not_found("model record", model_id)
        return record

    def _listed(self, model: Model) -> dict[str, Any]:
        listed: dict[str, Any] = {
            "id": model.id,
            "name": model.name,
            "object": "model",
            "created": model.created,
            "owned_by": model.owned_by,
            "connection_type": model.connection_type,
            "tags": [],
            "actions": [],
            "filters": [],
            **model.detail,
        }
        record = self._catalog.find_record(model.id)
        if record is not None:
            listed["name"] = record.name or model.name
            listed["info"] = render_record(record)
        return listed


def render_record(record: ModelRecord) -> dict[str, Any]:
    """Return a record in the shape of 1.5."""
    return {
        "id": record.id,
        "user_id": record.user_id,
        "base_model_id": record.base_model_id,
        "name": record.name,
        "params": record.params,
        "meta": record.meta,
        "access_grants": [
            {
                "principal_type": grant.principal_type,
                "principal_id": grant.principal_id,
                "permission": grant.permission,
            }
            for grant in record.grants
        ],
        "is_active": record.is_active,
        "updated_at": record.updated_at,
        "created_at": record.created_at,
    }


def _grants(rows: Sequence[GrantBody]) -> tuple[Grant, ...]:
    return tuple(Grant(row.principal_type, row.principal_id, row.permission) for row in rows)
