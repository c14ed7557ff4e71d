"""What is kept of people: export and erasure over the services."""

from collections.abc import Sequence

from gatewayd.assembly.services import GatewayServices
from gatewayd.http.control.privacy import ControlPrivacyRoutes
from gatewayd.http.routes import Route
from gatewayd.privacy.erasure import ErasureParts, PersonErasure
from gatewayd.privacy.export import ExportParts, PersonExport
from gatewayd.storage.upkeep.person_export import TortoisePersonRecords
from gatewayd.storage.upkeep.person_rows import TortoisePersonRows


def make_erasure(services: GatewayServices) -> PersonErasure:
    """Return the erasure of people."""
    accounts, documents = services.accounts, services.documents
    parts = ErasureParts(
        users=accounts.users,
        rows=TortoisePersonRows(),
        chats=services.live.stores.chats,
        files=documents.stores.files,
        removal=documents.removal,
        collections=documents.collections,
        batches=services.batches.batches.files,
        limits=services.limits.limits,
        usage=services.metering.recorder,
        transactor=accounts.commits,
    )
    return PersonErasure(parts, services.tasks, services.audit.trail)


def make_export(services: GatewayServices) -> PersonExport:
    """Return the export of people."""
    stores = services.documents.stores
    parts = ExportParts(
        users=services.accounts.users,
        records=TortoisePersonRecords(),
        chats=services.live.chats.chats,
        files=stores.files,
        texts=stores.passages,
        blobs=stores.blobs,
        batches=services.batches.batches.files,
    )
    return PersonExport(parts)


def control_privacy_rows(services: GatewayServices) -> Sequence[Route]:
    """Return the rows of people of the control socket."""
    return ControlPrivacyRoutes(make_export(services), make_erasure(services)).routes()
