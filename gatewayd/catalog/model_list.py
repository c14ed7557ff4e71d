"""One source's model list: fetched with a deadline, served stale while it is fetched again."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.records import Model
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import GatewayError
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

MAX_MODELS: Final = 10_000
"""Models of one source that are kept: the first ones that it lists."""

Monotonic = Callable[[], float]


class SourceListing:
    """What is known of one source's models.

    `models` is the last good list, empty until there was one, and `by_id` the same by callers' ids. `problem`
    is the sentence of the last failure, or of a list that is too long, None after a success. Only one fetch
    runs at a time. A failing source is asked again after `retry` seconds.
    """

    def __init__(
        self,
        source: ModelSource,
        tasks: TaskRegistry,
        *,
        max_age: float,
        deadline: float,
        retry: float = 10.0,
        monotonic: Monotonic | None = None,
    ) -> None:
        self.source = source
        self.models: Sequence[Model] = ()
        self.by_id: Mapping[str, Model] = {}
        self.problem: str | None = None
        self._tasks = tasks
        self._max_age = max_age
        self._deadline = deadline
        self._retry = retry
        self._monotonic = monotonic or asyncio.get_running_loop().time
        self._due = 0.0
        self._asked = False
        self._awaited = True
        self._settled = asyncio.Event()
        self._fetching = False
        self._is_stale = False
        self.on_change: Callable[[], None] = lambda: None

    def refresh_when_due(self) -> None:
        """Start a fetch in the background when the list is old and none runs."""
        if not self._fetching and (not self._asked or self._monotonic() >= self._due):
            self.refresh()

    def refresh(self) -> None:
        """Start a fetch in the background unless one runs."""
        if not self._fetching:
            self._fetching = self._asked = True
            self._settled.clear()
            self._tasks.spawn(f"models of {self.source.name}", self._fetch())

    def renew(self) -> None:
        """Start a fetch, or another one after the one that runs: the models have just changed.

        It is worth waiting for, like the first one.
        """
        self._is_stale = self._fetching
        self._awaited = True
        self.refresh()

    async def first(self) -> None:
        """Wait for the fetch that runs; return when it ended, well or badly."""
        await self._settled.wait()

    def give_up(self) -> None:
        """Wait for this source no more: it is left to its own deadline."""
        self._awaited = False

    @property
    def never_answered(self) -> bool:
        """Whether the source was asked, has neither answered nor failed yet, and is worth waiting for."""
        return self._fetching and self._awaited

    async def _fetch(self) -> None:
        try:
            await self._ask()
            while self._is_stale:
                self._is_stale = False
                await self._ask()
        finally:
            self._fetching = self._awaited = False
            self._settled.set()

    async def _ask(self) -> None:
        try:
            async with TimeLimit(self._deadline):
                models = await self.source.list_models()
        except (GatewayError, TimeoutError) as error:
            self._note(str(error) or f"cannot list the models of {self.source.name}: no answer in time")
            self._due = self._monotonic() + self._retry
        else:
            self._note(_too_long(self.source.name) if len(models) > MAX_MODELS else None)
            self._due = self._monotonic() + self._max_age
            self._keep(models[:MAX_MODELS])

    def _note(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            log.warning("model list not refreshed: %s", problem, extra={"source": self.source.name})
        self.problem = problem

    def _keep(self, models: Sequence[Model]) -> None:
        if list(models) == list(self.models):
            return
        self.models, self.by_id = models, {model.id: model for model in models}
        self.on_change()


def _too_long(name: str) -> str:
    return f"cannot keep all models of {name}: it lists more than {MAX_MODELS}, the others are left out"


def source_states(listings: Sequence[SourceListing]) -> Sequence[Mapping[str, object]]:
    """Return name, number of models and problem of each source, for people who look after it."""
    return [
        {"name": item.source.name, "models": len(item.models), "problem": item.problem} for item in listings
    ]
