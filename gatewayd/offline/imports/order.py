"""The order `import.open-webui`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatewayd import ids
from gatewayd.accounts.change_notifier import AccountChangeNotifier
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.assembly.accounts import configured_permissions, configured_values, signing_keys
from gatewayd.assembly.file_store import make_file_stores, open_file_stores
from gatewayd.backup.places import SIGNING_FILE
from gatewayd.encryption import SecretKeys
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.imports.interfaces import ForeignDatabase
from gatewayd.ingest.updates import IngestStores
from gatewayd.offline.imports.accounts import AccountImport
from gatewayd.offline.imports.configuration import ConfigurationImport
from gatewayd.offline.imports.conversations import ConversationImport
from gatewayd.offline.imports.documents import DocumentImport
from gatewayd.offline.imports.leftovers import check_source, note_leftovers
from gatewayd.offline.imports.run import ImportRun, ImportStores
from gatewayd.offline.imports.uploads import UploadDirectory, open_uploads
from gatewayd.offline.imports.workspace import WorkspaceImport
from gatewayd.offline.place import OfflineGateway
from gatewayd.plugins.records import PluginFamily
from gatewayd.settings import Settings
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine import migrate
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.lock import lock_folder, refuse_interrupted
from gatewayd.storage.engine.readers import open_reader
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.folders import TortoiseFolders
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.plugins import TortoisePlugins, TortoiseUserValves
from gatewayd.storage.providers import TortoiseProviders
from gatewayd.storage.search.passages import TortoisePassages
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.tool_servers import TortoiseToolServers
from gatewayd.storage.transfer.foreign_source import open_foreign_file, open_foreign_server
from gatewayd.storage.users import TortoiseUsers
from gatewayd.transactions import CallbackTransactor

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GivenImport:
    """What an import reads, opened as the caller's user; `file` is None for a server at `address`."""

    address: str
    file: ForeignDatabase | None
    uploads: UploadDirectory | None


@contextmanager
def open_given(database: str, uploads: Path | None) -> Iterator[GivenImport]:
    """Open the files of an import; `database` is a path, or an address as of the setting database_url."""
    if not database:
        raise invalid("cannot import: no database is named", param="database")
    path = Path(database)
    if "://" in database:
        location = parse(database)
        path = location.path or Path()
        if location.path is None:
            with nullcontext(None) if uploads is None else open_uploads(uploads) as directory:
                yield GivenImport(database, None, directory)
            return
    opened = nullcontext(None) if uploads is None else open_uploads(uploads)
    with open_foreign_file(path) as file, opened as directory:
        yield GivenImport(str(path), file, directory)


def import_open_webui(
    gateway: OfflineGateway, given: GivenImport, *, dry_run: bool, progress: Progress
) -> Mapping[str, Any]:
    """Import a database of Open WebUI and return the report.

    Raises conflict while a daemon runs; with `dry_run` one may run, and nothing is written.
    """
    data_dir = gateway.place.data_dir
    path = gateway.place.location.path
    if path is not None and not path.exists():
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot import: there is no database {path}; run gatewayctl database migrate first",
        )
    with nullcontext() if dry_run else lock_folder(data_dir):
        refuse_interrupted(data_dir)
        return asyncio.run(_import(gateway, given, dry_run=dry_run, progress=progress))


async def _import(
    gateway: OfflineGateway, given: GivenImport, *, dry_run: bool, progress: Progress
) -> Mapping[str, Any]:
    async with AsyncExitStack() as stack:
        source, address = given.file, given.address
        if source is None:
            location = parse(given.address)
            source, address = await stack.enter_async_context(open_foreign_server(location)), location.address
        check_source(source, address)
        database = await stack.enter_async_context(Database.open(gateway.place.location))
        if not dry_run:
            await database.own()
        migrate.check(await migrate.read_status(database))
        stores = await stack.enter_async_context(_open_stores(gateway.settings, database, dry_run=dry_run))
        run = ImportRun(source, given.uploads, stores, ids.now(), dry_run, progress)
        await _run_all(run, gateway.settings)
    return {
        "source": address,
        "dry_run": dry_run,
        "has_changed": run.ledger.has_imported and not dry_run,
        **run.ledger.report(),
    }


async def _run_all(run: ImportRun, settings: Settings) -> None:
    """Run the steps, each of which needs what the ones before have found."""
    await run.load_lists()
    accounts = AccountImport(run)
    run.progress("reading the users")
    await accounts.map_users()
    run.progress("importing groups")
    await accounts.import_groups()
    run.progress("importing users")
    await accounts.import_users()
    documents = DocumentImport(run, frozenset(settings.rag_allowed_file_extensions))
    await documents.load()
    run.progress("importing collections")
    await documents.import_collections()
    run.progress("importing files")
    await documents.import_files()
    chats = ConversationImport(run)
    run.progress("importing chats")
    await chats.import_folders()
    await chats.import_chats()
    workspace = WorkspaceImport(run)
    run.progress("importing functions, tools and models")
    for family in PluginFamily:
        await workspace.import_plugins(family)
    await workspace.import_models()
    run.progress("importing settings")
    await (await _configuration(run, settings)).run()
    await note_leftovers(run.source, run.ledger)


async def _configuration(run: ImportRun, settings: Settings) -> ConfigurationImport:
    changes = AccountChangeNotifier()
    persistent = settings.enable_persistent_config
    runtime = RuntimeSettings(run.stores.values, configured_values(settings), persistent, changes)
    await runtime.load()
    permissions = Permissions(run.stores.values, configured_permissions(settings), changes)
    configured = {each.name: str(each.base_url) for _, each in settings.listed_providers()}
    return ConfigurationImport(run, runtime, permissions.initial(), configured)


@asynccontextmanager
async def _open_stores(
    settings: Settings, database: Database, *, dry_run: bool
) -> AsyncIterator[ImportStores]:
    """Open the stores; unless it is a dry run, what unfinished uploads left is removed, as at each start."""
    secret, encrypt = _secret(settings, dry_run=dry_run), settings.enable_valve_encryption
    files = TortoiseFiles()
    # Opening writes to a bucket, and deletes the copies that a running daemon lends.
    blobs = (make_file_stores(settings) if dry_run else await open_file_stores(settings)).documents
    if not dry_run:
        await blobs.sweep(files.blob_keys())
    async with open_reader(database.location) as reader:
        yield ImportStores(
            users=TortoiseUsers(),
            groups=TortoiseGroups(),
            keys=TortoiseKeys(),
            chats=TortoiseChats(),
            folders=TortoiseFolders(),
            collections=TortoiseCollections(),
            plugins=TortoisePlugins(secret, encrypt=encrypt),
            valves=TortoiseUserValves(secret, encrypt=encrypt),
            models=TortoiseModels(),
            values=TortoiseValues(),
            providers=TortoiseProviders(secret),
            tool_servers=TortoiseToolServers(),
            ingest=IngestStores(
                transactor=CallbackTransactor(database),
                files=files,
                jobs=TortoiseJobs(),
                passages=TortoisePassages(reader),
                blobs=blobs,
            ),
        )


def _secret(settings: Settings, *, dry_run: bool) -> SecretKeys:
    """Return the secret that encrypts; a dry run makes none, without which nothing is encrypted yet."""
    has_one = settings.webui_secret_key.get_secret_value() or (settings.data_dir / SIGNING_FILE).exists()
    if dry_run and not has_one:
        return SecretKeys(ids.new_secret().encode())
    return signing_keys(settings)
