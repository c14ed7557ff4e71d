"""What plugins may ask of the gateway, over its services."""

from dataclasses import dataclass
from typing import Any

from gatewayd.assembly.accounts import Accounts, signing_secret
from gatewayd.assembly.documents import Documents
from gatewayd.assembly.live import Live
from gatewayd.assembly.plugins import Extensions
from gatewayd.catalog.service import Catalog
from gatewayd.chat.pipeline import Pipeline
from gatewayd.plugins.interfaces import Host
from gatewayd.settings import Settings

PLUGIN_DATA = "plugin-data"


@dataclass(frozen=True, slots=True)
class HostServices:
    """The services that plugins reach."""

    settings: Settings
    accounts: Accounts
    documents: Documents
    live: Live
    catalog: Catalog
    pipeline: Pipeline
    extensions: Extensions


def make_gateway_host(services: HostServices) -> Host:
    """Return the host."""
    nothing: Any = None
    return Host(
        users=nothing,
        chats=nothing,
        files=nothing,
        models=nothing,
        completions=nothing,
        plugins=nothing,
        knowledge=nothing,
        settings=nothing,
        data_dir=services.settings.data_dir / PLUGIN_DATA,
        secret_key=signing_secret(services.settings),
    )
