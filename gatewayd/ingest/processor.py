"""File processor: extracts, chunks, embeds and publishes the passages of a file."""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gatewayd import ids
from gatewayd.errors import invalid, not_found
from gatewayd.ingest.chunker import ChunkRules, split_text
from gatewayd.ingest.embedder import EmbeddingTarget, add_embedded, embed_missing, embed_texts
from gatewayd.ingest.embedding_spaces import EmbeddingSpaces
from gatewayd.ingest.interfaces import Extractor
from gatewayd.ingest.job_leases import ProcessingLease, leased_step
from gatewayd.ingest.records import ExtractionResult, File, FileStatus, TextPart
from gatewayd.ingest.size_classes import QueueKey, SizeClass, size_class_of
from gatewayd.ingest.updates import IndexUpdates, IngestStores
from gatewayd.metering.service_calls import WorkOwner, paid_by
from gatewayd.text import replace_presentation_forms

log = logging.getLogger(__name__)

DEFAULT_RULES: Final = ChunkRules()


class FileProcessor:
    """Processes one file per call; calls for different files may run concurrently."""

    def __init__(
        self,
        stores: IngestStores,
        extractor: Extractor,
        spaces: EmbeddingSpaces,
        updates: IndexUpdates,
        rules: ChunkRules = DEFAULT_RULES,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._stores = stores
        self._extractor = extractor
        self._spaces = spaces
        self._updates = updates
        self._rules = rules
        self._clock = clock

    async def process(self, file_id: str, size: SizeClass, lease: ProcessingLease | None = None) -> bool:
        """Do the remaining steps for a file that has a job; nothing when the file is removed.

        Returns False when the text is extracted but has too many passages for the size class: the next call,
        with a larger class, does the rest. Each step is stored, so the call after a cancelled or killed one
        continues from there. Raises the GatewayErrors of Extractor and Embedder, and the conflict of a lost
        lease; each step that writes checks the lease in its transaction.
        """
        file = await self._stores.files.find(file_id)
        if file is None:
            return True
        key = QueueKey(file.user_id, size)
        described = await self._ensure_staged(file, key, lease)
        # The record of a completed file does not describe its staged text: the file keeps its class.
        if file.status is FileStatus.PENDING and size_class_of(file.size, described.chunks) > size:
            return False
        with self._spaces.pause_reindex(), paid_by(WorkOwner(file.user_id)):
            await self._embed(described, key, lease)
            await self._publish(described, lease)
        return True

    async def fail(self, file_id: str, sentence: str, lease: ProcessingLease | None = None) -> None:
        """Remove the job of a file and mark it failed; a completed file stays completed.

        Of several failed versions with the same path only the newest is kept. Raises the conflict of a lost
        lease.
        """
        removed: Sequence[File] = ()
        async with self._stores.transactor.transaction():
            if lease is not None:
                await lease.check()
            file = await self._stores.files.find(file_id)
            if file is None:
                return
            await self._stores.jobs.remove(file_id)
            await self._stores.passages.unstage(file_id)
            if file.status is not FileStatus.COMPLETED:
                now = self._clock()
                without_text = replace(
                    file, text_hash=None, characters=0, chunks=0, pages=None, blank_pages=0
                )
                failed = replace(without_text, status=FileStatus.FAILED, error=sentence, updated_at=now)
                await self._stores.files.change(failed)
                removed = await self._remove_failed(failed)
            self._updates.notify_after_commit(file_id)
        log.warning("cannot process document %s: %s", file_id, sentence)
        for former in removed:
            await self._updates.removed(former, ())

    async def rewrite(self, file: File, text: str) -> File:
        """Replace the passages of a file without a job by those of a non-blank text, in one transaction.

        Raises not_found when the file is removed, and the errors of Embedder.
        """
        extraction = await asyncio.to_thread(_extraction_of, text, self._rules)
        texts = [extraction.passage(chunk) for chunk in extraction.chunks]
        described = await _with_extraction(file, extraction)
        key = QueueKey(file.user_id, size_class_of(len(text), len(texts)))
        with self._spaces.pause_reindex(), paid_by(WorkOwner(file.user_id)):
            targets = await self._targets()
            batches = [await embed_texts(texts, target, key) for target in targets]
        # Staged passages must not outlive this block: without a job nothing would publish them.
        async with self._stores.transactor.transaction():
            if await self._stores.files.find(file.id) is None:
                raise not_found("file", file.id)
            await self._stores.passages.stage(file.id, extraction)
            for target, vectors in zip(targets, batches, strict=True):
                await add_embedded(self._stores.passages, file.id, target.space.name, vectors)
            published = await self._publish_inside(described)
        if published is None:
            raise not_found("file", file.id)
        await self._notify(published)
        return published.file

    async def _ensure_staged(self, file: File, key: QueueKey, lease: ProcessingLease | None = None) -> File:
        """Stage the passages of a file unless they are; return the record to publish."""
        # The record of a completed file describes its published text, not its staged one.
        is_described = file.status is FileStatus.PENDING and file.text_hash is not None
        if is_described and await self._stores.passages.is_staged(file.id):
            return file
        if not file.size:
            raise invalid("the file is empty")
        async with self._stores.blobs.local(file.blob_key, file.digest) as path:
            extraction = await self._extractor.extract(path, file.name, file.content_type, key)
        described = await _with_extraction(file, extraction)
        # Staging is outside of the transaction below, which would otherwise block other writers.
        check = None if lease is None else lease.check
        await self._stores.passages.stage(file.id, extraction, check)
        async with self._stores.transactor.transaction():
            if check is not None:
                await check()
            current = await self._stores.files.find(file.id)
            if current is not None and current.status is FileStatus.PENDING:
                await self._stores.files.change(_with_text_fields(current, described))
        return described

    async def _embed(self, file: File, key: QueueKey, lease: ProcessingLease | None) -> None:
        passages = self._stores.passages
        step = partial(leased_step, self._stores.transactor, lease)
        for target in await self._targets():
            twin = await passages.find_twin(file.text_hash or "", target.space.name)
            if twin is not None:
                async with step():
                    is_copied = await passages.copy_vectors(twin, file.id, target.space.name)
                if is_copied:
                    continue
            async for _ in embed_missing(passages, file.id, target, key, step):
                pass

    async def _targets(self) -> list[EmbeddingTarget]:
        return [EmbeddingTarget(space, embedder) for space, embedder in await self._spaces.targets()]

    async def _publish(self, described: File, lease: ProcessingLease | None) -> None:
        # Only SQLite has something to prepare, and it has no second node.
        await self._stores.passages.prepare(described.id)
        async with self._stores.transactor.transaction():
            if lease is not None:
                await lease.check()
            published = await self._publish_inside(described)
        if published is not None:
            await self._notify(published)

    async def _publish_inside(self, described: File) -> "_Published | None":
        """Publish in the caller's transaction; None when the file is removed."""
        file = await self._stores.files.find(described.id)
        if file is None:
            return None
        merged = _with_text_fields(file, described)
        done = replace(merged, status=FileStatus.COMPLETED, error=None, updated_at=self._clock())
        replaced = await self._stores.passages.find_replaced(file.id)
        collections = await self._stores.passages.publish(done)
        self._updates.notify_after_commit(file.id)
        former = dict.fromkeys(old_id for _, old_id in replaced)
        removed = [old for old_id in former if (old := await self._remove_former(done, old_id)) is not None]
        return _Published(done, collections, replaced, removed)

    async def _remove_former(self, file: File, former_id: str) -> File | None:
        """Remove a replaced file and return it; None if it has another owner or is in another collection."""
        former = await self._stores.files.find(former_id)
        if former is None or former.user_id != file.user_id:
            return None
        if await self._stores.files.collections_of(former_id):
            return None
        self._updates.notify_after_commit(former_id)
        return former if await self._stores.files.remove(former_id) else None

    async def _remove_failed(self, file: File) -> Sequence[File]:
        """Remove all but the newest failed version at the paths of a file; return the removed ones.

        Files of other owners and files that are also linked elsewhere are kept.
        """
        shared: dict[str, set[str]] = {file.id: set(await self._stores.files.collections_of(file.id))}
        for collection_id, other_id in await self._stores.passages.find_replaced(file.id):
            shared.setdefault(other_id, set()).add(collection_id)
        found = await self._stores.files.find_many([other_id for other_id in shared if other_id != file.id])
        others = [each for each in found.values() if each.status is FileStatus.FAILED]
        mine = [each for each in others if each.user_id == file.user_id]
        *former, newest = sorted([file, *mine], key=lambda each: (each.created_at, each.id))
        removed = []
        for each in former:
            held = set(await self._stores.files.collections_of(each.id))
            if held <= shared[each.id] & shared[newest.id] and await self._stores.files.remove(each.id):
                self._updates.notify_after_commit(each.id)
                removed.append(each)
        return removed

    async def _notify(self, published: "_Published") -> None:
        await self._updates.changed(published.file.id, published.collections)
        for collection_id, former_id in published.replaced:
            await self._updates.moved(former_id, [collection_id])
        for former in published.removed:
            await self._updates.removed(former, ())


@dataclass(frozen=True, slots=True)
class _Published:
    """Result of a publication: `replaced` links as (collection id, file id), and `removed` files."""

    file: File
    collections: Sequence[str]
    replaced: Sequence[tuple[str, str]]
    removed: Sequence[File]


def _extraction_of(text: str, rules: ChunkRules) -> ExtractionResult:
    """Return the extraction of a plain text, one part, with Arabic presentation forms replaced by letters."""
    plain = replace_presentation_forms(text)
    return ExtractionResult(plain, split_text(plain, [TextPart(0, len(plain))], rules))


async def _with_extraction(file: File, extraction: ExtractionResult) -> File:
    """Return a file with the fields that describe its extracted text."""
    text = extraction.text
    text_hash = await asyncio.to_thread(lambda: hashlib.sha256(text.encode()).hexdigest())
    return replace(
        file,
        text_hash=text_hash,
        characters=len(text),
        chunks=len(extraction.chunks),
        pages=extraction.pages,
        blank_pages=extraction.blank_pages,
    )


def _with_text_fields(current: File, described: File) -> File:
    """Return the current record with the text fields of another one."""
    return replace(
        current,
        text_hash=described.text_hash,
        characters=described.characters,
        chunks=described.chunks,
        pages=described.pages,
        blank_pages=described.blank_pages,
    )
