"""Table of model records: custom models, and settings and access lists of listed ones."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from gatewayd.catalog.model_names import find_listed_name
from gatewayd.catalog.records import ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.errors import invalid, shorten
from gatewayd.plugins.servers.records import MCP, SERVER
from gatewayd.state.collections import SIDES, checked_references
from gatewayd.state.interfaces import StateTable
from gatewayd.state.planner import named_once
from gatewayd.state.records import Fields, ObjectChange, StateAction, StateObject, located
from gatewayd.state.scope import StateScope

SYSTEM: Final = "system"
KNOWLEDGE: Final = "knowledge"
COLLECTION: Final = "collection"
LISTS: Final = {"tools": "toolIds", "filters": "filterIds", "actions": "actionIds"}
"""Fields of the document with ids of plugins, and their members of `meta`."""

NOT_META: Final = frozenset({KNOWLEDGE, *LISTS.values()})
_PARAMETERS: Final = {"base_model_id": "base", "meta.family": "meta", "meta.profile_image_url": "meta"}
"""Fields of the document by the parameters that errors of the catalog name."""


class ModelTable(StateTable):
    """Model records by id."""

    table = "models"
    needs = frozenset({"tool_servers", "functions", "tools", "collections"})

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all records."""
        return {each.id: StateObject(_fields(each, scope)) for each in self._catalog.list_records()}

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the records by the ids under which they are stored."""
        listed = {model.id for model in await self._catalog.list_all()}
        found = await named_once(self, wanted, self._stored_id(listed))
        records = {each.id: each for each in self._catalog.list_records()}
        after = dict(records)
        result: dict[str, Fields] = {}
        for model_id, (name, fields) in found.items():
            given = dict(fields)
            if "base" in fields:
                given["base"] = find_listed_name(fields["base"], listed)
            for each in (*LISTS, KNOWLEDGE):
                if each in fields:
                    with located(self.path(name, each)):
                        given[each] = [
                            self._reference(each, ref, scope) for ref in dict.fromkeys(fields[each])
                        ]
            result[model_id] = given | checked_references(self, name, fields, scope)
            after[model_id] = _changed(result[model_id], model_id, records.get(model_id), scope)
            if given.get("base", "") and given["base"] not in listed:
                scope.notes.append(f"{self.path(name, 'base')}: no provider lists {given['base']!r} now")
        for model_id, (name, _) in found.items():
            with located(self.path(name), _PARAMETERS):
                self._catalog.check_record(after[model_id], after)
        return result

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Store or remove a record."""
        async with self._catalog.changing():
            if change.action is StateAction.DELETE:
                await self._catalog.remove_record(change.name)
                return
            held = self._catalog.find_record(change.name)
            record = _changed(change.values, change.name, held, scope)
            if held is None or any(side in change.values for side in SIDES):
                grants = scope.grants(change.values, () if held is None else held.grants)
                record = replace(record, grants=grants)
            await self._catalog.put_record(record)

    def rank(self, change: ObjectChange) -> int:
        """Return 0 for a record that loses its base, which another one may have as its own."""
        return 1 if change.values.get("base") else 0

    def _stored_id(self, listed: set[str]) -> Callable[[str], str]:
        def normal(name: str) -> str:
            known = self._catalog.find_record(name)
            return find_listed_name(name, listed) if known is None else known.id

        return normal

    def _reference(self, field: str, ref: str, scope: StateScope) -> str:
        if field == KNOWLEDGE:
            keys = {collection_id: key for key, collection_id in scope.collections.items() if collection_id}
            key = keys.get(ref, ref)
            if key not in scope.collections:
                raise invalid(f"cannot find collection {shorten(ref)!r}")
            return key
        if ref.startswith(SERVER):
            server_id = ref.removeprefix(SERVER).removeprefix(MCP).partition("|")[0]
            if server_id not in scope.servers:
                raise invalid(f"cannot find tool server {shorten(server_id)!r}")
            return ref
        plugin_id, dot, part = ref.partition(".")
        family = "tools" if field == "tools" else "functions"
        if plugin_id.lower() not in scope.plugins[family]:
            raise invalid(f"cannot find {family.removesuffix('s')} {shorten(ref)!r}")
        return f"{plugin_id.lower()}{dot}{part}"


def _fields(record: ModelRecord, scope: StateScope) -> dict[str, Any]:
    params, meta = record.params or {}, record.meta or {}
    keys = {collection_id: key for key, collection_id in scope.collections.items()}
    return {
        "name": record.name,
        "base": record.base_model_id,
        "active": record.is_active,
        "owner": scope.emails.get(record.user_id),
        SYSTEM: params.get(SYSTEM),
        "params": {name: value for name, value in params.items() if name != SYSTEM},
        KNOWLEDGE: [keys[item["id"]] for item in _items(meta) if _is_known(item, keys)],
        **{name: _texts(meta.get(member)) for name, member in LISTS.items()},
        "meta": {name: value for name, value in meta.items() if name not in NOT_META},
        **scope.sides(record.grants),
    }


def _changed(fields: Fields, model_id: str, held: ModelRecord | None, scope: StateScope) -> ModelRecord:
    """Return a record with the fields set, without a change of its access list."""
    record = held or ModelRecord(model_id, scope.primary_id, fields.get("name", model_id))
    params, meta = record.params or {}, record.meta or {}
    if "params" in fields:
        kept = {name: value for name, value in params.items() if name == SYSTEM}
        params = {**fields["params"], **kept}
    if SYSTEM in fields:
        params = {name: value for name, value in params.items() if name != SYSTEM}
        params |= {SYSTEM: fields[SYSTEM]} if fields[SYSTEM] else {}
    if "meta" in fields:
        meta = {**fields["meta"], **{name: value for name, value in meta.items() if name in NOT_META}}
    if KNOWLEDGE in fields:
        meta = _with(meta, KNOWLEDGE, _knowledge(fields[KNOWLEDGE], meta, scope))
    for name, member in LISTS.items():
        if name in fields:
            meta = _with(meta, member, fields[name])
    return replace(
        record,
        name=fields.get("name", record.name),
        base_model_id=fields.get("base", record.base_model_id or "") or None,
        is_active=fields.get("active", record.is_active),
        user_id=scope.users[fields["owner"]] if "owner" in fields else record.user_id,
        params=params,
        meta=meta,
    )


def _with(meta: Mapping[str, Any], name: str, value: list[Any]) -> dict[str, Any]:
    kept = {each: given for each, given in meta.items() if each != name}
    return {**kept, name: value} if value else kept


def _knowledge(names: list[str], meta: Mapping[str, Any], scope: StateScope) -> list[Any]:
    """Return references to the collections; those to single files and to removed collections stay."""
    keys = {collection_id: key for key, collection_id in scope.collections.items()}
    kept = [item for item in _items(meta) if not _is_known(item, keys)]
    return [*kept, *({"type": COLLECTION, "id": scope.collections[name], "name": name} for name in names)]


def _items(meta: Mapping[str, Any]) -> list[Any]:
    value = meta.get(KNOWLEDGE)
    return value if isinstance(value, list) else []


def _is_known(item: Any, keys: Mapping[str, str]) -> bool:
    return isinstance(item, dict) and item.get("type") == COLLECTION and item.get("id") in keys


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
