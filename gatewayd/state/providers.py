"""Table of providers, which is read and compared, and never written."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.state.interfaces import StateTable
from gatewayd.state.records import Fields, ObjectChange, StateAction, StateObject
from gatewayd.state.scope import StateScope

SETTINGS: Final = "settings"
DATABASE: Final = "database"


class ProviderTable(StateTable):
    """Providers of the settings and of the database by name; a difference is reported."""

    table = "providers"

    def __init__(self, providers: ManagedProviders) -> None:
        self._providers = providers

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all providers without their keys and headers."""
        found: dict[str, StateObject] = {}
        for family in ProviderFamily:
            # A provider of the database is not used while the settings have one of its name.
            for each in self._providers.show(family).providers:
                found.setdefault(each.name, StateObject(_fields(each)))
        return found

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the providers as they are in the document."""
        return wanted

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Change nothing: a difference is reported in the plan alone."""
        raise ValueError(f"cannot write {change.path}: providers are changed in the configuration file")


def as_report(change: ObjectChange) -> ObjectChange:
    """Return a change of the table of providers as a difference that applying does not settle."""
    return ObjectChange(change.table, change.name, StateAction.REPORT, change.path, change.fields)


def _fields(provider: ManagedProvider) -> dict[str, Any]:
    return {
        "kind": provider.kind,
        "base_url": provider.base_url,
        "prefix": provider.prefix,
        "models": list(provider.models),
        "active": provider.is_active,
        "origin": SETTINGS if provider.origin else DATABASE,
    }
