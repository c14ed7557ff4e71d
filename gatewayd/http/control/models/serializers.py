"""Look-up and serializer of models for the control protocol."""

from collections.abc import Sequence
from typing import Any

from gatewayctl.wire import models as wire
from gatewayd.catalog.model_names import find_listed_name
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.errors import not_found
from gatewayd.http.control.accounts.access_lists import AccessLists
from gatewayd.pipeline.documents.presets import document_references

KNOWLEDGE = "knowledge"
TOOLS = "toolIds"
FILTERS = "filterIds"
ACTIONS = "actionIds"
SYSTEM = "system"


class ModelViews:
    """Serializer of models together with their records."""

    def __init__(self, catalog: Catalog, lists: AccessLists) -> None:
        self._catalog = catalog
        self._lists = lists

    async def find(self, model_id: str) -> tuple[Model | None, ModelRecord | None]:
        """Return the listed model and its record; not_found when both are missing."""
        listed = {model.id: model for model in await self._catalog.list_all()}
        model, record = listed.get(find_listed_name(model_id, listed)), self._catalog.find_record(model_id)
        if model is None and record is None:
            raise not_found("model", model_id)
        return model, record

    async def show(self, model: Model | None, record: ModelRecord | None) -> wire.Model:
        """Return a model as its wire model, from a listed model, a record or both."""
        known = model if model is not None else record
        if known is None:
            raise ValueError("a model or a record is needed")
        shown = wire.Model(
            id=known.id,
            name=known.name,
            owned_by=model.owned_by if model is not None else "",
            source=model.source if model is not None else "",
            available=model is not None,
            family=_family(model, record),
            recorded=record is not None,
        )
        return shown if record is None else await self._with_record(shown, record)

    async def _with_record(self, shown: wire.Model, record: ModelRecord) -> wire.Model:
        system = record.params.get(SYSTEM)
        return shown.model_copy(
            update={
                "name": record.name,
                "active": record.is_active,
                "grants": await self._lists.show(record.grants),
                "base": record.base_model_id,
                "system": system if isinstance(system, str) else "",
                "params": {name: value for name, value in record.params.items() if name != SYSTEM},
                "knowledge": _knowledge(record.meta.get(KNOWLEDGE)),
                "tools": _texts(record.meta.get(TOOLS)),
                "filters": _texts(record.meta.get(FILTERS)),
                "actions": _texts(record.meta.get(ACTIONS)),
            }
        )


def _family(model: Model | None, record: ModelRecord | None) -> str:
    stored = "" if record is None else record.family
    return stored or ("" if model is None else model.family)


def _knowledge(value: Any) -> list[str]:
    names = {item.get("id"): item.get("name") for item in value or () if isinstance(item, dict)}
    return [str(names.get(item["id"]) or item["id"]) for item in document_references(value)]


def _texts(value: Any) -> list[str]:
    items: Sequence[Any] = value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, str)]
