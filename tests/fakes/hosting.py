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
from gatewayd.knowledge.retrieval import SearchOptions
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.pipeline.functions.source import FunctionSource
from gatewayd.pipeline.interfaces import Attachments, ChatFilters
from gatewayd.pipeline.pipeline import NoDocuments, NoFilters, Pipeline
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.pipeline.tools.calls import ToolEffects
from gatewayd.pipeline.tools.plugin_tools import PluginTools
from gatewayd.pipeline.tools.toolbox import PluginToolBox
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugin_host.builder import (
    HostAccountParts,
    HostChatParts,
    HostDocumentParts,
    HostModelParts,
    HostParts,
    HostPluginParts,
    make_host,
)
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules, install
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.user_valves import UserValves
from tests.fakes.chats import MemoryEffects
from tests.fakes.chats_site import ChatHouse
from tests.fakes.documents_site import DocumentServices
from tests.fakes.models import FakeRecords, FakeSource, make_model
from tests.fakes.plugins import NotedEvents, Plugged, make_registry

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
        host = make_host(
            HostParts(
                accounts=account_parts(documents),
                documents=document_parts(documents),
                chats=HostChatParts(house.chats, house.tags, MemoryEffects(house.state)),
                models=HostModelParts(catalog, pipeline, wishes.filters, openai),
                plugins=plugin_parts(plugged, documents, toolbox),
                configured=lambda: wishes.configured,
                data_dir=folder / "plugin-data",
                secret_key="the secret of the tokens",
            )
        )
        if wishes.has_names:
            requests.installed = install(host, asyncio.get_running_loop())
        accounts = documents.accounts
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
                PluginActors(accounts.users, accounts.rules, accounts.permissions),
                await accounts.add_user("ann"),
                await accounts.add_user("root", Role.ADMIN),
            )
        finally:
            if requests.installed is not None:
                requests.installed.close()
            await documents.queue.close()
            await house.tasks.close()
            await documents.tasks.close()


def account_parts(documents: DocumentServices) -> HostAccountParts:
    accounts = documents.accounts
    return HostAccountParts(
        accounts.users, accounts.groups, accounts.rules, accounts.permissions, accounts.runtime
    )


def document_parts(documents: DocumentServices) -> HostDocumentParts:
    return HostDocumentParts(
        files=documents.files,
        uploads=documents.uploads,
        members=documents.members,
        collections=documents.collections,
        scopes=ScopeResolver(documents.files, documents.collections),
        retrieval=documents.retrieval,
        search=SearchOptions(),
        spaces=documents.spaces,
    )


def plugin_parts(plugged: Plugged, documents: DocumentServices, toolbox: PluginToolBox) -> HostPluginParts:
    access = PluginAccess()
    plugins = PluginService(plugged.registry, plugged.store, documents.accounts.commits, access)
    user_valves = UserValves(plugged.registry, plugged.user_valves, access)
    return HostPluginParts(plugged.registry, plugins, user_valves, toolbox)
