"""The whole gateway: opened in order, reloaded, closed in reverse."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayd.assembly.accounts import (
    Accounts,
    Stores,
    configured_permissions,
    configured_values,
    make_accounts,
    make_stores,
)
from gatewayd.assembly.documents import Documents, open_documents
from gatewayd.assembly.provisioning import Provisioning, make_provisioning
from gatewayd.assembly.routes import Parts, make_control, make_public
from gatewayd.assembly.sources import Sources, provider_configs, start_builtin
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.chat.interfaces import Attachments
from gatewayd.chat.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.http.app import Application
from gatewayd.http.inflight import InFlight
from gatewayd.observe.health import HealthMonitor
from gatewayd.settings import Settings
from gatewayd.storage import lock, migrate
from gatewayd.storage.database import Database
from gatewayd.storage.location import parse, refuse_network_file_system
from gatewayd.tasks import Tasks

POLL_SECONDS: Final = 0.2


@dataclass(slots=True)
class Gateway:
    """Everything that runs, for the daemon that runs it; `url` is set once the public application listens."""

    settings: Settings
    tasks: Tasks
    database: Database
    accounts: Accounts
    provisioning: Provisioning
    documents: Documents
    catalog: Catalog
    sources: Sources
    health: HealthMonitor
    in_flight: InFlight
    public: Application
    control: Application
    url: str = ""

    async def first_model(self, seconds: float) -> str | None:
        """Return the id of a model, the built-in one first, once one is listed; None when none is in time."""
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            models = await self.catalog.list_all()
            if models:
                local = [model for model in models if model.owned_by == "local"]
                return (local or models)[0].id
            if not self.sources.count:
                return None
            await asyncio.sleep(POLL_SECONDS)
        return None


async def assemble(settings: Settings, stack: AsyncExitStack) -> Gateway:
    """Open and build everything in order; `stack` closes it in reverse."""
    database = await open_database(settings, stack)
    stores = make_stores()
    accounts = await make_accounts(settings, stores, database, stack)
    tasks = Tasks()
    builtin = await start_builtin(settings, tasks)
    sources = Sources(builtin)
    stack.push_async_callback(tasks.close)
    # Closed before the tasks are: the built-in model ends in its own order.
    stack.push_async_callback(sources.close)
    documents = await open_documents(settings, accounts, database, tasks, stack)
    catalog = make_catalog(settings, stores, tasks)
    await catalog.load()
    catalog.use(sources.choose(settings))
    health, in_flight = HealthMonitor(database.ping, tasks), InFlight()
    provisioning = make_provisioning(settings, accounts)
    pipeline = make_pipeline(catalog, documents.attachments)
    parts = Parts(settings, accounts, catalog, pipeline, health, provisioning, documents)
    return Gateway(
        settings=settings,
        tasks=tasks,
        database=database,
        accounts=accounts,
        provisioning=provisioning,
        documents=documents,
        catalog=catalog,
        sources=sources,
        health=health,
        in_flight=in_flight,
        public=make_public(parts, tasks, in_flight),
        control=make_control(parts, tasks, in_flight),
    )


async def reload(gateway: Gateway, settings: Settings) -> None:
    """Apply the settings that a running daemon can: providers, and what may change at run time.

    Everything that can fail happens first, so that a bad configuration changes nothing.
    """
    provider_configs(settings)
    gateway.accounts.runtime.configure(configured_values(settings))
    gateway.accounts.permissions.configure(configured_permissions(settings))
    gateway.catalog.use(gateway.sources.choose(settings))
    await gateway.provisioning.configure(settings)
    gateway.tasks.spawn("closing replaced sources", gateway.sources.close_retired(settings.drain_timeout))
    gateway.settings = settings


async def open_database(settings: Settings, stack: AsyncExitStack) -> Database:
    """Lock the state, migrate a fresh database, refuse one of another version, and open it."""
    stack.enter_context(lock.locked(settings.data_dir))
    location = parse(settings.database_location(), settings.database_pool_size)
    if location.path is not None:
        refuse_network_file_system(location.path, _read(Path("/proc/self/mounts")))
        if _is_absent(location.path):
            await migrate.migrate(location)
    database = await stack.enter_async_context(Database.open(location))
    await database.own()
    status = await migrate.read_status(database)
    if status.is_fresh:
        await migrate.migrate_open(database)
        status = await migrate.read_status(database)
    migrate.check(status)
    return database


def make_catalog(settings: Settings, stores: Stores, tasks: Tasks) -> Catalog:
    """Return the catalogue without sources."""
    options = CatalogOptions(
        max_age=settings.models_cache_ttl,
        deadline=settings.aiohttp_client_timeout_model_list,
        bypass_all=settings.bypass_model_access_control,
        bypass_admins=settings.bypass_admin_access_control,
    )
    return Catalog(stores.models, tasks, options)


def make_pipeline(catalog: Catalog, attachments: Attachments) -> Pipeline:
    """Return the pipeline; nothing is plugged into its hooks for filters and tools yet."""
    return Pipeline(catalog, NoFilters(), attachments, NoTools())


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _is_absent(path: Path) -> bool:
    return not path.exists()
