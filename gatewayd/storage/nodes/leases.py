"""Store of the leases of duties."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import HeldLease
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.nodes.nodes import ALIVE, NOW, milliseconds

TAKE: Final = (
    "INSERT INTO leases AS held (name, node_id, fence, until) "  # noqa: S608 - constants
    f"VALUES ({{name}}, {{node}}, 1, {NOW} + {{length}}) "
    "ON CONFLICT (name) DO UPDATE SET "
    "node_id = excluded.node_id, fence = held.fence + 1, until = excluded.until "
    f"WHERE held.until <= {NOW} OR held.node_id NOT IN {ALIVE} RETURNING fence"
)
RENEW: Final = (
    f"UPDATE leases SET until = {NOW} + {{length}} "  # noqa: S608 - constants
    "WHERE name = {name} AND fence = {fence} RETURNING fence"
)
RELEASE: Final = "UPDATE leases SET until = 0 WHERE name = {name} AND fence = {fence}"
HOLD: Final = "SELECT fence FROM leases WHERE name = {name} AND fence = {fence} FOR SHARE"


class TortoiseLeases:
    """Implements `nodes.interfaces.LeaseStore`."""

    async def take(self, name: str, node_id: str, seconds: float) -> HeldLease | None:
        """Take a free lease; None when it is taken."""
        async with write_transaction("take a lease") as client:
            statement = SqlStatement(client)
            places = {
                "name": statement.bind(name),
                "node": statement.bind(node_id),
                "length": statement.bind(milliseconds(seconds)),
            }
            rows = await statement.run(TAKE.format(**places))
        return HeldLease(name, rows[0]["fence"]) if rows else None

    async def renew(self, lease: HeldLease, seconds: float) -> bool:
        """Extend a lease; False when another node has taken it."""
        async with write_transaction("renew a lease") as client:
            statement = SqlStatement(client)
            length = statement.bind(milliseconds(seconds))
            return bool(await statement.run(_of(lease, statement, RENEW, length=length)))

    async def release(self, lease: HeldLease) -> None:
        """Give a lease back."""
        async with write_transaction("release a lease") as client:
            statement = SqlStatement(client)
            await statement.run(_of(lease, statement, RELEASE))

    @asynccontextmanager
    async def fenced(self, lease: HeldLease) -> AsyncIterator[None]:
        """Run a transaction in which nobody can take the lease; conflict when another node has taken it."""
        async with write_transaction("hold a lease") as client:
            statement = SqlStatement(client)
            # The lock: a check alone would let a write slip past the next holder.
            if not await statement.run(_of(lease, statement, HOLD)):
                sentence = f"cannot write for the duty {lease.name}: another node has taken it over"
                raise GatewayError(ErrorKind.CONFLICT, sentence, code="lease_taken")
            yield


def _of(lease: HeldLease, statement: SqlStatement, sql: str, **places: str) -> str:
    return sql.format(name=statement.bind(lease.name), fence=statement.bind(lease.fence), **places)
