"""Store of plugins with their access lists, and of users' valves."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from gatewayd.catalog.records import Grant
from gatewayd.encryption import SecretKeys
from gatewayd.errors import GatewayError
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind, PluginOrigin, PluginProblem
from gatewayd.storage import grants
from gatewayd.storage.engine.encryption import UNREADABLE_CODE, ValveCipher
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, encode_sanitised, fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.grants import GrantResource
from gatewayd.storage.tables.plugins import PluginRow, UserValvesRow

LOAD: Final = "load"


class TortoisePlugins:
    """Implements `plugins.interfaces.PluginStore`.

    With a secret, valves are stored encrypted. Without `encrypt` the secret only decrypts valves that were
    encrypted before.
    """

    def __init__(self, secret: bytes | SecretKeys | None = None, *, encrypt: bool = True) -> None:
        self._cipher = ValveCipher(secret, encrypt=encrypt)

    async def list(self, family: PluginFamily | None = None) -> Sequence[Plugin]:
        """Return the plugins by id, with their sources and grants.

        A plugin plugin_name valves cannot be decrypted is returned locked, without valves, and with a
        problem.
        """
        families = list(PluginFamily) if family is None else [family]
        with translate_errors("list plugins"):
            rows = await PluginRow.filter(family__in=[each.value for each in families]).order_by(
                "id", "family"
            )
            lists = {each.value: await grants.read_all(_resource(each)) for each in families}
        return [self._listed(row, lists[row.family].get(row.id, ())) for row in rows]

    async def find(self, family: PluginFamily, plugin_id: str) -> Plugin | None:
        """Return one plugin; not_configured when its valves cannot be decrypted."""
        if not fits_columns(PluginRow, id=plugin_id):
            return None
        with translate_errors("read a plugin"):
            row = await PluginRow.get_or_none(family=family.value, id=plugin_id)
            if row is None:
                return None
            lists = await grants.read(_resource(family), [plugin_id])
        return _record_of(row, lists.get(plugin_id, ()), self._valves(row))

    async def put(self, plugin: Plugin) -> None:
        """Insert or replace a plugin and its grants; the stored valves of a locked plugin stay unchanged."""
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
            "valves": self._cipher.encode(plugin.valves),
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
        """Delete a plugin, its grants, its valves and the valves of every user."""
        if not fits_columns(PluginRow, id=plugin_id):
            return False
        async with write_transaction("remove the plugin"):
            # The order of `put` prevents a deadlock.
            removed = await PluginRow.filter(family=family.value, id=plugin_id).delete() > 0
            await grants.remove(_resource(family), plugin_id)
            await UserValvesRow.filter(family=family.value, plugin_id=plugin_id).delete()
        return removed

    async def note(self, family: PluginFamily, plugin_id: str, problem: PluginProblem | None) -> None:
        """Write the last problem of a plugin; does nothing without the plugin."""
        if not fits_columns(PluginRow, id=plugin_id):
            return
        with translate_errors("note the problem of a plugin"):
            rows = PluginRow.filter(family=family.value, id=plugin_id)
            await rows.update(problem=_encode_problem(problem))

    def _listed(self, row: PluginRow, access: Sequence[Grant]) -> Plugin:
        """Return a plugin, locked when its valves cannot be decrypted: it must not run without them."""
        try:
            return _record_of(row, access, self._valves(row))
        except GatewayError as error:
            if error.code != UNREADABLE_CODE:
                raise
            problem = PluginProblem(row.updated_at, LOAD, error.message)
            return replace(_record_of(row, access, {}), problem=problem, locked=error.message)

    def _valves(self, row: PluginRow) -> dict[str, Any]:
        return self._cipher.decode(row.valves, f"{row.family} {row.id}")


class TortoiseUserValves:
    """Implements `plugins.interfaces.UserValvesStore`; valves are encrypted as in `TortoisePlugins`."""

    def __init__(self, secret: bytes | SecretKeys | None = None, *, encrypt: bool = True) -> None:
        self._cipher = ValveCipher(secret, encrypt=encrypt)

    async def find(self, user_id: str, family: PluginFamily, plugin_id: str) -> dict[str, Any] | None:
        """Return the valves of a user, None when they set none."""
        if not fits_columns(UserValvesRow, user_id=user_id, plugin_id=plugin_id):
            return None
        with translate_errors("read the valves of a user"):
            row = await UserValvesRow.get_or_none(user_id=user_id, family=family.value, plugin_id=plugin_id)
        if row is None:
            return None
        return self._cipher.decode(row.valves, f"user {user_id} in {family.value} {plugin_id}")

    async def put(self, user_id: str, family: PluginFamily, plugin_id: str, values: dict[str, Any]) -> None:
        """Replace the valves of a user; conflict when the user does not exist."""
        columns = {
            "user_id": user_id,
            "family": family.value,
            "plugin_id": plugin_id,
            "valves": self._cipher.encode(values),
        }
        async with write_transaction("store the valves of a user"):
            await upsert_rows(UserValvesRow, [columns], ["user_id", "family", "plugin_id"])


def _record_of(row: PluginRow, access: Sequence[Grant], valves: dict[str, Any]) -> Plugin:
    plugin_name = f"{row.family} {row.id}"
    problem = decode(row.problem, f"the last problem of {plugin_name}")
    return Plugin(
        id=row.id,
        family=PluginFamily(row.family),
        kind=PluginKind(row.kind),
        user_id=row.user_id,
        name=row.name,
        content=row.content,
        description=row.description,
        manifest=decode(row.manifest, f"the manifest of {plugin_name}"),
        meta=decode(row.meta, f"the meta of {plugin_name}"),
        specs=decode(row.specs, f"the specs of {plugin_name}"),
        valves=valves,
        is_active=row.is_active,
        is_global=row.is_global,
        origin=PluginOrigin(row.origin),
        path=row.path,
        missing=tuple(decode(row.missing, f"the missing names of {plugin_name}")),
        problem=None if problem is None else PluginProblem(**problem),
        grants=tuple(access),
        updated_at=row.updated_at,
        created_at=row.created_at,
    )


def _resource(family: PluginFamily) -> GrantResource:
    """Return the resource kind of a family: a tool and a function may have the same id."""
    return GrantResource.TOOL if family is PluginFamily.TOOL else GrantResource.FUNCTION


def _encode_problem(problem: PluginProblem | None) -> str | None:
    return None if problem is None else encode_sanitised(asdict(problem), "problem")
