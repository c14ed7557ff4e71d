"""The audit log: its store, writer, keeper and routes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.audit.log_keeper import AuditLogKeeper, AuditRetention, CheckpointFile
from gatewayd.audit.trail import AuditTrail
from gatewayd.http.control.audit import ControlAuditRoutes
from gatewayd.http.routes import Route
from gatewayd.observe.redact import redact_value
from gatewayd.settings import Settings
from gatewayd.storage.engine.database import Database
from gatewayd.storage.upkeep.audit import TortoiseAuditLog
from gatewayd.tasks import TaskRegistry

CHECKPOINT_FILE: Final = "audit.checkpoints"


@dataclass(frozen=True, slots=True)
class AuditServices:
    """The audit log: the writer, what keeps the chain, and the rows."""

    trail: AuditTrail
    keeper: AuditLogKeeper
    store: TortoiseAuditLog

    def configure(self, settings: Settings) -> None:
        """Apply the settings that may change at run time."""
        self.keeper.retention.days = settings.audit_retention_days

    async def close(self, seconds: float) -> None:
        """Store the entries that wait, and mark the end of the chain, at a stop; raises unavailable."""
        await self.trail.drain(seconds)
        await self.keeper.mark()


async def open_audit(settings: Settings, database: Database, tasks: TaskRegistry) -> AuditServices:
    """Return the audit log with its writer running; an end that was cut off is recorded."""
    store = TortoiseAuditLog(database)
    trail = AuditTrail(store, redact_value)
    file = CheckpointFile(settings.data_dir / CHECKPOINT_FILE)
    keeper = AuditLogKeeper(store, trail, file, AuditRetention(settings.audit_retention_days))
    await keeper.check_end()
    tasks.spawn("audit log", trail.run())
    return AuditServices(trail, keeper, store)


def control_audit_rows(services: AuditServices) -> Sequence[Route]:
    """Return the rows of the noun audit of the control socket."""
    return ControlAuditRoutes(services.store, services.keeper).routes()
