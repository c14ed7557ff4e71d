"""Model list of one source, fetched with a deadline and served stale during a refresh."""

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
"""Maximum number of models kept of one source; the first ones of its list."""

RETRY_SECONDS: Final = 10
"""How long after a failed fetch the next one starts."""

Monotonic = Callable[[], float]


class SourceListing:
    """The last known models of one source.

    `models` is the last successful list, empty before the first one; `by_id` maps the ids that callers use.
    `problem` describes the last failure or a list that is too long, and is None after a success. Only one
    fetch runs at a time. A failed fetch is repeated after `retry` seconds.
    """

    def __init__(
        self,
        source: ModelSource,
        tasks: TaskRegistry,
        *,
        max_age: float,
        deadline: float,
        retry: float = RETRY_SECONDS,
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
        self._was_fetched = False
        self._was_read = False
        self._is_awaited = True
        self._settled = asyncio.Event()
        self._fetching = False
        self._is_stale = False
        self.on_change: Callable[[], None] = lambda: None

    def refresh_when_due(self) -> None:
        """Start a background fetch if the list is older than `max_age` and no fetch runs."""
        if not self._fetching and (not self._was_fetched or self._monotonic() >= self._due):
            self.refresh()

    def refresh(self) -> None:
        """Start a background fetch unless one runs."""
        if not self._fetching:
            self._fetching = self._was_fetched = True
            self._settled.clear()
            self._tasks.spawn(f"models of {self.source.name}", self._fetch())

    def renew(self) -> None:
        """Start a fetch, or another after the running one, because the models have just changed.

        Listings wait for it as for the first fetch.
        """
        self._is_stale = self._fetching
        self._is_awaited = True
        self.refresh()

    async def first(self) -> None:
        """Wait until the running fetch ends, with or without success."""
        await self._settled.wait()

    def give_up(self) -> None:
        """Stop waiting for the running fetch; its own deadline ends it."""
        self._is_awaited = False

    @property
    def never_answered(self) -> bool:
        """Whether a fetch is running that callers should wait for: the first one, or one after a change."""
        return self._fetching and self._is_awaited

    @property
    def is_unknown(self) -> bool:
        """Whether the list could not be read yet, so that the source may have any model."""
        return self.problem is not None and not self._was_read

    async def _fetch(self) -> None:
        try:
            await self._ask()
            while self._is_stale:
                self._is_stale = False
                await self._ask()
        finally:
            self._fetching = self._is_awaited = False
            self._settled.set()

    async def _ask(self) -> None:
        try:
            async with TimeLimit(self._deadline):
                models = await self.source.list_models()
        except (GatewayError, TimeoutError) as error:
            self._report(str(error) or f"cannot list the models of {self.source.name}: no answer in time")
            self._due = self._monotonic() + self._retry
        else:
            self._report(_too_long(self.source.name) if len(models) > MAX_MODELS else None)
            self._was_read = True
            self._due = self._monotonic() + self._max_age
            self._store(models[:MAX_MODELS])

    def _report(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            log.warning("model list not refreshed: %s", problem, extra={"source": self.source.name})
        self.problem = problem

    def _store(self, models: Sequence[Model]) -> None:
        if list(models) == list(self.models):
            return
        self.models, self.by_id = models, {model.id: model for model in models}
        self.on_change()


def _too_long(name: str) -> str:
    return f"cannot keep all models of {name}: it lists more than {MAX_MODELS}, the others are skipped"


def source_states(listings: Sequence[SourceListing]) -> Sequence[Mapping[str, object]]:
    """Return name, number of models and problem of each source, for administrators."""
    return [
        {"name": item.source.name, "models": len(item.models), "problem": item.problem} for item in listings
    ]
