"""Service of batches: creates, lists, shows, cancels and deletes them for their users."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.batches.files import INPUT_PURPOSE, BatchFiles, FileWishes
from gatewayd.batches.interfaces import BatchActors, BatchStore
from gatewayd.batches.lines import ENDPOINTS, MESSAGES_ENDPOINT
from gatewayd.batches.passed import PassedBatches
from gatewayd.batches.records import Batch, BatchDialect, BatchFile, BatchStatus
from gatewayd.batches.worker import BatchWorker
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found, shorten

WINDOW: Final = "24h"
WINDOW_SECONDS: Final = 24 * 3600
MAX_UNFINISHED: Final = 50
"""Maximum number of unfinished batches of a user."""

MAX_METADATA: Final = 16
MAX_METADATA_NAME: Final = 64
MAX_METADATA_VALUE: Final = 512
RETENTION_SECONDS: Final = 30 * 24 * 3600
"""Time for which ended batches are kept."""

CANCELLABLE: Final = frozenset({BatchStatus.VALIDATING, BatchStatus.IN_PROGRESS})


class Batches:
    """Batches of users; one of another user is not found."""

    def __init__(
        self,
        store: BatchStore,
        files: BatchFiles,
        worker: BatchWorker,
        actors: BatchActors,
        clock: ids.Clock = ids.now,
        passed: PassedBatches | None = None,
    ) -> None:
        self._passed = passed
        self._store = store
        self.files = files
        self._worker = worker
        self._actors = actors
        self._clock = clock
        self._adding: Counter[str] = Counter()

    async def create(
        self, actor: Actor, input_file_id: str, endpoint: str, window: str, metadata: Any = None
    ) -> Batch:
        """Create a batch of the OpenAI dialect.

        Raises invalid_request, also for models of several providers if one of these runs batches itself;
        not_found for the file; conflict if the user has too many unfinished batches or files.
        """
        if endpoint not in ENDPOINTS:
            raise invalid(
                f"cannot accept endpoint {shorten(endpoint)!r}: batches run {', '.join(ENDPOINTS)}",
                param="endpoint",
                code="endpoint_not_supported",
            )
        if window != WINDOW:
            raise invalid(f"cannot accept completion_window: expected {WINDOW}", param="completion_window")
        file = await self.files.get(actor.user_id, input_file_id)
        if file.purpose != INPUT_PURPOSE:
            raise invalid("cannot accept input_file_id: its purpose is not batch", param="input_file_id")
        # The results are files, too.
        await self.files.check_room(actor.user_id)
        batch = self._new(actor, BatchDialect.OPENAI, endpoint, file, _metadata(metadata))
        await self._check_models(batch, actor)
        return await self._add(batch)

    async def create_messages(self, actor: Actor, lines: AsyncIterator[bytes], total: int) -> Batch:
        """Create a batch of messages from the lines of its input, which the caller has checked."""
        await self._check_room(actor.user_id)
        wishes = FileWishes(INPUT_PURPOSE)
        file = await self.files.upload(actor.user_id, "requests.jsonl", lines, lambda: wishes)
        is_added = False
        try:
            batch = self._new(actor, BatchDialect.ANTHROPIC, MESSAGES_ENDPOINT, file, {}, total)
            await self._check_models(batch, actor)
            batch = await self._add(batch)
            is_added = True
        finally:
            if not is_added:
                await self.files.remove(file)
        return batch

    async def get(self, actor: Actor, batch_id: str, dialect: BatchDialect) -> Batch:
        """Return a batch of the caller; raises not_found for any other."""
        batch = await self._store.find(batch_id)
        if batch is None or batch.user_id != actor.user_id or batch.dialect is not dialect:
            raise not_found("batch", batch_id)
        return self._worker.counts(batch)

    async def find(self, batch_id: str) -> Batch:
        """Return a batch of any user; raises not_found."""
        batch = await self._store.find(batch_id)
        if batch is None:
            raise not_found("batch", batch_id)
        return self._worker.counts(batch)

    async def list(
        self,
        user_id: str | None,
        dialect: BatchDialect | None = None,
        *,
        after: str | None = None,
        limit: int,
        before: str | None = None,
    ) -> Sequence[Batch]:
        """Return batches of a user, or of all, newest first."""
        found = await self._store.list(user_id, dialect, after=after, limit=limit, before=before)
        return [self._worker.counts(batch) for batch in found]

    async def cancel(self, batch: Batch) -> Batch:
        """Cancel a batch: running requests end, no further one begins. Raises conflict if it has ended."""
        now = self._clock()
        if not await self._store.change(
            batch.id, CANCELLABLE, status=BatchStatus.CANCELLING, cancelled_at=now
        ):
            found = await self.find(batch.id)
            if found.status is not BatchStatus.CANCELLING:
                raise GatewayError(
                    ErrorKind.CONFLICT, f"cannot cancel batch {batch.id!r}: it is {found.status.value}"
                )
            return found
        self._worker.stop_batch(batch.id)
        return await self.find(batch.id)

    async def remove(self, batch: Batch) -> None:
        """Delete an ended batch with its files; raises conflict for an unfinished one."""
        if batch.is_unfinished:
            raise GatewayError(
                ErrorKind.CONFLICT, f"cannot delete batch {batch.id!r}: cancel it first, it is unfinished"
            )
        await self._store.remove(batch.id)
        for file_id in (batch.input_file_id, batch.output_file_id, batch.error_file_id):
            if file_id is not None:
                await self._remove_file(batch.user_id, file_id)

    async def remove_file(self, actor: Actor, file_id: str) -> None:
        """Delete a file of the caller; raises conflict while an unfinished batch reads it."""
        file = await self.files.get(actor.user_id, file_id)
        for batch in await self._store.unfinished():
            if batch.input_file_id == file_id:
                raise GatewayError(
                    ErrorKind.CONFLICT, f"cannot delete file {file_id!r}: batch {batch.id!r} reads it"
                )
        await self.files.remove(file)

    async def prune(self) -> int:
        """Delete expired files, and batches that ended long ago."""
        removed = await self.files.prune()
        return removed + await self._store.prune(self._clock() - RETENTION_SECONDS)

    async def _check_models(self, batch: Batch, actor: Actor) -> None:
        if self._passed is not None:
            async with self.files.local(batch.input_file_id) as source:
                await self._passed.check(batch, source, actor)

    async def _add(self, batch: Batch) -> Batch:
        self._adding[batch.user_id] += 1
        try:
            await self._check_room(batch.user_id, 1)
            # The key may be restricted to other endpoints than that of the lines.
            await self._actors.of(batch)
            await self._store.add(batch)
        finally:
            self._adding[batch.user_id] -= 1
            if not self._adding[batch.user_id]:
                del self._adding[batch.user_id]
        self._worker.wake()
        return batch

    async def _check_room(self, user_id: str, own: int = 0) -> None:
        """Raise conflict for too many batches, with those that are being added but for `own`."""
        # Read before the stored ones, so that one that is added meanwhile counts in one place at least.
        adding = self._adding[user_id] - own
        if await self._store.count_unfinished(user_id) + adding >= MAX_UNFINISHED:
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot create the batch: you have {MAX_UNFINISHED} unfinished ones",
                code="too_many_batches",
            )

    async def _remove_file(self, user_id: str, file_id: str) -> None:
        try:
            await self.files.remove(await self.files.get(user_id, file_id))
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise

    def _new(
        self,
        actor: Actor,
        dialect: BatchDialect,
        endpoint: str,
        file: BatchFile,
        metadata: Mapping[str, str],
        total: int = 0,
    ) -> Batch:
        now = self._clock()
        is_checked = dialect is BatchDialect.ANTHROPIC
        prefix = "msgbatch_" if is_checked else "batch_"
        return Batch(
            id=prefix + ids.new_id().replace("-", ""),
            user_id=actor.user_id,
            dialect=dialect,
            endpoint=endpoint,
            input_file_id=file.id,
            status=BatchStatus.IN_PROGRESS if is_checked else BatchStatus.VALIDATING,
            created_at=now,
            expires_at=now + WINDOW_SECONDS,
            key_id=actor.key_id if actor.kind is CredentialKind.KEY else None,
            total=total,
            started_at=now if is_checked else None,
            metadata=metadata,
        )


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    is_fit = isinstance(value, dict) and len(value) <= MAX_METADATA
    if not is_fit or not all(
        len(name) <= MAX_METADATA_NAME and isinstance(text, str) and len(text) <= MAX_METADATA_VALUE
        for name, text in value.items()
    ):
        raise invalid(
            f"cannot accept metadata: expected up to {MAX_METADATA} texts with names of up to"
            f" {MAX_METADATA_NAME} and values of up to {MAX_METADATA_VALUE} characters",
            param="metadata",
        )
    return dict(value)
