"""The gateway as a whole: opened in order, reloaded, closed in reverse."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from gatewayd.assembly.accounts import (
    AccountServices,
    AccountStores,
    configured_permissions,
    configured_values,
    forget_former,
    make_accounts,
    make_stores,
    signing_keys,
)
from gatewayd.assembly.batches import BatchStorage, PassingServices, make_batch_requests, open_batches
from gatewayd.assembly.cluster.changes import watch_changes
from gatewayd.assembly.cluster.services import ChangeServices, open_changes
from gatewayd.assembly.consumption.limits import groups_of, make_quotas, open_limits
from gatewayd.assembly.documents import DocumentServices, open_documents
from gatewayd.assembly.events import LiveServices, open_live
from gatewayd.assembly.identity import IdentityServices, make_identity
from gatewayd.assembly.media_routes import reranker_sources
from gatewayd.assembly.metrics.metering import MeteringServices, make_metering, price_rules
from gatewayd.assembly.metrics.services import open_monitoring
from gatewayd.assembly.plugin_host import make_gateway_host
from gatewayd.assembly.plugins import ExtensionServices, PluginDependencies, make_extensions, open_extensions
from gatewayd.assembly.providers import configured_providers, make_providers
from gatewayd.assembly.resumption import open_resumption
from gatewayd.assembly.routes import (
    StreamingRoutes,
    concurrency_rules,
    make_control,
    make_edge_services,
    make_public,
    make_streaming_routes,
)
from gatewayd.assembly.runs import make_answer_services, run_options
from gatewayd.assembly.scim import make_provisioning
from gatewayd.assembly.services import GatewayServices
from gatewayd.assembly.sources import ConfiguredSources, provider_configs, start_builtin
from gatewayd.assembly.tool_servers import ToolServerServices, make_servers
from gatewayd.assembly.upkeep.age_limits import age_limits, make_age_limits
from gatewayd.assembly.upkeep.audit import AuditServices, open_audit
from gatewayd.assembly.upkeep.nodes import (
    ClusterServices,
    make_run_register,
    new_node_id,
    open_cluster,
    start_reaper,
)
from gatewayd.bus.redis_windows import RedisWindows
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.events.hub import Hub
from gatewayd.http.app import Application
from gatewayd.http.connections.capacity import DescriptorBudget, public_descriptor_limits
from gatewayd.limits.storage_quotas import StorageQuotas
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.recorder import UsageRecorder
from gatewayd.metering.service_calls import ServiceCalls
from gatewayd.observe.health import HealthMonitor
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.settings import Settings
from gatewayd.storage.engine import lock, migrate
from gatewayd.storage.engine.checks import DatabaseCheck
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import location_of_node, parse, refuse_network_file_system
from gatewayd.storage.engine.readers import PoolReader, SqliteReader, open_ping, open_reader
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.storage.transfer.renewal import renew_secrets
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import Transactor

POLL_SECONDS: Final = 0.2

MODELS_LOCK: Final = "model records"
"""Name of the lock that serialises changes of model records across processes."""

REDIS_PARTS: Final = (
    "events of other nodes",
    "event tickets",
    "calls and tasks of other nodes",
    "limits of all nodes",
)
"""What does not work while Redis is away."""


@dataclass(slots=True)
class Gateway:
    """The services and the two applications over them; `url` is set once the public application listens."""

    services: GatewayServices
    public: Application
    control: Application
    streaming: StreamingRoutes
    url: str = ""

    async def close_streams(self) -> None:
        """Close event streams and sockets; the clients reconnect to the next daemon."""
        self.services.live.hub.close()
        await self.streaming.sockets.close()

    async def first_model(self, seconds: float) -> str | None:
        """Return the id of a model, the built-in one first, once one is listed; None when none is in time."""
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            models = await self.services.catalog.list_all()
            if models:
                local = [model for model in models if model.owned_by == "local"]
                return (local or models)[0].id
            if not self.services.sources.count:
                return None
            await asyncio.sleep(POLL_SECONDS)
        return None


async def assemble(settings: Settings, stack: AsyncExitStack) -> Gateway:
    """Open and build everything in order; `stack` closes it in reverse."""
    node_id = new_node_id(settings)
    database = await open_database(settings, stack, node_id)
    await renew_secrets(database, signing_keys(settings))
    forget_former(settings)
    usage = UsageRecorder(TortoiseUsage())
    # The last calls end when the tasks and sources are closed.
    stack.push_async_callback(usage.flush)
    tasks = TaskRegistry()
    # The node leaves after the tasks have ended.
    cluster = await open_cluster(settings, database, node_id, tasks, stack)
    sources = ConfiguredSources(await start_builtin(settings, tasks))
    stack.push_async_callback(tasks.close)
    # Closed before the tasks are: the built-in model ends in its own order.
    stack.push_async_callback(sources.close)
    services = await open_services(settings, database, cluster, tasks, sources, usage, stack)
    edge = make_edge_services(services)
    streaming = make_streaming_routes(services, edge)
    return Gateway(services, make_public(services, edge, streaming), make_control(services), streaming)


@dataclass(frozen=True, slots=True)
class BaseServices:
    """The services that the others are made of."""

    stores: AccountStores
    reader: SqliteReader | PoolReader
    change_log: ChangeServices
    accounts: AccountServices
    quotas: StorageQuotas
    documents: DocumentServices
    metering: MeteringServices
    catalog: Catalog
    live: LiveServices
    servers: ToolServerServices
    audit: AuditServices


async def open_base(
    settings: Settings,
    database: Database,
    cluster: ClusterServices,
    tasks: TaskRegistry,
    usage: UsageRecorder,
    stack: AsyncExitStack,
) -> BaseServices:
    """Return the services of accounts, documents, models, events, tool servers, metering and the audit."""
    reader = await stack.enter_async_context(open_reader(database.location))
    stores = make_stores(reader, signing_keys(settings))
    # Before anything of the database is remembered.
    change_log = await open_changes(settings, database)
    accounts = await make_accounts(settings, stores, database, stack, change_log.freshness, cluster.redis)
    quotas = make_quotas(accounts, stores)
    metering = make_metering(settings, usage, reader, tasks)
    calls = ServiceCalls(metering.meter, partial(groups_of, stores), tasks)
    documents = await open_documents(settings, accounts, database, quotas, cluster, calls, tasks, stack)
    catalog = await open_catalog(settings, stores, tasks, metering.meter, accounts.fresh)
    live = await open_live(settings, accounts, tasks, stack, is_node=cluster.member is not None)
    servers = make_servers(settings, tasks, stack, accounts.commits)
    audit = await open_audit(settings, database, tasks)
    return BaseServices(
        stores, reader, change_log, accounts, quotas, documents, metering, catalog, live, servers, audit
    )


async def open_services(
    settings: Settings,
    database: Database,
    cluster: ClusterServices,
    tasks: TaskRegistry,
    sources: ConfiguredSources,
    usage: UsageRecorder,
    stack: AsyncExitStack,
) -> GatewayServices:
    """Return the services, with the plugins loaded and their models among the sources."""
    base = await open_base(settings, database, cluster, tasks, usage, stack)
    stores, accounts, quotas, documents = base.stores, base.accounts, base.quotas, base.documents
    catalog, live, servers = base.catalog, base.live, base.servers
    identity = make_identity(settings, accounts, stores)
    extensions = make_extensions(plugin_dependencies(settings, base, identity, cluster, tasks))
    pipeline = make_pipeline(catalog, documents, extensions)
    room = make_room(settings, database)
    runs = make_run_register(cluster, live.deferred, accounts.commits, tasks, live.messages)
    answering = make_answer_services(
        catalog, pipeline, live, extensions, tasks, room, documents.files, settings, runs
    )
    requests = make_batch_requests(catalog, pipeline, extensions.filters, answering)
    passing = PassingServices(catalog, extensions.filters, pipeline.reasoning)
    has_rows = not database.location.is_sqlite
    blobs = documents.file_stores.batches
    storage = BatchStorage(quotas, blobs, bool(cluster.node_id), cluster.duties, has_rows)
    batches = await open_batches(settings, stores, accounts, requests, room, tasks, passing, storage)
    services = GatewayServices(
        settings=settings,
        tasks=tasks,
        database=database,
        cluster=cluster,
        database_check=DatabaseCheck(database),
        change_log=base.change_log,
        audit=base.audit,
        health=await open_health(database, cluster, live.hub, tasks, stack),
        sources=sources,
        accounts=accounts,
        identity=identity,
        provisioning=make_provisioning(settings, accounts, base.reader, stores.identities),
        catalog=catalog,
        providers=make_providers(settings, lambda: services.settings, accounts.fresh),
        pipeline=pipeline,
        documents=documents,
        live=live,
        servers=servers,
        extensions=extensions,
        answering=answering,
        batches=batches,
        room=room,
        metering=base.metering,
        resumption=await open_resumption(
            settings, signing_keys(settings), tasks, room, accounts.changes, live.messages, cluster.node_id
        ),
        limits=await open_limits(settings, catalog, live, quotas, tasks, stack, cluster),
        age_limits=make_age_limits(settings, live, documents, base.audit, accounts.commits, tasks),
        monitoring=open_monitoring(settings, catalog.meter, stack),
    )
    await start_services(services, stores, stack)
    return services


def plugin_dependencies(
    settings: Settings,
    base: BaseServices,
    identity: IdentityServices,
    cluster: ClusterServices,
    tasks: TaskRegistry,
) -> PluginDependencies:
    """Return the services that plugins depend on."""
    windows = None
    if cluster.redis is not None:
        windows = RedisWindows(cluster.redis, is_closed=cluster.refuses_without_redis)
    return PluginDependencies(
        settings,
        base.accounts,
        identity.tokens.of,
        base.live,
        base.documents.files,
        base.catalog,
        tasks,
        base.servers.tools,
        windows,
    )


async def start_services(services: GatewayServices, stores: AccountStores, stack: AsyncExitStack) -> None:
    """Load providers, plugins and SCIM tokens, then follow the other nodes and take over from dead ones."""
    await open_sources(services, stack)
    await services.provisioning.keeper.open()
    watch_changes(services, stores)
    left = [
        services.live.answers.end_unclaimed,
        services.resumption.streams.resume,
        services.limits.limits.close_open,
    ]
    start_reaper(services.cluster, services.tasks, left)


async def open_health(
    database: Database, cluster: ClusterServices, hub: Hub, tasks: TaskRegistry, stack: AsyncExitStack
) -> HealthMonitor:
    """Return the monitor of the health, with a connection of its own to the database."""
    ping = await stack.enter_async_context(open_ping(database))
    member = cluster.member
    return HealthMonitor(
        ping,
        tasks,
        database.location.server,
        lambda: member is not None and member.is_draining,
        lambda: () if hub.is_whole else REDIS_PARTS,
    )


def make_pipeline(catalog: Catalog, documents: DocumentServices, extensions: ExtensionServices) -> Pipeline:
    """Return the pipeline of all chat requests."""
    return Pipeline(
        catalog,
        extensions.filters,
        documents.attachments,
        extensions.tools,
    )


def make_room(settings: Settings, database: Database) -> DescriptorBudget:
    """Return the budget of descriptors of the public application."""
    pool_size = 0 if database.location.is_sqlite else settings.database_pool_size
    return DescriptorBudget(public_descriptor_limits(pool_size), concurrency_rules(settings))


async def open_sources(services: GatewayServices, stack: AsyncExitStack) -> None:
    """Load the managed providers and the plugins, and use the sources of all."""
    providers, extensions = services.providers, services.extensions
    await providers.load()
    await open_extensions(extensions, make_gateway_host(services), stack)
    reranker = services.documents.engines.embedding.reranker
    for source in (extensions.functions, *reranker_sources(services.settings, reranker)):
        services.sources.add(source)
    use_providers(services)
    providers.on_change = partial(use_providers, services)


def use_providers(services: GatewayServices) -> None:
    """Use the sources of the settings and of the managed providers; answers of replaced ones go on."""
    services.catalog.use(services.sources.choose(services.settings, services.providers))
    if services.sources.has_retired:
        closing = services.sources.close_retired(services.settings.drain_timeout)
        services.tasks.spawn("closing replaced sources", closing)


async def reload(gateway: Gateway, settings: Settings) -> None:
    """Apply the settings that may change at run time, providers among them.

    Everything that can fail happens first, so that a bad configuration changes nothing.
    """
    provider_configs(settings)
    services = gateway.services
    services.monitoring.configure(settings)
    services.accounts.runtime.configure(configured_values(settings))
    services.accounts.permissions.configure(configured_permissions(settings))
    services.settings = settings
    services.providers.configure(configured_providers(settings))
    use_providers(services)
    services.extensions.switches.configure(settings)
    services.answering.runs.configure(run_options(settings))
    services.resumption.configure(settings)
    services.limits.configure(settings)
    services.audit.configure(settings)
    services.age_limits.limits = age_limits(settings)
    services.metering.prices.configure(price_rules(settings))
    await services.extensions.registry.reload()
    services.identity.configure(settings)
    await services.provisioning.configure(settings)


async def open_database(settings: Settings, stack: AsyncExitStack, node_id: str = "") -> Database:
    """Lock the state, migrate a fresh database, refuse one of another version, and open it."""
    stack.enter_context(lock.lock_folder(settings.data_dir))
    lock.refuse_interrupted(settings.data_dir)
    location = parse(settings.database_location(), settings.database_pool_size)
    if node_id:
        location = location_of_node(location, node_id)
    if location.path is not None:
        refuse_network_file_system(location.path, _read(Path("/proc/self/mounts")))
        if _is_absent(location.path):
            await migrate.migrate(location)
    database = await stack.enter_async_context(Database.open(location))
    await database.own(shared=settings.cluster)
    status = await migrate.read_status(database)
    if status.is_fresh:
        await migrate.migrate_open(database)
        status = await migrate.read_status(database)
    migrate.check(status)
    return database


async def open_catalog(
    settings: Settings, stores: AccountStores, tasks: TaskRegistry, meter: CallMeter, commits: Transactor
) -> Catalog:
    """Return the catalogue with its records, without sources."""
    catalog = make_catalog(settings, stores, tasks, meter, commits)
    await catalog.load()
    return catalog


def make_catalog(
    settings: Settings, stores: AccountStores, tasks: TaskRegistry, meter: CallMeter, commits: Transactor
) -> Catalog:
    """Return the catalogue without sources."""
    options = CatalogOptions(
        max_age=settings.models_cache_ttl,
        deadline=settings.aiohttp_client_timeout_model_list,
        alias_prefix=settings.anthropic_model_alias_prefix,
        bypass_all=settings.bypass_model_access_control,
        bypass_admins=settings.bypass_admin_access_control,
    )
    return Catalog(
        stores.models, tasks, options, meter=meter, changing=partial(commits.exclusive, MODELS_LOCK)
    )


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _is_absent(path: Path) -> bool:
    return not path.exists()
