"""The routes of documents: on both sockets, each once."""

from contextlib import AsyncExitStack
from pathlib import Path

from gatewayd.assembly.document_routes import control_document_rows, public_document_rows
from gatewayd.assembly.gateway import assemble
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.http.idempotency import IdempotentWrites
from gatewayd.http.routes import RouteAccess
from gatewayd.settings import load
from tests.fakes.http.samples_documents import BYTES, DOCUMENT_SAMPLES, UPLOAD


async def test_the_rows_of_documents(state: Path) -> None:
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings, stack)
        accounts = gateway.services.accounts
        once = IdempotentWrites(gateway.services.resumption.replies)
        public = public_document_rows(settings, accounts, gateway.services.documents, once)
        viewers = ControlActors(accounts.users, accounts.key_rules, accounts.permissions)
        writes = WriteTransactions(accounts.commits)
        control = control_document_rows(settings, gateway.services.documents, accounts, viewers, writes)
    rows = [(row.method, row.path) for row in public]
    assert len(rows) == len(set(rows))
    assert {*DOCUMENT_SAMPLES, *BYTES, UPLOAD} == set(rows)
    assert {row.path.split("/")[2] for row in control} == {"files", "queue", "collections", "reindex"}
    assert all(row.access is RouteAccess.CONTROL for row in control)
