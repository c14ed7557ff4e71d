"""The host of plugins over the real services, whose stores are in memory."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatewayd.accounts.records import Role, User
from gatewayd.catalog.records import EVERYBODY, Grant, ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.dialects import openai
from gatewayd.knowledge.process_now import SynchronousProcessing
from gatewayd.knowledge.retrieval import SearchOptions
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.pipeline.functions.pipe_source import FunctionSource
from gatewayd.pipeline.interfaces import Attachments, ChatFilters
from gatewayd.pipeline.pipeline import NoDocuments, NoFilters, Pipeline
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.pipeline.tools.calls import ToolEffects
from gatewayd.pipeline.tools.plugin_tools import PluginTools
from gatewayd.pipeline.tools.toolbox import PluginToolBox
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugin_host.chats import ChatsForPlugins
from gatewayd.plugin_host.completions import CompletionServices, CompletionsForPlugins
from gatewayd.plugin_host.files import FilesForPlugins
from gatewayd.plugin_host.knowledge import KnowledgeForPlugins
from gatewayd.plugin_host.models import ModelsForPlugins
from gatewayd.plugin_host.plugins import PluginsForPlugins
from gatewayd.plugin_host.settings import SettingsForPlugins, derive_secret
from gatewayd.plugin_host.users import UsersForPlugins
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules, install
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.user_valves import UserValves
from tests.fakes.documents.site import DocumentServices
from tests.fakes.plugins.memory import NotedEvents, Plugged, make_registry
from tests.fakes.providers.models import FakeRecords, FakeSource, make_model
from tests.fakes.storage.chats_site import ChatHouse
from tests.fakes.storage.memory_chats import MemoryEffects

SMALL = ModelRecord("small", "root", "Small", params={"top_k": 3}, grants=(Grant("user", EVERYBODY, "read"),))


@dataclass
class Hosting:
    """A host, what is behind it, and two accounts."""

    host: PluginHost
    documents: DocumentServices
    chats: ChatHouse
    source: FakeSource
    catalog: Catalog
    plugged: Plugged
    actors: PluginActors
    ann: User
    admin: User

    @property
    def events(self) -> NotedEvents:
        return self.plugged.events


@dataclass(frozen=True)
class Wishes:
    """What a test wants otherwise."""

    plugins: Sequence[Plugin] = ()
    filters: ChatFilters = field(default_factory=NoFilters)
    attachments: Attachments = field(default_factory=NoDocuments)
    configured: Mapping[str, Any] = field(default_factory=dict)
    has_names: bool = False


class Requests:
    """Makes the requests of plugins, once the import names are there."""

    installed: InstalledModules | None = None

    def __call__(self, scope: CallScope) -> Any:
        assert self.installed is not None
        return self.installed.make_request(scope)


@asynccontextmanager
async def hosting(folder: Path, wishes: Wishes | None = None) -> AsyncIterator[Hosting]:
    """Open a host with the model `small`, which every account may use, and `dear`, which only administrators
    may; files are processed as they come."""
    wishes = wishes or Wishes()
    documents, requests = DocumentServices(folder / "files"), Requests()
    house = ChatHouse(documents.accounts)
    source = FakeSource(models=[make_model("small"), make_model("dear")])
    plugged = make_registry(*wishes.plugins, make_request=requests)
    async with plugged:
        catalog = Catalog(FakeRecords({"small": SMALL}), plugged.tasks, CatalogOptions())
        await catalog.load()
        functions = FunctionSource(plugged.registry, plugged.events, plugged.tasks)
        catalog.use([source, functions])  # type: ignore[list-item]
        tools, effects = PluginTools(plugged.registry), ToolEffects(plugged.events)
        toolbox = PluginToolBox(tools, None, catalog, effects, TaskModels(catalog, NoFilters()))
        pipeline = Pipeline(catalog, wishes.filters, wishes.attachments, toolbox)
        accounts = documents.accounts
        actors = PluginActors(accounts.users, accounts.rules, accounts.permissions)
        completions = CompletionServices(catalog, pipeline, wishes.filters, openai, house.chats.find_owner)
        host = PluginHost(
            users=UsersForPlugins(accounts.users, accounts.groups, actors),
            chats=ChatsForPlugins(house.chats, house.tags, MemoryEffects(house.state), actors),
            files=file_host(documents, actors),
            models=ModelsForPlugins(catalog, actors),
            completions=CompletionsForPlugins(completions, documents.spaces, actors),
            plugins=plugin_host(plugged, documents, toolbox, actors),
            knowledge=knowledge_host(documents, actors),
            settings=SettingsForPlugins(lambda: wishes.configured, accounts.runtime),
            data_dir=folder / "plugin-data",
            secret_key=derive_secret("the secret of the tokens"),
        )
        if wishes.has_names:
            requests.installed = install(host, asyncio.get_running_loop())
        await documents.spaces.open()
        documents.queue.start()
        try:
            yield Hosting(
                host,
                documents,
                house,
                source,
                catalog,
                plugged,
                actors,
                await accounts.add_user("ann"),
                await accounts.add_user("root", Role.ADMIN),
            )
        finally:
            if requests.installed is not None:
                requests.installed.close()
            await documents.queue.close()
            await house.tasks.close()
            await documents.tasks.close()


def file_host(documents: DocumentServices, actors: PluginActors) -> FilesForPlugins:
    processing = SynchronousProcessing(documents.files, documents.members)
    return FilesForPlugins(documents.files, documents.uploads, processing, actors)


def knowledge_host(documents: DocumentServices, actors: PluginActors) -> KnowledgeForPlugins:
    scopes = ScopeResolver(documents.files, documents.collections)
    return KnowledgeForPlugins(documents.collections, scopes, documents.retrieval, SearchOptions(), actors)


def plugin_host(
    plugged: Plugged, documents: DocumentServices, toolbox: PluginToolBox, actors: PluginActors
) -> PluginsForPlugins:
    access = PluginAccess()
    plugins = PluginService(plugged.registry, plugged.store, documents.accounts.commits, access)
    user_valves = UserValves(plugged.registry, plugged.user_valves, access)
    return PluginsForPlugins(plugged.registry, plugins, user_valves, toolbox, actors)
