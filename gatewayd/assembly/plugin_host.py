"""What plugins may ask of the gateway, over its services."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.assembly.accounts import AccountServices, signing_secret
from gatewayd.assembly.documents import DocumentServices
from gatewayd.assembly.events import LiveServices
from gatewayd.assembly.plugins import ExtensionServices
from gatewayd.catalog.service import Catalog
from gatewayd.dialects import openai
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.plugin_host.builder import (
    HostAccountParts,
    HostChatParts,
    HostDocumentParts,
    HostModelParts,
    HostParts,
    HostPluginParts,
    make_host,
)
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.settings import Settings

PLUGIN_DATA: Final = "plugin-data"


@dataclass(slots=True)
class HostServices:
    """The services that plugins reach; `settings` are those that are in force now."""

    settings: Settings
    accounts: AccountServices
    documents: DocumentServices
    live: LiveServices
    catalog: Catalog
    pipeline: Pipeline
    extensions: ExtensionServices

    def configured(self) -> Mapping[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self.settings, name) for name in type(self.settings).model_fields}


def make_gateway_host(services: HostServices) -> PluginHost:
    """Return the host."""
    accounts, documents, live = services.accounts, services.documents, services.live
    extensions = services.extensions
    return make_host(
        HostParts(
            accounts=HostAccountParts(
                accounts.users, accounts.groups, accounts.key_rules, accounts.permissions, accounts.runtime
            ),
            documents=HostDocumentParts(
                files=documents.files,
                uploads=documents.uploads,
                members=documents.members,
                collections=documents.collections,
                scopes=documents.scopes,
                retrieval=documents.retrieval,
                search=documents.search,
                spaces=documents.spaces,
            ),
            chats=HostChatParts(live.chats.chats, live.chats.tags, live.stores.effects),
            models=HostModelParts(services.catalog, services.pipeline, services.extensions.filters, openai),
            plugins=HostPluginParts(
                extensions.registry, extensions.plugins, extensions.user_valves, extensions.tools
            ),
            configured=services.configured,
            data_dir=services.settings.data_dir / PLUGIN_DATA,
            secret_key=signing_secret(services.settings),
        )
    )
