"""What all steps of one import share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.imports.access import GRANTS, AccessLists, KnownPrincipals
from gatewayd.imports.interfaces import ForeignDatabase
from gatewayd.imports.records import ImportKind, ImportLedger
from gatewayd.imports.rows import ForeignRow
from gatewayd.ingest.updates import IngestStores
from gatewayd.offline.imports.uploads import UploadDirectory
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.folders import TortoiseFolders
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.plugins import TortoisePlugins, TortoiseUserValves
from gatewayd.storage.providers import TortoiseProviders
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.tool_servers import TortoiseToolServers
from gatewayd.storage.users import TortoiseUsers
from gatewayd.transactions import Transactor

OF_THE_RECORD: Final = frozenset(
    {ErrorKind.INVALID_REQUEST, ErrorKind.CONFLICT, ErrorKind.TOO_LARGE, ErrorKind.NOT_FOUND}
)
"""Kinds of errors that concern one record; all others end the import."""

NO_OWNER: Final = "its user is not imported"
SHARED: Final = "shared-"
"""Beginning of the user of a copy of a shared chat in older versions; the id of the chat follows."""


@dataclass(frozen=True, slots=True)
class ImportStores:
    """The stores that an import writes to."""

    users: TortoiseUsers
    groups: TortoiseGroups
    keys: TortoiseKeys
    chats: TortoiseChats
    folders: TortoiseFolders
    collections: TortoiseCollections
    plugins: TortoisePlugins
    valves: TortoiseUserValves
    models: TortoiseModels
    values: TortoiseValues
    providers: TortoiseProviders
    tool_servers: TortoiseToolServers
    ingest: IngestStores

    @property
    def transactor(self) -> Transactor:
        """The transactions of the database."""
        return self.ingest.transactor


@dataclass(slots=True)
class ImportRun:
    """One import. With `dry_run` nothing is stored, and everything is decided as if it were.

    `fallback_owner` is the administrator who gets what belongs to nobody here, "" without one. `new_users`
    are the ids of accounts that this run adds.
    """

    source: ForeignDatabase
    uploads: UploadDirectory | None
    stores: ImportStores
    now: int
    dry_run: bool
    progress: Callable[[str], None]
    ledger: ImportLedger = field(default_factory=ImportLedger)
    known: KnownPrincipals = field(default_factory=KnownPrincipals)
    lists: AccessLists = field(default_factory=lambda: AccessLists(None))
    new_users: set[str] = field(default_factory=set)
    fallback_owner: str = ""

    async def load_lists(self) -> None:
        """Read the access lists of the source."""
        if GRANTS in self.source.columns:
            self.lists = AccessLists([ForeignRow(row) async for row in self.source.rows(GRANTS)])

    @contextmanager
    def record(self, kind: ImportKind, record_id: str, name: str) -> Iterator[None]:
        """Run a block for one record; an error that concerns it leaves it out."""
        try:
            yield
        except GatewayError as error:
            if error.kind not in OF_THE_RECORD:
                raise
            self.ledger.leave_out(kind, record_id, name, error.message)

    def owner_of(self, row: ForeignRow, changes: list[str]) -> str:
        """Return the owner of a record that everybody may use, "" if nobody can own it."""
        found = self.known.users.get(row.text("user_id"))
        if found is None and self.fallback_owner:
            changes.append("its user is not here, it belongs to the first administrator")
            return self.fallback_owner
        return found or ""
