"""Construction of the plugin host from the services of the gateway."""

from typing import Final

from gatewayd.assembly.accounts import plugin_secret
from gatewayd.assembly.services import GatewayServices
from gatewayd.dialects import openai
from gatewayd.knowledge.process_now import SynchronousProcessing
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugin_host.chats import ChatsForPlugins
from gatewayd.plugin_host.completions import CompletionServices, CompletionsForPlugins
from gatewayd.plugin_host.files import FilesForPlugins
from gatewayd.plugin_host.knowledge import KnowledgeForPlugins
from gatewayd.plugin_host.models import ModelsForPlugins
from gatewayd.plugin_host.plugins import PluginsForPlugins
from gatewayd.plugin_host.settings import SettingsForPlugins
from gatewayd.plugin_host.users import UsersForPlugins
from gatewayd.plugins.interfaces import PluginHost

PLUGIN_DATA: Final = "plugin-data"


def make_gateway_host(services: GatewayServices) -> PluginHost:
    """Return the host: one adapter of `plugin_host` for each interface of `plugins.interfaces`."""
    accounts, documents, chats = services.accounts, services.documents, services.live.chats
    extensions = services.extensions
    actors = PluginActors(accounts.users, accounts.key_rules, accounts.permissions)
    processing = SynchronousProcessing(documents.files, documents.members)
    completions = CompletionServices(
        services.catalog, services.pipeline, extensions.filters, openai, chats.chats.find_owner
    )
    return PluginHost(
        users=UsersForPlugins(accounts.users, accounts.groups, actors),
        chats=ChatsForPlugins(chats.chats, chats.tags, services.live.stores.effects, actors),
        files=FilesForPlugins(documents.files, documents.uploads, processing, actors),
        models=ModelsForPlugins(services.catalog, actors),
        completions=CompletionsForPlugins(completions, documents.spaces, actors),
        plugins=PluginsForPlugins(
            extensions.registry, extensions.plugins, extensions.user_valves, extensions.tools, actors
        ),
        knowledge=KnowledgeForPlugins(
            documents.collections, documents.scopes, documents.retrieval, documents.search, actors
        ),
        settings=SettingsForPlugins(services.configured, accounts.runtime),
        data_dir=services.settings.data_dir / PLUGIN_DATA,
        secret_key=plugin_secret(services.settings),
    )
