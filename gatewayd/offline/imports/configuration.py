"""Import of settings, default permissions, providers and tool servers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS, STORED_NAME, copy, overlay
from gatewayd.accounts.records import PermissionTree
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily, StoredProviders
from gatewayd.imports.configuration import ForeignSettings, UnusableEntry, read_settings
from gatewayd.imports.records import ImportKind
from gatewayd.imports.rows import ForeignRow
from gatewayd.offline.imports.run import ImportRun
from gatewayd.plugins.servers.config import check_server
from gatewayd.plugins.servers.records import ToolServer

IMPORTED_BY: Final = "import"
CONFIGURED: Final = "the configuration of the gateway sets it"
GROUP_SETTING: Final = "DEFAULT_GROUP_ID"
NO_EQUIVALENT: Final = "no equivalent here, or none that an import may set"


class ConfigurationImport:
    """Imports what is configured in the database there and can be configured in the database here.

    `runtime` are the settings here, loaded; `permissions` are the default ones without stored ones.
    `configured` has the addresses of the providers of the configuration by their names.
    """

    def __init__(
        self,
        run: ImportRun,
        runtime: RuntimeSettings,
        permissions: PermissionTree,
        configured: Mapping[str, str],
    ) -> None:
        self._run = run
        self._stores = run.stores
        self._runtime = runtime
        self._permissions = permissions
        self._configured = configured

    async def run(self) -> None:
        """Store everything that is new here, and note what is left."""
        changes: list[str] = []
        rows = [ForeignRow(row) async for row in self._run.source.rows("config", order_by=("id", "key"))]
        settings = read_settings(rows, changes)
        self._run.ledger.remark(ImportKind.SETTING, "config", "config", changes)
        stored = await self._stores.values.load()
        for name, value in settings.runtime().items():
            await self._import_setting(name, value, stored)
        await self._import_permissions(settings, stored)
        await self._import_providers(settings)
        await self._import_servers(settings)
        rest = settings.rest()
        if rest:
            sections = ", ".join(f"{section} ({count})" for section, count in rest.items())
            reason = f"{NO_EQUIVALENT}: {sections}"
            self._run.ledger.leave_out(ImportKind.SETTING, "", "", reason, count=sum(rest.values()))

    async def _import_setting(self, name: str, value: Any, stored: Mapping[str, Any]) -> None:
        if name == GROUP_SETTING and value:
            value = self._run.known.groups.get(str(value), "")
        with self._run.record(ImportKind.SETTING, name, name):
            checked = self._runtime.checked({name: value})
            held = self._runtime.describe(name)
            if name in stored or held.value == checked[name]:
                self._run.ledger.present(ImportKind.SETTING)
            elif held.origin != "default":
                self._run.ledger.leave_out(ImportKind.SETTING, name, name, CONFIGURED)
            else:
                if not self._run.dry_run:
                    await self._stores.values.put(checked, at=self._run.now, by=IMPORTED_BY)
                self._run.ledger.imported(ImportKind.SETTING)

    async def _import_permissions(self, settings: ForeignSettings, stored: Mapping[str, Any]) -> None:
        with self._run.record(ImportKind.SETTING, STORED_NAME, STORED_NAME):
            tree = settings.permissions()
            if tree is None:
                return
            wanted = overlay(copy(BUILTIN_PERMISSIONS), tree)
            if STORED_NAME in stored or wanted == self._permissions:
                self._run.ledger.present(ImportKind.SETTING)
            elif self._permissions != BUILTIN_PERMISSIONS:
                self._run.ledger.leave_out(ImportKind.SETTING, STORED_NAME, STORED_NAME, CONFIGURED)
            else:
                if not self._run.dry_run:
                    values = {STORED_NAME: wanted}
                    await self._stores.values.put(values, at=self._run.now, by=IMPORTED_BY)
                self._run.ledger.imported(ImportKind.SETTING)

    async def _import_providers(self, settings: ForeignSettings) -> None:
        held = await self._stores.providers.load()
        addresses = [*self._configured.values(), *(each.base_url for each in held.providers)]
        known = {each.rstrip("/") for each in addresses}
        added: list[ManagedProvider] = []
        for family in ProviderFamily:
            for entry in settings.providers(family):
                if isinstance(entry, UnusableEntry):
                    self._run.ledger.leave_out(ImportKind.PROVIDER, "", entry.name, entry.reason)
                elif entry.base_url in known:
                    self._run.ledger.present(ImportKind.PROVIDER)
                else:
                    names = {*self._configured, *(each.name for each in (*held.providers, *added))}
                    added.append(replace(entry, id=ids.new_id(), name=_free(entry.name, names)))
                    self._run.ledger.imported(ImportKind.PROVIDER)
        if added and not self._run.dry_run:
            changed = StoredProviders((*held.providers, *added), held.enabled, held.revision + 1)
            await self._stores.providers.save(changed, at=self._run.now, by=IMPORTED_BY)

    async def _import_servers(self, settings: ForeignSettings) -> None:
        known = list(await self._stores.tool_servers.list())
        for entry in settings.tool_servers():
            if isinstance(entry, UnusableEntry):
                self._run.ledger.leave_out(ImportKind.TOOL_SERVER, "", entry.name, entry.reason)
            elif any((each.url, each.path) == (entry.url, entry.path) for each in known):
                self._run.ledger.present(ImportKind.TOOL_SERVER)
            else:
                with self._run.record(ImportKind.TOOL_SERVER, entry.id, entry.name):
                    known.append(await self._import_server(entry, {each.id for each in known}))

    async def _import_server(self, entry: ToolServer, taken: set[str]) -> ToolServer:
        changes: list[str] = []
        server = replace(
            entry,
            id=_free(entry.id, taken, "-"),
            grants=self._run.known.translate(entry.grants, changes),
            updated_at=self._run.now,
            created_at=self._run.now,
        )
        check_server(server)
        if not self._run.dry_run:
            await self._stores.tool_servers.put(server)
        self._run.ledger.imported(ImportKind.TOOL_SERVER)
        self._run.ledger.remark(ImportKind.TOOL_SERVER, server.id, server.name, changes)
        return server


def _free(name: str, taken: set[str], sign: str = " ") -> str:
    """Return a name that is not taken, with a number if need be."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{sign}{number}"
    return free
