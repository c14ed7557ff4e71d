"""The limits of age over the services."""

from gatewayd.assembly.documents import DocumentServices
from gatewayd.assembly.events import LiveServices
from gatewayd.assembly.upkeep.audit import AuditServices
from gatewayd.privacy.age_limits import AgedStores, AgeLimitKeeper, AgeLimits
from gatewayd.settings import Settings
from gatewayd.storage.upkeep.aged_rows import TortoiseAgedRows
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import Transactor


def make_age_limits(
    settings: Settings,
    live: LiveServices,
    documents: DocumentServices,
    audit: AuditServices,
    transactor: Transactor,
    tasks: TaskRegistry,
) -> AgeLimitKeeper:
    """Return the keeper of the limits of age."""
    stores = AgedStores(TortoiseAgedRows(), live.stores.chats, documents.removal, transactor)
    return AgeLimitKeeper(stores, tasks, audit.trail, age_limits(settings))


def age_limits(settings: Settings) -> AgeLimits:
    """Return the limits of the settings."""
    return AgeLimits(settings.chat_max_age_days, settings.file_max_age_days, settings.usage_retention_days)
