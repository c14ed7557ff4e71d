"""The host of plugins, made of services."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.accounts.users import Users
from gatewayd.catalog.service import Catalog
from gatewayd.chats.service import Chats
from gatewayd.chats.tags import ChatTags
from gatewayd.events.interfaces import MessageEffects
from gatewayd.ingest.files import FileService
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.members import CollectionMembers
from gatewayd.knowledge.process_now import SynchronousProcessing
from gatewayd.knowledge.retrieval import QuerySpaces, RetrievalService, SearchOptions
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.knowledge.uploads import DocumentUploads
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.tools.toolbox import PluginToolBox
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugin_host.chats import ChatsForPlugins
from gatewayd.plugin_host.completions import CompletionDialect, CompletionServices, CompletionsForPlugins
from gatewayd.plugin_host.files import FilesForPlugins
from gatewayd.plugin_host.knowledge import KnowledgeForPlugins
from gatewayd.plugin_host.models import ModelsForPlugins
from gatewayd.plugin_host.plugins import PluginsForPlugins
from gatewayd.plugin_host.settings import SettingsForPlugins
from gatewayd.plugin_host.users import UsersForPlugins
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.secret_key import derive_secret
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.user_valves import UserValves


@dataclass(frozen=True, slots=True)
class HostAccountParts:
    """What plugins reach of the accounts."""

    users: Users
    groups: Groups
    key_rules: KeyRules
    permissions: Permissions
    runtime: RuntimeSettings


@dataclass(frozen=True, slots=True)
class HostDocumentParts:
    """What plugins reach of the documents; `search` is how passages are searched."""

    files: FileService
    uploads: DocumentUploads
    members: CollectionMembers
    collections: CollectionService
    scopes: ScopeResolver
    retrieval: RetrievalService
    search: SearchOptions
    spaces: QuerySpaces


@dataclass(frozen=True, slots=True)
class HostChatParts:
    """What plugins reach of stored chats."""

    chats: Chats
    tags: ChatTags
    effects: MessageEffects


@dataclass(frozen=True, slots=True)
class HostModelParts:
    """What plugins reach of models; `dialect` is the module `dialects.openai`."""

    catalog: Catalog
    pipeline: Pipeline
    filters: ChatFilters
    dialect: CompletionDialect


@dataclass(frozen=True, slots=True)
class HostPluginParts:
    """What plugins reach of plugins."""

    registry: PluginManager
    plugins: PluginService
    user_valves: UserValves
    toolbox: PluginToolBox


@dataclass(frozen=True, slots=True)
class HostParts:
    """The services that a host is made of.

    `configured` returns the settings by their names as they are now. `data_dir` is the directory of what
    plugins keep themselves.
    """

    accounts: HostAccountParts
    documents: HostDocumentParts
    chats: HostChatParts
    models: HostModelParts
    plugins: HostPluginParts
    configured: Callable[[], Mapping[str, Any]]
    data_dir: Path
    secret_key: str


def make_host(parts: HostParts) -> PluginHost:
    """Return the host."""
    accounts, documents, chats, models = parts.accounts, parts.documents, parts.chats, parts.models
    actors = PluginActors(accounts.users, accounts.key_rules, accounts.permissions)
    readying = SynchronousProcessing(documents.files, documents.members)
    asking = CompletionServices(
        models.catalog, models.pipeline, models.filters, models.dialect, chats.chats.find_owner
    )
    plugins = parts.plugins
    return PluginHost(
        users=UsersForPlugins(accounts.users, accounts.groups, actors),
        chats=ChatsForPlugins(chats.chats, chats.tags, chats.effects, actors),
        files=FilesForPlugins(documents.files, documents.uploads, readying, actors),
        models=ModelsForPlugins(models.catalog, actors),
        completions=CompletionsForPlugins(asking, documents.spaces, actors),
        plugins=PluginsForPlugins(
            plugins.registry, plugins.plugins, plugins.user_valves, plugins.toolbox, actors
        ),
        knowledge=KnowledgeForPlugins(
            documents.collections, documents.scopes, documents.retrieval, documents.search, actors
        ),
        settings=SettingsForPlugins(parts.configured, accounts.runtime),
        data_dir=parts.data_dir,
        secret_key=derive_secret(parts.secret_key),
    )
