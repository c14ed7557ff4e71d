"""Store of the messages that nodes are answering; the id of a row is the fence of its run."""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.errors import invalid
from gatewayd.nodes.records import ClaimedRun, RunClaim
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.nodes.nodes import ALIVE
from gatewayd.storage.tables.nodes import AnswerRunRow
from gatewayd.tasks import TaskOwner

# The new id comes from the sequence, so that a claim is never the same as a former one.
CLAIM: Final = (
    "INSERT INTO answer_runs (task_id, user_id, chat_id, message_id, node_id, is_stopped, started_at) "
    "VALUES ({task}, {user}, {chat}, {message}, {node}, FALSE, {at}) "
    "ON CONFLICT (user_id, chat_id, message_id) DO UPDATE SET id = excluded.id, task_id = excluded.task_id, "
    "node_id = excluded.node_id, is_stopped = FALSE, started_at = excluded.started_at RETURNING id"
)
HOLD: Final = "SELECT id FROM answer_runs WHERE id = {fence} FOR SHARE"
REMOVE_DEAD: Final = f"DELETE FROM answer_runs WHERE node_id NOT IN {ALIVE} RETURNING id"  # noqa: S608


class TortoiseAnswerRuns:
    """Implements `nodes.interfaces.RunStore`."""

    async def claim(
        self, node_id: str, runs: Sequence[tuple[str, TaskOwner]], *, at: int
    ) -> Sequence[RunClaim]:
        """Claim messages for runs; earlier claims of them are over."""
        claims = []
        async with write_transaction("claim the messages") as client:
            # The same order everywhere prevents a deadlock between nodes.
            for task_id, owner in sorted(runs, key=lambda run: run[1].message_id):
                for name in ("chat_id", "message_id"):
                    if not fits_columns(AnswerRunRow, **{name: getattr(owner, name)}):
                        raise invalid(f"cannot accept {name}: it is too long", param=name)
                statement = SqlStatement(client)
                values = {
                    "task": statement.bind(task_id),
                    "user": statement.bind(owner.user_id),
                    "chat": statement.bind(owner.chat_id),
                    "message": statement.bind(owner.message_id),
                    "node": statement.bind(node_id),
                    "at": statement.bind(at),
                }
                [row] = await statement.run(CLAIM.format(**values))
                claims.append(RunClaim(task_id, owner, row["id"]))
        order = [task_id for task_id, _ in runs]
        return sorted(claims, key=lambda claim: order.index(claim.task_id))

    async def hold(self, claim: RunClaim) -> bool:
        """Lock a claim for the caller's transaction; False when it is over."""
        async with write_transaction("hold the claim of the run") as client:
            statement = SqlStatement(client)
            return bool(await statement.run(HOLD.format(fence=statement.bind(claim.fence))))

    async def end(self, claim: RunClaim) -> None:
        """Delete a claim."""
        async with write_transaction("end the claim of the run"):
            await AnswerRunRow.filter(id=claim.fence).delete()

    async def list(self, node_id: str | None = None) -> Sequence[ClaimedRun]:
        """Return the claims of all nodes, or of one, oldest first."""
        wanted = AnswerRunRow.all() if node_id is None else AnswerRunRow.filter(node_id=node_id)
        with translate_errors("list runs"):
            rows = await wanted.order_by("started_at", "id")
        return [_run_of(row) for row in rows]

    async def stop(self, task_id: str) -> bool:
        """Ask the node of a run to stop it; False without the run."""
        if not fits_columns(AnswerRunRow, task_id=task_id):
            return False
        async with write_transaction("stop the run"):
            return await AnswerRunRow.filter(task_id=task_id).update(is_stopped=True) > 0

    async def remove_dead(self) -> int:
        """Delete the claims of nodes whose lease is over, and return their number."""
        async with write_transaction("remove the claims of dead nodes") as client:
            return len(await SqlStatement(client).run(REMOVE_DEAD))


def _run_of(row: Any) -> ClaimedRun:
    owner = TaskOwner(row.user_id, row.chat_id, row.message_id)
    return ClaimedRun(RunClaim(row.task_id, owner, row.id), row.node_id, row.is_stopped, row.started_at)
