"""Plugins with their access lists, and what users set in them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from gatewayd.catalog.records import Grant
from gatewayd.errors import GatewayError
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind, PluginOrigin, PluginProblem
from gatewayd.storage import grants
from gatewayd.storage.engine.encryption import UNREADABLE_CODE, ValveCipher
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, fits_columns
from gatewayd.storage.engine.sanitiser import encode_sanitised
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.grants import GrantResource
from gatewayd.storage.tables.plugins import PluginRow, UserValvesRow

LOAD: Final = "load"


class TortoisePlugins:
    """Implements `plugins.interfaces.PluginStore`.

    With a secret, valves are stored sealed, unless `sealing` is switched off; then it only opens those that
    were sealed before.
    """

    def __init__(self, secret: bytes | None = None, *, sealing: bool = True) -> None:
        self._seal = ValveCipher(secret, sealing=sealing)

    async def list(self, family: PluginFamily | None = None) -> Sequence[Plugin]:
        """Return the plugins by id, with their sources and grants.

        One whose valves cannot be opened is there without them, locked, and with a problem that says so.
        """
        families = list(PluginFamily) if family is None else [family]
        with translate_errors("list plugins"):
            rows = await PluginRow.filter(family__in=[each.value for each in families]).order_by(
                "id", "family"
            )
            lists = {each.value: await grants.read_all(_resource(each)) for each in families}
        return [self._listed(row, lists[row.family].get(row.id, ())) for row in rows]

    async def find(self, family: PluginFamily, plugin_id: str) -> Plugin | None:
        """Return one plugin; not_configured when its valves cannot be opened."""
        if not fits_columns(PluginRow, id=plugin_id):
            return None
        with translate_errors("read a plugin"):
            row = await PluginRow.get_or_none(family=family.value, id=plugin_id)
            if row is None:
                return None
            lists = await grants.read(_resource(family), [plugin_id])
        return _record_of(row, lists.get(plugin_id, ()), self._valves(row))

    async def put(self, plugin: Plugin) -> None:
        """Insert or replace a plugin and its grants; the valves of a locked one stay as they are stored."""
        columns = {
            "family": plugin.family.value,
            "id": plugin.id,
            "kind": plugin.kind.value,
            "user_id": plugin.user_id,
            "name": plugin.name,
            "content": plugin.content,
            "description": plugin.description,
            "manifest": encode(plugin.manifest, "manifest"),
            "meta": encode(plugin.meta, "meta"),
            "specs": encode_sanitised(plugin.specs, "specs"),
            "valves": self._seal.encode(plugin.valves),
            "is_active": plugin.is_active,
            "is_global": plugin.is_global,
            "origin": plugin.origin.value,
            "path": plugin.path,
            "missing": encode_sanitised(plugin.missing, "missing"),
            "problem": _encode_problem(plugin.problem),
            "updated_at": plugin.updated_at,
            "created_at": plugin.created_at,
        }
        async with write_transaction("store the plugin"):
            if plugin.locked is not None:
                stored = await PluginRow.get_or_none(family=plugin.family.value, id=plugin.id)
                columns["valves"] = "{}" if stored is None else stored.valves
            await upsert_rows(PluginRow, [columns], ["family", "id"])
            await grants.write(_resource(plugin.family), plugin.id, plugin.grants)

    async def remove(self, family: PluginFamily, plugin_id: str) -> bool:
        """Delete a plugin, its grants, its valves and those of every user."""
        if not fits_columns(PluginRow, id=plugin_id):
            return False
        async with write_transaction("remove the plugin"):
            # In the order of `put`, so that the two cannot wait for each other.
            removed = await PluginRow.filter(family=family.value, id=plugin_id).delete() > 0
            await grants.remove(_resource(family), plugin_id)
            await UserValvesRow.filter(family=family.value, plugin_id=plugin_id).delete()
        return removed

    async def note(self, family: PluginFamily, plugin_id: str, problem: PluginProblem | None) -> None:
        """Keep the last problem alone; nothing happens when there is no such plugin."""
        if not fits_columns(PluginRow, id=plugin_id):
            return
        with translate_errors("note the problem of a plugin"):
            rows = PluginRow.filter(family=family.value, id=plugin_id)
            await rows.update(problem=_encode_problem(problem))

    def _listed(self, row: PluginRow, access: Sequence[Grant]) -> Plugin:
        """Return a plugin, a locked one when its valves cannot be opened: it must not run without them."""
        try:
            return _record_of(row, access, self._valves(row))
        except GatewayError as error:
            if error.code != UNREADABLE_CODE:
                raise
            problem = PluginProblem(row.updated_at, LOAD, error.message)
            return replace(_record_of(row, access, {}), problem=problem, locked=error.message)

    def _valves(self, row: PluginRow) -> dict[str, Any]:
        return self._seal.decode(row.valves, f"{row.family} {row.id}")


class TortoiseUserValves:
    """Implements `plugins.interfaces.UserValvesStore`; sealed like those of PluginRows."""

    def __init__(self, secret: bytes | None = None, *, sealing: bool = True) -> None:
        self._seal = ValveCipher(secret, sealing=sealing)

    async def find(self, user_id: str, family: PluginFamily, plugin_id: str) -> dict[str, Any] | None:
        """Return the values; None when the user set none."""
        if not fits_columns(UserValvesRow, user_id=user_id, plugin_id=plugin_id):
            return None
        with translate_errors("read the valves of a user"):
            row = await UserValvesRow.get_or_none(user_id=user_id, family=family.value, plugin_id=plugin_id)
        if row is None:
            return None
        return self._seal.decode(row.valves, f"user {user_id} in {family.value} {plugin_id}")

    async def put(self, user_id: str, family: PluginFamily, plugin_id: str, values: dict[str, Any]) -> None:
        """Replace the values; conflict when there is no such user."""
        columns = {
            "user_id": user_id,
            "family": family.value,
            "plugin_id": plugin_id,
            "valves": self._seal.encode(values),
        }
        async with write_transaction("store the valves of a user"):
            await upsert_rows(UserValvesRow, [columns], ["user_id", "family", "plugin_id"])


def _record_of(row: PluginRow, access: Sequence[Grant], valves: dict[str, Any]) -> Plugin:
    whose = f"{row.family} {row.id}"
    problem = decode(row.problem, f"the last problem of {whose}")
    return Plugin(
        id=row.id,
        family=PluginFamily(row.family),
        kind=PluginKind(row.kind),
        user_id=row.user_id,
        name=row.name,
        content=row.content,
        description=row.description,
        manifest=decode(row.manifest, f"the manifest of {whose}"),
        meta=decode(row.meta, f"the meta of {whose}"),
        specs=decode(row.specs, f"the specs of {whose}"),
        valves=valves,
        is_active=row.is_active,
        is_global=row.is_global,
        origin=PluginOrigin(row.origin),
        path=row.path,
        missing=tuple(decode(row.missing, f"the missing names of {whose}")),
        problem=None if problem is None else PluginProblem(**problem),
        grants=tuple(access),
        updated_at=row.updated_at,
        created_at=row.created_at,
    )


def _resource(family: PluginFamily) -> GrantResource:
    """Return what the access lists of a family are kept under: of the same id there may be one in each."""
    return GrantResource.TOOL if family is PluginFamily.TOOL else GrantResource.FUNCTION


def _encode_problem(problem: PluginProblem | None) -> str | None:
    return None if problem is None else encode_sanitised(asdict(problem), "problem")
