"""Import of functions, tools and models."""

from dataclasses import replace
from typing import Final

from gatewayd.catalog.custom_models import check_base
from gatewayd.catalog.records import Grant
from gatewayd.errors import invalid
from gatewayd.imports.records import ImportKind
from gatewayd.imports.rows import ForeignRow
from gatewayd.imports.workspace import read_model, read_plugin
from gatewayd.offline.imports.run import NO_OWNER, ImportRun
from gatewayd.plugins.records import PluginFamily

KINDS: Final = {PluginFamily.FUNCTION: ImportKind.FUNCTION, PluginFamily.TOOL: ImportKind.TOOL}


class WorkspaceImport:
    """Imports functions, tools and models. The daemon loads them at its next start."""

    def __init__(self, run: ImportRun) -> None:
        self._run = run
        self._stores = run.stores

    async def import_plugins(self, family: PluginFamily) -> None:
        """Store the new plugins of a family with their valves."""
        kind = KINDS[family]
        here = {each.id for each in await self._stores.plugins.list(family)}
        async for values in self._run.source.rows(family.value):
            row = ForeignRow(values)
            with self._run.record(kind, row.text("id"), row.text("name")):
                await self._import_plugin(row, family, here)

    async def import_models(self) -> None:
        """Store the new records of models."""
        known = {each.id: each for each in await self._stores.models.list()}
        async for values in self._run.source.rows("model"):
            row = ForeignRow(values)
            with self._run.record(ImportKind.MODEL, row.text("id"), row.text("name")):
                changes: list[str] = []
                owner = self._run.owner_of(row, changes)
                if not owner:
                    raise invalid(NO_OWNER)
                found = read_model(row, owner, self._run.now)
                if found.record.id in known:
                    self._run.ledger.present(ImportKind.MODEL)
                    continue
                check_base(found.record, known)
                grants = self._run.lists.of("model", row, self._run.known, changes)
                record = replace(found.record, grants=grants)
                if not self._run.dry_run:
                    await self._stores.models.put(record)
                known[record.id] = record
                self._run.ledger.imported(ImportKind.MODEL)
                self._run.ledger.remark(ImportKind.MODEL, record.id, record.name, [*found.changes, *changes])

    async def _import_plugin(self, row: ForeignRow, family: PluginFamily, here: set[str]) -> None:
        kind = KINDS[family]
        changes: list[str] = []
        owner = self._run.owner_of(row, changes)
        if not owner:
            raise invalid(NO_OWNER)
        found = read_plugin(row, family, owner, self._run.now)
        if found.plugin.id in here:
            self._run.ledger.present(kind)
            return
        grants: tuple[Grant, ...] = ()
        if family is PluginFamily.TOOL:
            grants = self._run.lists.of("tool", row, self._run.known, changes)
        if not self._run.dry_run:
            await self._stores.plugins.put(replace(found.plugin, grants=grants))
        here.add(found.plugin.id)
        self._run.ledger.imported(kind)
        self._run.ledger.remark(kind, found.plugin.id, found.plugin.name, [*found.changes, *changes])
