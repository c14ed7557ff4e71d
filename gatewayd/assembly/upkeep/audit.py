"""The audit log: its store, writer, keeper and routes."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.audit.forwarder import AuditForwarder
from gatewayd.audit.interfaces import AuditReceiver
from gatewayd.audit.log_keeper import AuditLogKeeper, AuditRetention, CheckpointFile
from gatewayd.audit.trail import AuditTrail
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.control.audit import ControlAuditRoutes
from gatewayd.http.routes import Route
from gatewayd.observe.redact import redact_value
from gatewayd.settings import Settings
from gatewayd.storage.engine.database import Database
from gatewayd.storage.upkeep.audit import TortoiseAuditLog
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.audit.syslog import DEFAULT_PORTS, SyslogAddress, SyslogReceiver
from gatewayd.upstream.audit.webhook import WebhookReceiver
from gatewayd.urls import split_url

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
    receiver = make_receiver(settings)
    if receiver is not None:
        forwarder = AuditForwarder(receiver)
        trail.subscribe(forwarder.take)
        tasks.spawn("forwarding of the audit log", forwarder.run())
    return AuditServices(trail, keeper, store)


def make_receiver(settings: Settings) -> AuditReceiver | None:
    """Return the receiver of audit_forward_url, None without one; not_configured for another address."""
    url = settings.audit_forward_url.get_secret_value()
    if not url:
        return None
    try:
        parts = split_url(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _bad_address() from error
    if parts.scheme in {"http", "https"} and host:
        return WebhookReceiver(url, settings.audit_forward_secret.get_secret_value())
    if parts.username is not None:
        raise _bad_address()
    is_path = parts.scheme == "unix" and not host and len(parts.path) > 1
    if not is_path and not (parts.scheme in DEFAULT_PORTS and host and parts.path in {"", "/"}):
        raise _bad_address()
    path = parts.path if is_path else ""
    address = SyslogAddress(parts.scheme, host, port or DEFAULT_PORTS.get(parts.scheme, 0), path)
    return SyslogReceiver(address, socket.gethostname(), os.getpid())


def _bad_address() -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_CONFIGURED,
        "cannot use audit_forward_url: expected unix:///PATH, udp://HOST, tcp://HOST, tls://HOST, or the"
        " http:// or https:// address of a webhook",
        param="audit_forward_url",
    )


def control_audit_rows(services: AuditServices) -> Sequence[Route]:
    """Return the rows of the noun audit of the control socket."""
    return ControlAuditRoutes(services.store, services.keeper).routes()
