"""Services of the gateway in one record, for the routes, the plugin host and the daemon."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatewayd.assembly.accounts import AccountServices
from gatewayd.assembly.batches import BatchServices
from gatewayd.assembly.cluster.services import ChangeServices
from gatewayd.assembly.consumption.limits import LimitServices
from gatewayd.assembly.documents import DocumentServices
from gatewayd.assembly.events import LiveServices
from gatewayd.assembly.identity import IdentityServices
from gatewayd.assembly.metrics.metering import MeteringServices
from gatewayd.assembly.metrics.services import MonitoringServices
from gatewayd.assembly.plugins import ExtensionServices
from gatewayd.assembly.resumption import ResumptionServices
from gatewayd.assembly.runs import AnswerServices
from gatewayd.assembly.scim import ScimServices
from gatewayd.assembly.sources import ConfiguredSources
from gatewayd.assembly.tool_servers import ToolServerServices
from gatewayd.assembly.upkeep.audit import AuditServices
from gatewayd.assembly.upkeep.nodes import ClusterServices
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.catalog.service import Catalog
from gatewayd.http.connections.capacity import DescriptorBudget
from gatewayd.observe.health import HealthMonitor
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.privacy.age_limits import AgeLimitKeeper
from gatewayd.settings import Settings
from gatewayd.storage.engine.checks import DatabaseCheck
from gatewayd.storage.engine.database import Database
from gatewayd.tasks import TaskRegistry


@dataclass(slots=True)
class GatewayServices:
    """The services; `settings` are the settings in force, which a reload replaces."""

    settings: Settings
    tasks: TaskRegistry
    database: Database
    cluster: ClusterServices
    change_log: ChangeServices
    database_check: DatabaseCheck
    audit: AuditServices
    health: HealthMonitor
    sources: ConfiguredSources
    accounts: AccountServices
    identity: IdentityServices
    provisioning: ScimServices
    catalog: Catalog
    providers: ManagedProviders
    pipeline: Pipeline
    documents: DocumentServices
    live: LiveServices
    servers: ToolServerServices
    extensions: ExtensionServices
    answering: AnswerServices
    batches: BatchServices
    room: DescriptorBudget
    metering: MeteringServices
    resumption: ResumptionServices
    limits: LimitServices
    age_limits: AgeLimitKeeper
    monitoring: MonitoringServices

    def configured(self) -> Mapping[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self.settings, name) for name in type(self.settings).model_fields}
