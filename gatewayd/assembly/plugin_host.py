"""What plugins may ask of the gateway, over its services."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.assembly.accounts import Accounts, signing_secret
from gatewayd.assembly.documents import Documents
from gatewayd.assembly.events import Live
from gatewayd.assembly.plugins import Extensions
from gatewayd.catalog.service import Catalog
from gatewayd.dialects import openai
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.plugin_host.builder import (
    AccountParts,
    ChatParts,
    DocumentParts,
    HostParts,
    ModelParts,
    PluginParts,
    make_host,
)
from gatewayd.plugins.interfaces import Host
from gatewayd.settings import Settings

PLUGIN_DATA: Final = "plugin-data"


@dataclass(slots=True)
class HostServices:
    """The services that plugins reach; `settings` are those that are in force now."""

    settings: Settings
    accounts: Accounts
    documents: Documents
    live: Live
    catalog: Catalog
    pipeline: Pipeline
    extensions: Extensions

    def configured(self) -> Mapping[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self.settings, name) for name in type(self.settings).model_fields}


def make_gateway_host(services: HostServices) -> Host:
    """Return the host."""
    accounts, documents, live = services.accounts, services.documents, services.live
    extensions = services.extensions
    return make_host(
        HostParts(
            accounts=AccountParts(
                accounts.users, accounts.groups, accounts.key_rules, accounts.permissions, accounts.runtime
            ),
            documents=DocumentParts(
                files=documents.files,
                uploads=documents.uploads,
                members=documents.members,
                collections=documents.collections,
                scopes=documents.scopes,
                retrieval=documents.retrieval,
                search=documents.search,
                spaces=documents.spaces,
            ),
            chats=ChatParts(live.chats.chats, live.chats.tags, live.stores.effects),
            models=ModelParts(services.catalog, services.pipeline, services.extensions.filters, openai),
            plugins=PluginParts(
                extensions.registry, extensions.plugins, extensions.user_valves, extensions.tools
            ),
            configured=services.configured,
            data_dir=services.settings.data_dir / PLUGIN_DATA,
            secret_key=signing_secret(services.settings),
        )
    )
