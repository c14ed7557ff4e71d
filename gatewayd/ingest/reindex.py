"""Reindex in the background, and the report of its progress."""

import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.embedding_spaces import EmbeddingSpaces
from gatewayd.ingest.interfaces import SpaceStore
from gatewayd.nodes.duties import Duties, LocalDuties
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

TASK: Final = "reindex"


class ReindexProgress(StrEnum):
    """State of the vectors."""

    # Every passage has a vector in the active space, which is the configured model's.
    CURRENT = "current"
    # Some passages need a reindex.
    BEHIND = "behind"
    # A reindex is running.
    RUNNING = "running"
    # Some passages need a reindex, and the last one ended early or the model cannot be reached.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ReindexReport:
    """Progress of the vectors: `done` of `total` passages have a vector in the target space.

    `active` is the name of the space that is searched, `target` that of the space being filled. When both are
    the same space, `target` is "" and the counts are those of the active one.
    """

    progress: ReindexProgress
    active: str = ""
    target: str = ""
    done: int = 0
    total: int = 0
    error: str | None = None


class ReindexRunner:
    """Starts `EmbeddingSpaces.reindex`, one at a time, on one node."""

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        store: SpaceStore,
        tasks: TaskRegistry,
        duties: Duties | None = None,
    ) -> None:
        self._duties = duties or LocalDuties()
        self._spaces = spaces
        self._store = store
        self._tasks = tasks
        self._task_id = ""

    async def start(self) -> None:
        """Start a reindex, or continue one that ended early.

        Raises conflict while one runs, not_configured without a model, and the errors of the model.
        """
        if not await self._spaces.targets():
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot reindex: no embedding model can be used")
        if self._is_running():
            raise GatewayError(ErrorKind.CONFLICT, "cannot reindex: a reindex is running already")
        self._task_id = self._tasks.spawn(TASK, self._run())

    async def report(self) -> ReindexReport:
        """Return the progress of the vectors."""
        active = await self._store.find_active()
        name = "" if active is None else active.name
        state = self._spaces.progress()
        target, error = await self._target(name)
        done, total = await self._store.counts(target or name)
        report = ReindexReport(ReindexProgress.CURRENT, name, target, done, total)
        if self._is_running():
            return replace(report, progress=ReindexProgress.RUNNING)
        if error is None and not target and done >= total:
            return report
        error = error or state.error
        return replace(
            report, progress=ReindexProgress.FAILED if error else ReindexProgress.BEHIND, error=error
        )

    async def _target(self, active: str) -> tuple[str, str | None]:
        """Return the name of the configured space ("" if it is the active one), and an error or None."""
        try:
            targets = await self._spaces.targets()
        except GatewayError as error:
            return "", error.message
        names = [space.name for space, _ in targets if space.name != active]
        return (names[0] if names else ""), None

    def _is_running(self) -> bool:
        return self._spaces.progress().running or self._task_id in self._tasks.list()

    async def _run(self) -> None:
        try:
            async with self._duties.alone(TASK):
                await self._spaces.reindex()
        except GatewayError as error:
            log.warning("the reindex ended early: %s", error.full_message)
