"""Batches that providers run: opens the run of each, and checks a batch when it is created."""

import asyncio
import logging
from collections.abc import Collection
from pathlib import Path

from gatewayd.accounts.records import Actor
from gatewayd.batches.interfaces import ErrorRenderer
from gatewayd.batches.passed_answers import PassedAnswers
from gatewayd.batches.passed_choice import KINDS, read_models
from gatewayd.batches.passed_run import PassedFiles, PassedRun, PassedServices
from gatewayd.batches.passed_state import (
    REQUESTS_SUFFIX,
    SUFFIX,
    PassedState,
    read_state_file,
    remove_other_states,
    state_files,
)
from gatewayd.batches.passed_usage import PassedUsage
from gatewayd.batches.progress import BatchProgress
from gatewayd.batches.records import Batch
from gatewayd.catalog.service import Catalog
from gatewayd.errors import ErrorKind, GatewayError, full_message

log = logging.getLogger(__name__)


class PassedBatches:
    """The batches that providers run.

    `folder` holds the requests while they are sent, and the states that former versions kept in files.
    """

    def __init__(
        self, services: PassedServices, catalog: Catalog, render_error: ErrorRenderer, folder: Path
    ) -> None:
        self._services = services
        self._catalog = catalog
        self._render_error = render_error
        self._folder = folder

    async def open(self, batch: Batch, source: Path, progress: BatchProgress) -> PassedRun | None:
        """Return the run of a batch that a provider runs, or is to run; None for one of the gateway.

        Raises `MixedProvidersError`, unavailable while the models or the database are not known, and OSError.
        """
        submitted = await self.find(batch, source, progress)
        if submitted is not None:
            return submitted
        provider = await self._choose(batch, source)
        return self._run(batch, source, progress, PassedState(provider)) if provider else None

    async def find(self, batch: Batch, source: Path, progress: BatchProgress) -> PassedRun | None:
        """Return the run of a batch that a provider may have already; raises OSError, and unavailable."""
        # The state of a file that could not be read at the start is not given up.
        await self._take_over(self._folder / f"{batch.id}{SUFFIX}")
        state = await self._services.states.find(batch.id)
        return None if state is None else self._run(batch, source, progress, state)

    async def take_over(self) -> None:
        """Store the states of files in the database, unless they are there; raises unavailable."""
        for path in await asyncio.to_thread(lambda: [*state_files(self._folder)]):
            try:
                await self._take_over(path)
            except OSError as error:
                log.warning("cannot take over the state of a batch: %s", full_message(error))

    async def _take_over(self, path: Path) -> None:
        state = await asyncio.to_thread(read_state_file, path)
        if state is None:
            return
        try:
            await self._services.states.add(path.stem, state)
        except GatewayError as error:
            # The batch was deleted.
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
        await asyncio.to_thread(path.unlink, missing_ok=True)

    async def check(self, batch: Batch, source: Path, actor: Actor) -> None:
        """Raise `MixedProvidersError` for a new batch with models of several providers."""
        choice = self._services.choice
        if batch.endpoint not in KINDS or not choice.is_wanted:
            return
        models = await asyncio.to_thread(read_models, source, batch)
        try:
            await choice.find(models, batch, actor)
        except GatewayError as error:
            # Models that are not known now are looked at again before the batch runs.
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise

    async def remove(self, batch_id: str) -> None:
        """Delete the state of a batch."""
        await self._services.states.remove(batch_id)
        await asyncio.to_thread(self._requests(batch_id).unlink, missing_ok=True)

    def remove_others(self, kept: Collection[str]) -> None:
        """Delete the files of all but these batches; blocks."""
        remove_other_states(self._folder, kept)

    def _requests(self, batch_id: str) -> Path:
        return self._folder / f"{batch_id}{REQUESTS_SUFFIX}"

    def _run(self, batch: Batch, source: Path, progress: BatchProgress, state: PassedState) -> PassedRun:
        services = self._services
        usage = PassedUsage(batch, services.store, services.actors, self._catalog, services.clock)
        answers = PassedAnswers(batch, source, progress, usage, self._render_error)
        files = PassedFiles(source, progress, self._requests(batch.id))
        return PassedRun(batch, files, services, (answers, usage), state)

    async def _choose(self, batch: Batch, source: Path) -> str:
        """Return the name of the provider for a batch that was never submitted, "" for none."""
        choice = self._services.choice
        if batch.endpoint not in KINDS or batch.cancelled_at is not None or not choice.is_wanted:
            return ""
        if self._services.clock() >= batch.expires_at:
            return ""
        try:
            actor = await self._services.actors.of(batch)
        except GatewayError as error:
            if error.kind is ErrorKind.FORBIDDEN:
                return ""
            raise
        target = await choice.find(await asyncio.to_thread(read_models, source, batch), batch, actor)
        return "" if target is None else target.source.name
