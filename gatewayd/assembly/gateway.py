"""The whole gateway: opened in order, reloaded, closed in reverse."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayd.assembly.accounts import (
    AccountServices,
    AccountStores,
    configured_permissions,
    configured_values,
    make_accounts,
    make_stores,
)
from gatewayd.assembly.documents import DocumentServices, open_documents
from gatewayd.assembly.events import LiveServices, open_live
from gatewayd.assembly.plugin_host import HostServices, make_gateway_host
from gatewayd.assembly.plugins import ExtensionServices, PluginDependencies, make_extensions, open_extensions
from gatewayd.assembly.routes import (
    RouteServices,
    StreamingRoutes,
    concurrency_rules,
    make_control,
    make_edge_services,
    make_public,
    make_streaming_routes,
)
from gatewayd.assembly.runs import AnswerServices, make_answer_services, run_options
from gatewayd.assembly.scim import ScimServices, make_provisioning
from gatewayd.assembly.sources import ConfiguredSources, provider_configs, start_builtin
from gatewayd.assembly.tool_servers import make_servers
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.http.app import Application
from gatewayd.http.connections.capacity import DescriptorBudget, public_descriptor_limits
from gatewayd.observe.health import HealthMonitor
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.settings import Settings
from gatewayd.storage.engine import lock, migrate
from gatewayd.storage.engine.checks import DatabaseCheck
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse, refuse_network_file_system
from gatewayd.storage.engine.readers import open_ping, open_reader
from gatewayd.tasks import TaskRegistry

POLL_SECONDS: Final = 0.2


@dataclass(slots=True)
class Gateway:
    """Everything that runs, for the daemon that runs it; `url` is set once the public application listens."""

    settings: Settings
    tasks: TaskRegistry
    database: Database
    accounts: AccountServices
    provisioning: ScimServices
    documents: DocumentServices
    live: LiveServices
    extensions: ExtensionServices
    answering: AnswerServices
    catalog: Catalog
    sources: ConfiguredSources
    health: HealthMonitor
    public: Application
    control: Application
    services: HostServices
    parts: RouteServices
    listening: StreamingRoutes
    url: str = ""

    async def close_streams(self) -> None:
        """Close what listens for hours; the clients come back to the next daemon."""
        self.live.hub.close()
        await self.listening.sockets.close()

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
    tasks = TaskRegistry()
    sources = ConfiguredSources(await start_builtin(settings, tasks))
    stack.push_async_callback(tasks.close)
    # Closed before the tasks are: the built-in model ends in its own order.
    stack.push_async_callback(sources.close)
    core = CoreServices(settings, database, tasks, sources)
    parts, services = await open_parts(core, stack)
    doors = make_edge_services(parts)
    listening = make_streaming_routes(parts, doors, tasks)
    return Gateway(
        settings=settings,
        tasks=tasks,
        database=database,
        accounts=parts.accounts,
        provisioning=parts.provisioning,
        documents=parts.documents,
        live=parts.live,
        extensions=parts.extensions,
        answering=parts.answering,
        catalog=parts.catalog,
        sources=sources,
        health=parts.health,
        public=make_public(parts, doors, listening, tasks),
        control=make_control(parts, tasks),
        services=services,
        parts=parts,
        listening=listening,
    )


@dataclass(frozen=True, slots=True)
class CoreServices:
    """What the services stand on."""

    settings: Settings
    database: Database
    tasks: TaskRegistry
    sources: ConfiguredSources


async def open_parts(core: CoreServices, stack: AsyncExitStack) -> tuple[RouteServices, HostServices]:
    """Return the services, and those of them that plugins reach."""
    settings, database, tasks = core.settings, core.database, core.tasks
    reader = await stack.enter_async_context(open_reader(database.location))
    stores = make_stores(reader)
    accounts = await make_accounts(settings, stores, database, stack)
    documents = await open_documents(settings, accounts, database, tasks, stack)
    ping = await stack.enter_async_context(open_ping(database))
    catalog = make_catalog(settings, stores, tasks)
    await catalog.load()
    live = await open_live(settings, accounts, tasks, stack)
    servers = make_servers(settings, tasks, stack)
    extensions = make_extensions(
        PluginDependencies(settings, accounts, live, documents.files, catalog, tasks, servers.tools)
    )
    pipeline = Pipeline(catalog, extensions.filters, documents.attachments, extensions.tools)
    services = HostServices(settings, accounts, documents, live, catalog, pipeline, extensions)
    await open_extensions(extensions, make_gateway_host(services), stack)
    core.sources.add(extensions.functions)
    catalog.use(core.sources.choose(settings))
    pool_size = 0 if database.location.is_sqlite else settings.database_pool_size
    room = DescriptorBudget(public_descriptor_limits(pool_size), concurrency_rules(settings))
    answering = make_answer_services(catalog, pipeline, live, extensions, tasks, room)
    answering.runs.configure(run_options(settings))
    parts = RouteServices(
        settings=settings,
        accounts=accounts,
        catalog=catalog,
        pipeline=pipeline,
        health=HealthMonitor(ping, tasks, database.location.server),
        database_check=DatabaseCheck(database),
        provisioning=make_provisioning(settings, accounts, reader),
        documents=documents,
        live=live,
        extensions=extensions,
        answering=answering,
        servers=servers,
        room=room,
    )
    return parts, services


async def reload(gateway: Gateway, settings: Settings) -> None:
    """Apply the settings that a running daemon can: providers, and what may change at run time.

    Everything that can fail happens first, so that a bad configuration changes nothing.
    """
    provider_configs(settings)
    gateway.accounts.runtime.configure(configured_values(settings))
    gateway.accounts.permissions.configure(configured_permissions(settings))
    gateway.catalog.use(gateway.sources.choose(settings))
    gateway.extensions.switches.configure(settings)
    gateway.answering.runs.configure(run_options(settings))
    await gateway.extensions.registry.reload()
    gateway.provisioning.configure(settings)
    gateway.tasks.spawn("closing replaced sources", gateway.sources.close_retired(settings.drain_timeout))
    gateway.settings = gateway.services.settings = settings


async def open_database(settings: Settings, stack: AsyncExitStack) -> Database:
    """Lock the state, migrate a fresh database, refuse one of another version, and open it."""
    stack.enter_context(lock.lock_folder(settings.data_dir))
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


def make_catalog(settings: Settings, stores: AccountStores, tasks: TaskRegistry) -> Catalog:
    """Return the catalogue without sources."""
    options = CatalogOptions(
        max_age=settings.models_cache_ttl,
        deadline=settings.aiohttp_client_timeout_model_list,
        bypass_all=settings.bypass_model_access_control,
        bypass_admins=settings.bypass_admin_access_control,
    )
    return Catalog(stores.models, tasks, options)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _is_absent(path: Path) -> bool:
    return not path.exists()
