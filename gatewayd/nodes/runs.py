"""Runs of this node and of others: claims of messages, stops from elsewhere, and the end of dead runs."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.duties import Duties
from gatewayd.nodes.interfaces import NodeMembership, RunStore
from gatewayd.nodes.messages import NodeMessages
from gatewayd.nodes.records import RUN_TAKEN, RunClaim
from gatewayd.tasks import TaskInfo, TaskOwner, TaskRegistry
from gatewayd.transactions import Transactor

log = logging.getLogger(__name__)

RUN_NAME: Final = "answer"
"""Name of the tasks of runs."""

LOOK_SECONDS: Final = 0.5
"""Interval at which a node with answers looks for those to stop."""

REAP_SECONDS: Final = 1.0
"""Interval at which the reaper looks for runs of dead nodes."""

STOP_SECONDS: Final = 5.0
"""How long a stop waits for the node of the run."""

STOPPED: Final = "runs.stopped"
"""Kind of the messages that tell of stopped runs."""

REAPING: Final = "reaping"
"""Name of the duty that ends the runs of dead nodes."""


class LocalRuns:
    """Runs of a daemon without a cluster: nobody else can claim a message."""

    async def claim(self, owners: Sequence[TaskOwner]) -> Sequence[RunClaim]:
        """Return a claim for each message."""
        return [RunClaim(ids.new_id(), owner) for owner in owners]

    async def end(self, claim: RunClaim) -> None:
        """Do nothing."""

    def fenced(self, claim: RunClaim) -> AbstractAsyncContextManager[None]:
        """Run the block."""
        return contextlib.nullcontext()

    async def elsewhere(
        self, *, chat_id: str | None = None, task_id: str | None = None
    ) -> Sequence[TaskInfo]:
        """Return nothing: there are no other nodes."""
        return ()

    async def stop_elsewhere(self, task_id: str) -> bool:
        """Return False: there are no other nodes."""
        return False

    def owns(self, task_id: str) -> bool:
        """Return False: nothing is claimed."""
        return False


class NodeRuns:
    """Runs of a node. `is_pending` says whether a write to a message (its chat and its id) still waits."""

    def __init__(
        self,
        store: RunStore,
        member: NodeMembership,
        tasks: TaskRegistry,
        transactor: Transactor,
        is_pending: Callable[[tuple[str, str]], bool],
        messages: NodeMessages,
    ) -> None:
        self._store = store
        self._messages = messages
        self._member = member
        self._tasks = tasks
        self._transactor = transactor
        self._is_pending = is_pending
        self._claims: dict[int, RunClaim] = {}
        self._ending: set[int] = set()
        messages.on(STOPPED, self._take_stopped)

    async def claim(self, owners: Sequence[TaskOwner]) -> Sequence[RunClaim]:
        """Claim messages; runs of other nodes lose them and stop within a second or two."""
        runs = [(ids.new_id(), owner) for owner in owners]
        claims = await self._store.claim(self._member.id, runs, at=ids.now())
        self._claims.update({claim.fence: claim for claim in claims})
        return claims

    async def end(self, claim: RunClaim) -> None:
        """Give a message back, once nothing is left to write to it."""
        # What cannot be done now, `look` does later.
        self._ending.add(claim.fence)
        if self._is_pending((claim.owner.chat_id, claim.owner.message_id)):
            return
        try:
            await self._store.end(claim)
        except GatewayError as error:
            log.warning("the end of a run is recorded later: %s", error.full_message)
        else:
            self._ending.discard(claim.fence)
            self._claims.pop(claim.fence, None)

    @asynccontextmanager
    async def fenced(self, claim: RunClaim) -> AsyncIterator[None]:
        """Run a transaction in which nobody can claim the message; conflict when another run has it."""
        async with self._transactor.transaction():
            if not await self._store.hold(claim):
                raise GatewayError(
                    ErrorKind.CONFLICT,
                    "cannot write the answer: another run answers the message, or the node seemed dead",
                    code=RUN_TAKEN,
                )
            yield

    async def elsewhere(self) -> Sequence[TaskInfo]:
        """Return the runs of other nodes, oldest first."""
        return [
            TaskInfo(run.claim.task_id, RUN_NAME, run.claim.owner, run.started_at)
            for run in await self._store.list()
            if run.node_id != self._member.id
        ]

    async def stop_elsewhere(self, task_id: str) -> bool:
        """Have another node stop a run, and wait for its end; False without the run.

        Raises timeout when its node does not stop it in time.
        """
        if not await self._store.stop(task_id):
            return False
        # Its node need not wait until it looks.
        self._messages.tell(STOPPED, {"id": task_id})
        loop = asyncio.get_running_loop()
        until = loop.time() + STOP_SECONDS
        while any(run.claim.task_id == task_id for run in await self._store.list()):
            if loop.time() > until:
                sentence = f"cannot stop task {task_id}: its node did not stop it within {STOP_SECONDS:g} s"
                raise GatewayError(ErrorKind.TIMEOUT, sentence)
            await asyncio.sleep(LOOK_SECONDS / 4)
        return True

    def owns(self, task_id: str) -> bool:
        """Return whether a task of this node is a claimed answer."""
        return any(claim.task_id == task_id for claim in self._claims.values())

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except GatewayError as error:
                log.debug("cannot look for runs to stop: %s", error.full_message)

    async def look(self) -> None:
        """Stop the runs that lost their message or that somebody stopped; end the claims of ended runs."""
        if not self._claims:
            return
        # Those of the moment before the reading: later ones need not be in it.
        mine = dict(self._claims)
        found = {run.claim.fence: run for run in await self._store.list(self._member.id)}
        running = self._tasks.list()
        for fence, claim in mine.items():
            run = found.get(fence)
            if claim.task_id in running and (run is None or run.is_stopped):
                self._tasks.spawn("stop of a run", self._stop(claim.task_id))
            elif fence in self._ending:
                await self.end(claim)

    def _take_stopped(self, _: str, body: Mapping[str, Any]) -> None:
        if self.owns(body["id"]):
            self._tasks.spawn("stop of a run", self._stop(body["id"]))

    async def _stop(self, task_id: str) -> None:
        await self._tasks.stop(task_id)


class RunReaper:
    """Ends the runs of dead nodes; `end_unclaimed` ends the answers that no run claims."""

    def __init__(
        self,
        store: RunStore,
        member: NodeMembership,
        duties: Duties,
        end_unclaimed: Sequence[Callable[[], Awaitable[int]]],
    ) -> None:
        self._store = store
        self._member = member
        self._duties = duties
        self._end_unclaimed = end_unclaimed

    async def run(self) -> None:
        """Reap for ever, on one node at a time."""
        await self._duties.run(REAPING, self._reap_forever)

    async def reap(self) -> int:
        """End what is dead, and return the number of runs."""
        if not self._member.is_steady:
            # After an outage of the database every node seems dead until its next renewal.
            return 0
        async with self._duties.fenced(REAPING):
            count = await self._store.remove_dead()
            for end in self._end_unclaimed:
                await end()
        if count:
            log.warning("the runs of a dead node were ended", extra={"runs": count})
        return count

    async def _reap_forever(self) -> None:
        while True:
            await self.reap()
            await asyncio.sleep(REAP_SECONDS)
