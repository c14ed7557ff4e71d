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
from gatewayd.ingest.files import Files
from gatewayd.knowledge.collections import Collections
from gatewayd.knowledge.members import Members
from gatewayd.knowledge.process_now import Readying
from gatewayd.knowledge.retrieval import QuerySpaces, Retrieval, SearchOptions
from gatewayd.knowledge.scopes import Scopes
from gatewayd.knowledge.uploads import Uploads
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.tools.toolbox import PluginToolBox
from gatewayd.plugin_host.actors import Actors
from gatewayd.plugin_host.chats import ChatsForPlugins
from gatewayd.plugin_host.completions import Asking, CompletionsForPlugins, Dialect
from gatewayd.plugin_host.files import FilesForPlugins
from gatewayd.plugin_host.knowledge import KnowledgeForPlugins
from gatewayd.plugin_host.models import ModelsForPlugins
from gatewayd.plugin_host.plugins import PluginsForPlugins
from gatewayd.plugin_host.settings import SettingsForPlugins
from gatewayd.plugin_host.users import UsersForPlugins
from gatewayd.plugins.interfaces import Host
from gatewayd.plugins.open_webui.secret_key import derive_secret
from gatewayd.plugins.registry import Registry
from gatewayd.plugins.service import Plugins
from gatewayd.plugins.user_valves import UserValves


@dataclass(frozen=True, slots=True)
class AccountParts:
    """What plugins reach of the accounts."""

    users: Users
    groups: Groups
    key_rules: KeyRules
    permissions: Permissions
    runtime: RuntimeSettings


@dataclass(frozen=True, slots=True)
class DocumentParts:
    """What plugins reach of the documents; `search` is how passages are searched."""

    files: Files
    uploads: Uploads
    members: Members
    collections: Collections
    scopes: Scopes
    retrieval: Retrieval
    search: SearchOptions
    spaces: QuerySpaces


@dataclass(frozen=True, slots=True)
class ChatParts:
    """What plugins reach of stored chats."""

    chats: Chats
    tags: ChatTags
    effects: MessageEffects


@dataclass(frozen=True, slots=True)
class ModelParts:
    """What plugins reach of models; `dialect` is the module `dialects.openai`."""

    catalog: Catalog
    pipeline: Pipeline
    filters: ChatFilters
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class PluginParts:
    """What plugins reach of plugins."""

    registry: Registry
    plugins: Plugins
    user_valves: UserValves
    toolbox: PluginToolBox


@dataclass(frozen=True, slots=True)
class HostParts:
    """The services that a host is made of.

    `configured` returns the settings by their names as they are now. `data_dir` is the directory of what
    plugins keep themselves.
    """

    accounts: AccountParts
    documents: DocumentParts
    chats: ChatParts
    models: ModelParts
    plugins: PluginParts
    configured: Callable[[], Mapping[str, Any]]
    data_dir: Path
    secret_key: str


def make_host(parts: HostParts) -> Host:
    """Return the host."""
    accounts, documents, chats, models = parts.accounts, parts.documents, parts.chats, parts.models
    actors = Actors(accounts.users, accounts.key_rules, accounts.permissions)
    readying = Readying(documents.files, documents.members)
    asking = Asking(models.catalog, models.pipeline, models.filters, models.dialect, chats.chats.find_owner)
    plugins = parts.plugins
    return Host(
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
