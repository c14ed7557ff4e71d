"""Plugins: loading, management, and their places in the pipeline."""

import asyncio
import logging
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import Any

from gatewayd.assembly.accounts import AccountServices, signing_keys
from gatewayd.assembly.events import LiveServices
from gatewayd.catalog.service import Catalog
from gatewayd.ingest.files import FileService
from gatewayd.pipeline.documents.media import MediaFiles
from gatewayd.pipeline.filters.chain import PluginFilters
from gatewayd.pipeline.filters.outlets import OutletRunner
from gatewayd.pipeline.functions.actions import ActionRunner
from gatewayd.pipeline.functions.pipe_source import FunctionSource, refresh_listener
from gatewayd.pipeline.runs.message_updates import MessageUpdates
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.pipeline.tools.calls import ToolEffects
from gatewayd.pipeline.tools.plugin_tools import PluginTools
from gatewayd.pipeline.tools.toolbox import PluginToolBox
from gatewayd.plugin_host.settings import SettingsForPlugins
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.function_sync import FunctionSync
from gatewayd.plugins.installation import PluginInstaller
from gatewayd.plugins.interfaces import PluginHost, SharedWindows
from gatewayd.plugins.isolation.host_calls import QuestionParts
from gatewayd.plugins.isolation.loader import IsolatedLoader, IsolationChoice, IsolationMode
from gatewayd.plugins.isolation.process import ProcessOptions
from gatewayd.plugins.isolation.supervisor import IsolationOptions
from gatewayd.plugins.open_webui.finder import InstalledModules, install
from gatewayd.plugins.placement import PluginPlaces
from gatewayd.plugins.registry import PluginManager, PluginSources
from gatewayd.plugins.runtime.arguments import CallServices, TokenFinder
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.loader import LoadingOptions
from gatewayd.plugins.servers.records import ToolSources
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.source.check_process import SourceChecker
from gatewayd.plugins.source.requirements import InstallationOptions, RequirementsInstaller
from gatewayd.plugins.user_valves import UserValves
from gatewayd.settings import Settings
from gatewayd.settings.environment import exposed_secret, plugin_environment
from gatewayd.storage.plugins import TortoisePlugins, TortoiseUserValves
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

PACKAGES_FOLDER = "plugin-packages"


@dataclass(slots=True)
class PluginSwitches:
    """The plugin settings that a reload may change; see `gatewayd.settings.plugins`."""

    runs_outlets: bool = False
    task_model: str = ""

    def configure(self, settings: Settings) -> None:
        """Take the values of the settings."""
        self.runs_outlets = settings.enable_api_outlet_filters
        self.task_model = settings.task_model


@dataclass(slots=True)
class ExtensionServices:
    """The plugins, their management, and their parts in the pipeline."""

    registry: PluginManager
    plugins: PluginService
    places: PluginPlaces
    user_valves: UserValves
    sync: FunctionSync
    installing: PluginInstaller
    checker: SourceChecker
    filters: PluginFilters
    functions: FunctionSource
    tools: PluginToolBox
    task_models: TaskModels
    outlets: OutletRunner
    actions: ActionRunner
    switches: PluginSwitches
    names: "OpenWebuiImports"
    isolation_exceptions: frozenset[str]
    """Ids of plugins as they are in the settings."""


class OpenWebuiImports:
    """The import names of plugins, importable after `open`: the host needs services that need the plugins."""

    def __init__(self) -> None:
        self._installed: InstalledModules | None = None
        self._host: PluginHost | None = None
        self._exits = ExitStack()

    def make_request(self, scope: CallScope) -> Any:
        """Return the `__request__` of a call."""
        if self._installed is None:
            raise RuntimeError("a plugin was called before the start was complete")
        return self._installed.make_request(scope)

    def host(self) -> PluginHost:
        """Return the plugin host."""
        if self._host is None:
            raise RuntimeError("a plugin was called before the start was complete")
        return self._host

    def open(self, host: PluginHost) -> None:
        """Make the names importable; needs a running loop."""
        self._host = host
        self._exits.enter_context(exposed_secret(host.secret_key))
        self._installed = install(host, asyncio.get_running_loop())
        self._exits.callback(self._installed.close)

    def close(self) -> None:
        """Remove the names."""
        self._exits.close()


@dataclass(frozen=True, slots=True)
class PluginDependencies:
    """The services that plugins depend on."""

    settings: Settings
    accounts: AccountServices
    provider_token: TokenFinder
    live: LiveServices
    files: FileService
    catalog: Catalog
    tasks: TaskRegistry
    servers: ToolSources | None
    windows: SharedWindows | None = None


def make_extensions(parts: PluginDependencies) -> ExtensionServices:
    """Return the services; nothing is loaded before `open_extensions`."""
    settings, live, catalog = parts.settings, parts.live, parts.catalog
    secret, encrypt = signing_keys(settings), settings.enable_valve_encryption
    store, values = TortoisePlugins(secret, encrypt=encrypt), TortoiseUserValves(secret, encrypt=encrypt)
    names, switches = OpenWebuiImports(), PluginSwitches()
    switches.configure(settings)
    loop, windows = asyncio.get_running_loop(), parts.windows
    around = CallServices(
        loop, live.events, values, names.make_request, parts.provider_token, windows=windows
    )
    isolation = make_isolation(settings, QuestionParts(around, names.host), parts.tasks)
    loading = LoadingOptions(
        RequirementsInstaller(package_installation(settings)), settings.plugin_load_timeout, isolation
    )
    registry = PluginManager(store, around, loading, plugin_sources(settings), parts.tasks)
    current = parts.accounts.current.of
    access = PluginAccess(bypass_admins=settings.bypass_admin_access_control, current=current)
    filters = PluginFilters(registry, catalog.find_record, lambda: switches.runs_outlets)
    rewriting = MessageUpdates(live.stores.chats, live.stores.messages)
    # What an action returned has its place among the writes that wait, and supersedes none of them.
    deferring = MessageUpdates(live.stores.chats, live.stores.rows, live.deferred)
    functions = FunctionSource(registry, live.events, parts.tasks)
    registry.subscribe(refresh_listener(catalog, functions))
    effects = ToolEffects(live.events, MediaFiles(parts.files).keep)
    models = TaskModels(catalog, filters, lambda: switches.task_model)
    rounds = settings.chat_response_max_tool_call_iterations
    commits, freshness = parts.accounts.fresh, parts.accounts.fresh.freshness
    plugins = PluginService(registry, store, commits, access, freshness=freshness)
    checker = make_checker(settings, parts.accounts)
    return ExtensionServices(
        registry=registry,
        plugins=plugins,
        places=PluginPlaces(registry, isolation),
        sync=FunctionSync(registry, store, commits, access, freshness=freshness),
        installing=PluginInstaller(plugins, registry, checker),
        checker=checker,
        user_valves=UserValves(registry, values, access),
        filters=filters,
        functions=functions,
        tools=PluginToolBox(PluginTools(registry, access), parts.servers, catalog, effects, models, rounds),
        task_models=models,
        outlets=OutletRunner(filters, catalog, rewriting),
        actions=ActionRunner(registry, catalog, deferring, effects, parts.tasks),
        switches=switches,
        names=names,
        isolation_exceptions=frozenset(settings.plugin_isolation_exceptions),
    )


async def open_extensions(extensions: ExtensionServices, host: PluginHost, stack: AsyncExitStack) -> None:
    """Make the names importable and start to load the active plugins; `stack` ends them."""
    extensions.names.open(host)
    stack.callback(extensions.names.close)
    stack.push_async_callback(extensions.registry.close)
    await extensions.registry.open()
    if extensions.registry.is_enabled:
        _warn_of_unknown(extensions)


def _warn_of_unknown(extensions: ExtensionServices) -> None:
    """Log ids in the settings that no plugin has, such as a misspelt one."""
    known = {plugin.id for plugin in extensions.registry.list()}
    for plugin_id in sorted(extensions.isolation_exceptions - known):
        log.warning("plugin_isolation_exceptions names no plugin that there is", extra={"plugin": plugin_id})


def make_isolation(settings: Settings, answering: QuestionParts, tasks: TaskRegistry) -> IsolatedLoader:
    """Return the loader of plugins in processes of their own."""
    choice = IsolationChoice(
        IsolationMode(settings.plugin_isolation),
        frozenset(settings.plugin_isolation_exceptions),
        settings.plugin_processes,
    )
    bounds = ProcessOptions(
        settings.plugin_process_memory, settings.plugin_process_timeout, plugin_environment()
    )
    packages = package_installation(settings)
    folder = packages.directory if packages.is_enabled else None
    options = IsolationOptions(bounds, folder, settings.plugin_load_timeout, settings.debug_loggers)
    return IsolatedLoader(choice, answering, options, tasks)


def make_checker(settings: Settings, accounts: AccountServices) -> SourceChecker:
    """Return the checker of sources, with the settings at start for sources that read them."""
    configured = {name: getattr(settings, name) for name in type(settings).model_fields}
    shown = SettingsForPlugins(lambda: configured, accounts.runtime)
    return SourceChecker(package_installation(settings), settings.plugin_load_timeout, shown.all)


def plugin_sources(settings: Settings) -> PluginSources:
    """Return the sources of plugins: database, directory, built-in."""
    return PluginSources(
        directory=settings.plugins_dir,
        is_enabled=settings.enable_plugins,
        is_safe=settings.safe_mode,
    )


def package_installation(settings: Settings) -> InstallationOptions:
    """Return the options for installing packages that plugins require."""
    return InstallationOptions(
        directory=settings.data_dir / PACKAGES_FOLDER,
        is_enabled=settings.enable_pip_install_frontmatter_requirements,
        options=(
            *settings.pip_options.split(),
            *settings.pip_package_index_options.split(),
        ),
    )
