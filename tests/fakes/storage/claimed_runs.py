"""The claims of nodes in memory."""

from collections.abc import Sequence
from dataclasses import replace

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import ClaimedRun, RunClaim
from gatewayd.tasks import TaskOwner


class MemoryRuns:
    """Implements `RunStore`. `dead` are the nodes whose leases are over."""

    def __init__(self) -> None:
        self.rows: dict[TaskOwner, ClaimedRun] = {}
        self.dead: set[str] = set()
        self.is_away = False
        self._last = 0

    async def claim(
        self, node_id: str, runs: Sequence[tuple[str, TaskOwner]], *, at: int
    ) -> Sequence[RunClaim]:
        claims = []
        for task_id, owner in runs:
            self._last += 1
            claims.append(RunClaim(task_id, owner, self._last))
            self.rows[owner] = ClaimedRun(claims[-1], node_id, is_stopped=False, started_at=at)
        return claims

    async def hold(self, claim: RunClaim) -> bool:
        return any(run.claim.fence == claim.fence for run in self.rows.values())

    async def end(self, claim: RunClaim) -> None:
        if self.is_away:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database")
        self.rows = {key: run for key, run in self.rows.items() if run.claim.fence != claim.fence}

    async def list(self, node_id: str | None = None) -> Sequence[ClaimedRun]:
        if self.is_away:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database")
        return [run for run in self.rows.values() if node_id in (None, run.node_id)]

    async def stop(self, task_id: str) -> bool:
        for owner, run in self.rows.items():
            if run.claim.task_id == task_id:
                self.rows[owner] = replace(run, is_stopped=True)
                return True
        return False

    async def remove_dead(self) -> int:
        dead = [owner for owner, run in self.rows.items() if run.node_id in self.dead]
        for owner in dead:
            del self.rows[owner]
        return len(dead)
