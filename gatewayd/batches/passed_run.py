"""One batch that a provider runs: submitted once, looked at until it ends, and its answers stored."""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.batches.interfaces import BatchActors, BatchStore, PassedStateStore
from gatewayd.batches.passed_answers import PassedAnswers
from gatewayd.batches.passed_choice import (
    MixedProvidersError,
    NotPassableError,
    PassedChoice,
    PassedTarget,
    read_models,
)
from gatewayd.batches.passed_state import PassedState
from gatewayd.batches.passed_upload import UploadWriter, WrittenUpload
from gatewayd.batches.passed_usage import PassedUsage
from gatewayd.batches.progress import BatchProgress
from gatewayd.batches.records import Batch, BatchStatus
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.provider_batches import (
    BatchUpload,
    ProviderBatch,
    ProviderBatches,
    ProviderBatchState,
)
from gatewayd.completions.refusal_reasons import RefusalReason, reason_of
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.duties import LEASE_TAKEN

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 60.0
GROWTH: Final = 1.5
JITTER: Final = 0.25
"""Pauses between two questions to a provider: each is longer than the one before, up to a limit, and random
by this part of it."""

MAX_MISSING: Final = 3
"""How often a batch is not found at its provider before it counts as deleted there."""

SETTLE_SECONDS: Final = 30
"""How long after a try whose answer did not come a batch may not be in the provider's list yet."""

END_SECONDS: Final = 3600
"""How long after its end a batch is still waited for that its provider has not ended."""

FINAL_KINDS: Final = frozenset(
    {ErrorKind.INVALID_REQUEST, ErrorKind.NOT_FOUND, ErrorKind.TOO_LARGE, ErrorKind.CONFLICT}
)
"""Errors of a submission after which another one fails again."""


@dataclass(frozen=True, slots=True)
class PassedEnd:
    """How a run ended: `status` if it is not told by the answers, with the faults of the batch.

    With `is_given_back` the provider has nothing, and the gateway runs the lines without an answer.
    """

    status: BatchStatus | None = None
    faults: tuple[dict[str, Any], ...] = ()
    is_given_back: bool = False


class Pauses:
    """The pauses between questions; `chance` returns numbers from 0 to 1."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._seconds = FIRST_PAUSE_SECONDS

    def next(self) -> float:
        """Return the seconds of the next pause."""
        seconds = self._seconds
        self._seconds = min(seconds * GROWTH, MAX_PAUSE_SECONDS)
        return seconds * (1 + JITTER * (2 * self._chance() - 1))


@dataclass(frozen=True, slots=True)
class PassedServices:
    """What every run needs; `pauses` makes the pauses of one."""

    choice: PassedChoice
    store: BatchStore
    states: PassedStateStore
    actors: BatchActors
    pauses: Callable[[], Pauses] = Pauses
    clock: ids.Clock = ids.now


@dataclass(frozen=True, slots=True)
class PassedFiles:
    """The input file and the stored answers of one batch, and the file of the requests for the provider."""

    source: Path
    progress: BatchProgress
    requests: Path


class PassedRun:
    """One batch. `target` is the provider of a batch that was never submitted."""

    def __init__(
        self,
        batch: Batch,
        files: PassedFiles,
        services: PassedServices,
        parts: tuple[PassedAnswers, PassedUsage],
        state: PassedState,
    ) -> None:
        self.batch = batch
        self.progress = files.progress
        self.source = files.source
        self._files = files
        self._services = services
        self._answers, self._usage = parts
        self._state = state
        self._usage.provider = state.provider
        self._upload: BatchUpload | None = None
        self._shown = (0, 0)
        self._stopped = asyncio.Event()
        self._refusal: GatewayError | None = None
        self._pauses = services.pauses()
        self._last_try = state.last_tried_at or state.tried_at

    @property
    def provider(self) -> str:
        """Name of the provider."""
        return self._state.provider

    @property
    def counts(self) -> tuple[int, int]:
        """The number of requests that succeeded, and that failed, as far as they are known."""
        own = (self.progress.completed, self.progress.failed)
        return max(own, self._shown, key=sum)

    @property
    def is_stopped(self) -> bool:
        """Whether the batch is cancelled or late."""
        return self._stopped.is_set() or self._services.clock() >= self.batch.expires_at

    def stop(self) -> None:
        """Cancel the batch at its provider."""
        self._stopped.set()

    async def run(self) -> PassedEnd:
        """Bring the batch to its end at the provider. Raises OSError, and GatewayError of the database."""
        try:
            return await self._run()
        finally:
            # Another node may go on, or the user be erased; they are written anew when it goes on here.
            await asyncio.to_thread(self._files.requests.unlink, missing_ok=True)

    async def _run(self) -> PassedEnd:
        await self.progress.open(self.batch.total)
        if self._state.tried_at:
            await self._usage.recount(self.progress)
        else:
            await self._usage.begin(self.progress)
        if self._state.is_fetched:
            return PassedEnd()
        while not self._state.batch_id:
            ended = await self._submit()
            if ended is not None:
                return ended
        found = await self._follow()
        if isinstance(found, PassedEnd):
            return found
        return await self._fetch(found)

    async def abandon(self) -> None:
        """Cancel the batch at its provider, as far as that can be reached."""
        if not self._state.batch_id:
            return
        try:
            await self._batches().cancel(self._state.batch_id)
        except GatewayError as error:
            self._warn("cannot cancel the batch of a provider", error)

    # Submission ----------------------------------------------------------------------------------------

    async def _submit(self) -> PassedEnd | None:
        """Try to submit; return how the batch ended if it is not to be tried again."""
        if self._is_over():
            return PassedEnd()
        try:
            if self._state.tried_at and not await self._find_earlier():
                # Whether the provider has the batch is not known yet.
                await self._pause()
                return None
            if self._state.batch_id:
                return None
            if self.is_stopped:
                return PassedEnd()
            written = await self._write()
            if written is None:
                return PassedEnd(is_given_back=True)
            await self._create(written)
        except NotPassableError:
            return PassedEnd(is_given_back=True)
        except GatewayError as error:
            ended = _end_of(error)
            if ended is not None:
                return ended
            self._warn("cannot submit a batch to its provider", error)
            await self._pause()
        return None

    async def _find_earlier(self) -> bool:
        """Look for the batch of an earlier try, whose answer did not come; return whether that is settled."""
        state, batches = self._state, self._batches()
        sought = BatchUpload(self.batch.id, self.batch.endpoint, self._files.requests, 0, state.sent)
        found = await batches.find(sought, state.tried_at)
        if found.batch_id is not None:
            await self._adopt(found.batch_id)
            return True
        for candidate in found.candidates:
            if candidate in state.rejected:
                continue
            shown = await batches.get(candidate)
            if shown.state is ProviderBatchState.WORKING:
                return False
            is_own = [await self._answers.is_own(await batches.read(each), batches) for each in shown.results]
            if any(is_own):
                await self._adopt(candidate)
                return True
            state.rejected = (*state.rejected, candidate)
            await self._save()
        return self._services.clock() >= self._last_try + SETTLE_SECONDS

    async def _write(self) -> WrittenUpload | None:
        """Write the requests; None if nothing is left to submit, or the budgets have no room for it."""
        actor = await self._services.actors.of(self.batch)
        target = await self._target(actor)
        writer = UploadWriter(
            self.batch, self._files.source, self.progress, self._answers, self._services.choice
        )
        written = await writer.write(self._files.requests, target, actor)
        has_room = await self._usage.can_hold(written.estimates, actor)
        return written if written.upload.total and has_room else None

    async def _target(self, actor: Actor) -> PassedTarget:
        models = await asyncio.to_thread(read_models, self._files.source, self.batch)
        target = await self._services.choice.find(models, self.batch, actor)
        if target is None or target.source.name != self.provider:
            raise NotPassableError
        return target

    async def _create(self, written: WrittenUpload) -> None:
        state, upload, batches = self._state, written.upload, self._batches()
        context = CallContext(self.batch.id, self.batch.user_id)
        file_id = await batches.upload(upload, context)
        self._last_try = self._services.clock()
        state.file_id, state.sent = file_id, upload.total
        state.tried_at, state.last_tried_at = state.tried_at or self._last_try, self._last_try
        # The intention: whoever goes on looks for the batch before another one is submitted.
        await self._save()
        await self._adopt(await batches.create(upload, file_id, context))
        await asyncio.to_thread(self._files.requests.unlink, missing_ok=True)

    async def _adopt(self, batch_id: str) -> None:
        self._state.batch_id = batch_id
        await self._save()
        log.info(
            "a provider runs a batch",
            extra={"batch": self.batch.id, "provider": self.provider, "provider_batch": batch_id},
        )

    # Progress ------------------------------------------------------------------------------------------

    async def _follow(self) -> "ProviderBatch | PassedEnd":
        """Return the batch when the provider has ended it, or how it ended without it."""
        self._pauses = self._services.pauses()
        missing, is_cancelled = 0, False
        while True:
            shown = None
            try:
                shown = await self._batches().get(self._state.batch_id)
                missing = 0
            except GatewayError as error:
                missing += error.kind is ErrorKind.NOT_FOUND
                self._warn("cannot look at the batch of a provider", error)
                if missing >= MAX_MISSING:
                    return PassedEnd(BatchStatus.FAILED, (fault_of(error, "provider_batch_gone"),))
            if shown is not None:
                self._shown = (shown.completed, self.progress.failed + shown.failed)
                if shown.state is ProviderBatchState.ENDED:
                    return shown
                if shown.state is ProviderBatchState.FAILED:
                    return PassedEnd(BatchStatus.FAILED, await self._faults(shown))
            if not await self._is_wanted():
                await self.abandon()
                return PassedEnd()
            if not is_cancelled and (self.is_stopped or self._refusal is not None):
                is_cancelled = await self._cancelled()
            if self._is_over():
                return PassedEnd()
            await self._pause(is_awake=is_cancelled)

    async def _is_wanted(self) -> bool:
        """Return whether the batch exists; note if its user may not run it any more."""
        if await self._services.store.find(self.batch.id) is None:
            return False
        if self._refusal is None:
            try:
                await self._services.actors.of(self.batch)
            except GatewayError as error:
                if error.kind is ErrorKind.FORBIDDEN:
                    self._refusal = error
        return True

    async def _cancelled(self) -> bool:
        try:
            await self._batches().cancel(self._state.batch_id)
        except GatewayError as error:
            self._warn("cannot cancel the batch of a provider", error)
            return error.kind in FINAL_KINDS
        return True

    async def _faults(self, shown: ProviderBatch) -> tuple[dict[str, Any], ...]:
        """Return the faults of a provider with the numbers of the lines of the caller's file."""
        numbers = [each for each in range(1, self.batch.total + 1) if not self.progress.is_done(each)]
        found = []
        for fault in shown.faults:
            line = fault.get("line")
            is_known = type(line) is int and 0 < line <= len(numbers)
            message = f"provider {self.provider!r} refused the batch: {fault.get('message') or ''}"
            number = numbers[int(line or 0) - 1] if is_known else None
            found.append({"code": fault.get("code"), "message": message, "param": None, "line": number})
        refused = GatewayError(ErrorKind.INVALID_REQUEST, f"provider {self.provider!r} refused the batch")
        return tuple(found) or (fault_of(refused, "provider_refused"),)

    # Results -------------------------------------------------------------------------------------------

    async def _fetch(self, shown: ProviderBatch) -> PassedEnd:
        """Store the results; lines without one get an error, unless the batch was cancelled or late."""
        gone: GatewayError | None = None
        for results in shown.results:
            gone = await self._store(results) or gone
        if self._answers.unknown:
            log.warning(
                "results of a provider belong to no request",
                extra={
                    "batch": self.batch.id,
                    "provider": self.provider,
                    "lines": self._answers.unknown,
                },
            )
        if gone is not None:
            await self._forget(shown)
            return PassedEnd(BatchStatus.FAILED, (fault_of(gone, "provider_results_gone"),))
        rest = self._error_of_rest()
        if rest is not None:
            await self._answers.refuse_rest(rest)
            await self._usage.count([], self.progress.completed, self.progress.failed)
        await self._forget(shown)
        return PassedEnd()

    async def _store(self, results: str) -> GatewayError | None:
        """Store results, again and again until they are whole; return the error if they are gone."""
        self._pauses = self._services.pauses()
        is_again = False
        while True:
            try:
                if is_again:
                    await self._usage.recount(self.progress)
                is_again = True
                batches = self._batches()
                await self._answers.store(await batches.read(results), batches)
            except GatewayError as error:
                if error.code == LEASE_TAKEN:
                    raise
                self._warn("cannot read the results of a provider", error)
                if error.kind is ErrorKind.NOT_FOUND:
                    return error
                if self._is_over():
                    return error
                await self._pause(is_awake=True)
            else:
                return None

    def _error_of_rest(self) -> GatewayError | None:
        """Return why lines have no answer; None if they did not run because the batch was ended."""
        if self._refusal is not None:
            return self._refusal
        if self.is_stopped or self._answers.has_expired:
            return None
        sentence = f"cannot get an answer from provider {self.provider!r}: its batch has no result for it"
        return GatewayError(ErrorKind.UPSTREAM_FAILED, sentence)

    async def _forget(self, shown: ProviderBatch) -> None:
        """Note that the results are stored, then delete them at the provider."""
        self._state.is_fetched = True
        try:
            await self._save()
        except GatewayError as error:
            # Of a batch that was deleted with its user nothing stays at the provider.
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
        try:
            await self._batches().remove(shown, self._state.file_id)
        except GatewayError as error:
            self._warn("cannot delete the batch of a provider", error)

    # Helpers -------------------------------------------------------------------------------------------

    def _batches(self) -> ProviderBatches:
        """Return the batches of the provider; raises unreachable if the settings do not name it."""
        source = self._services.choice.find_source(self.provider)
        if source is None:
            raise GatewayError(
                ErrorKind.UPSTREAM_UNREACHABLE,
                f"cannot reach the batches of provider {self.provider!r}: the settings do not name it",
            )
        return source.batches

    def _is_over(self) -> bool:
        """Return whether the provider is not waited for any more."""
        return self._services.clock() >= self.batch.expires_at + END_SECONDS

    async def _save(self) -> None:
        await self._services.states.save(self.batch.id, self._state)

    async def _pause(self, *, is_awake: bool = False) -> None:
        """Wait, but not longer than until `stop`, unless that is known."""
        seconds = self._pauses.next()
        if is_awake or self._stopped.is_set():
            await asyncio.sleep(seconds)
            return
        seconds = min(seconds, max(0.0, self.batch.expires_at - self._services.clock()) or seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return

    def _warn(self, sentence: str, error: GatewayError) -> None:
        log.warning(
            "%s: %s",
            sentence,
            error.full_message,
            extra={"batch": self.batch.id, "provider": self.provider},
        )


def _end_of(error: GatewayError) -> PassedEnd | None:
    """Return how a failed submission ends a batch, None if it is to be tried again.

    Raises the error of a batch that another node has taken over.
    """
    if error.code == LEASE_TAKEN:
        raise error
    if error.kind is ErrorKind.FORBIDDEN:
        # The lines get the reason one by one.
        return PassedEnd(is_given_back=True)
    if error.kind in FINAL_KINDS or reason_of(error.provider_code) is RefusalReason.NO_CREDIT:
        return PassedEnd(BatchStatus.FAILED, (fault_of(error),))
    return None


def fault_of(error: GatewayError, code: str = "") -> dict[str, Any]:
    """Return an error as a fault of the input file."""
    told = code or error.told_code or "provider_refused"
    line = error.line if isinstance(error, MixedProvidersError) else None
    return {"code": told, "message": error.message, "param": error.param, "line": line}
