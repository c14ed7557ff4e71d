"""The audit log of a control socket, in memory."""

from dataclasses import dataclass
from pathlib import Path

from gatewayd.audit.log_keeper import AuditLogKeeper, AuditRetention, CheckpointFile
from gatewayd.audit.trail import AuditTrail
from gatewayd.observe.redact import redact_value
from tests.fakes.storage.memory_audit import MemoryAuditLog


@dataclass(frozen=True)
class AuditHouse:
    """The rows, their writer, and what keeps them."""

    store: MemoryAuditLog
    trail: AuditTrail
    keeper: AuditLogKeeper


def make_audit(folder: Path) -> AuditHouse:
    """Return an empty audit log with its checkpoints in a file of a folder."""
    store = MemoryAuditLog()
    trail = AuditTrail(store, redact_value)
    file = CheckpointFile(folder / "audit.checkpoints")
    return AuditHouse(store, trail, AuditLogKeeper(store, trail, file, AuditRetention(0)))
