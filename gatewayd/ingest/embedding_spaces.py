"""Embedding spaces: the active one, the configured one, and the reindex from one model to another."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.embedder import EmbeddingTarget, embed_missing
from gatewayd.ingest.interfaces import Embedder, FileStore, PassageStore, SpaceStore
from gatewayd.ingest.records import EmbeddingSpace
from gatewayd.ingest.size_classes import REINDEX
from gatewayd.ingest.updates import IndexUpdates
from gatewayd.metering.service_calls import NOBODY, WorkOwner, paid_by

log = logging.getLogger(__name__)

FILE_BATCH_SIZE: Final = 50
RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class SpaceStores:
    """The stores of spaces, their vectors and the files."""

    spaces: SpaceStore
    passages: PassageStore
    files: FileStore


@dataclass(frozen=True, slots=True)
class SpaceModels:
    """The configured model (None without one), and a function that opens the model of a space by name."""

    configured: Embedder | None
    open_embedder: Callable[[str], Embedder | None]


@dataclass(frozen=True, slots=True)
class ReindexState:
    """Whether a reindex runs, and the error that ended the last one early."""

    running: bool = False
    error: str | None = None


class EmbeddingSpaces:
    """Manages the active space, which is searched, and the configured one, which new files enter as well.

    Both are the same space until the configured model changes. `reindex` makes them the same again. `settle`
    waits for the files that other nodes are processing.
    """

    def __init__(
        self,
        stores: SpaceStores,
        models: SpaceModels,
        updates: IndexUpdates,
        settle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._settle = settle
        self._stores = stores
        self._models = models
        self._updates = updates
        self._opened_embedders: dict[str, Embedder | None] = {}
        self._own_space: EmbeddingSpace | None = None
        self._space_lock = asyncio.Lock()
        self._reindex_lock = asyncio.Lock()
        self._state = ReindexState()
        self._running_ingests = 0
        self._no_ingest = asyncio.Event()
        self._no_ingest.set()
        self._warned: set[str] = set()

    async def open(self) -> None:
        """Register the configured model's space, and make it active if no other space is.

        A model that cannot be reached now is asked again on first use.
        """
        try:
            await self._configured()
            await self.query()
        except GatewayError as error:
            self._warn(f"cannot use the embedding model now: {error.message}")

    async def query(self) -> tuple[EmbeddingSpace, Embedder] | None:
        """Return the active space and its model for queries; None without a space or without its model.

        Raises the error of the configured model when asking for its space fails, except not_configured.
        """
        configured = await self._configured()
        active = await self._stores.spaces.find_active()
        found = None if active is None else self._opened(active, configured)
        return None if found is None else (found.space, found.embedder)

    async def targets(self) -> Sequence[tuple[EmbeddingSpace, Embedder]]:
        """Return the spaces that a new file enters: the active one, and the configured one where it differs.

        Raises as `query` does.
        """
        configured = await self._configured()
        active = await self._stores.spaces.find_active()
        found = [] if active is None else [self._opened(active, configured)]
        if configured is not None and (active is None or active.name != configured.space.name):
            found.append(configured)
        return [(target.space, target.embedder) for target in found if target is not None]

    @contextmanager
    def pause_reindex(self) -> Iterator[None]:
        """Pause a reindex while the block runs: new files are embedded before old ones."""
        self._running_ingests += 1
        self._no_ingest.clear()
        try:
            yield
        finally:
            self._running_ingests -= 1
            if not self._running_ingests:
                self._no_ingest.set()

    def progress(self) -> ReindexState:
        """Return the state of the running reindex, or the result of the last one."""
        return self._state

    async def reindex(self) -> None:
        """Fill the configured space, make it the active one, and remove the others.

        A cancelled reindex can be started again and continues. Raises conflict while one is running,
        not_configured without a configured model, and the errors of that model.
        """
        if self._reindex_lock.locked():
            raise GatewayError(ErrorKind.CONFLICT, "cannot reindex: a reindex is running already")
        async with self._reindex_lock:
            try:
                await self._reindex()
            except GatewayError as error:
                self._state = replace(self._state, error=error.message)
                raise
            finally:
                self._state = replace(self._state, running=False)

    async def find_unused(self) -> Sequence[str]:
        """Return the names of the spaces that are neither searched nor filled, which an ended reindex left.

        None while a reindex runs, or before the configured model has answered.
        """
        is_unknown = self._models.configured is not None and self._own_space is None
        active = await self._stores.spaces.find_active()
        if self._reindex_lock.locked() or is_unknown or active is None:
            return []
        used = {active.name, self._own_space.name if self._own_space is not None else active.name}
        return [space.name for space in await self._stores.spaces.list() if space.name not in used]

    async def remove_unused(self) -> int:
        """Remove the spaces of `find_unused` with their vectors; return their number."""
        unused = await self.find_unused()
        if not unused or self._reindex_lock.locked():
            return 0
        async with self._reindex_lock:
            for name in unused:
                await self._stores.spaces.remove(name)
                self._opened_embedders.pop(name, None)
        return len(unused)

    async def _reindex(self) -> None:
        self._state = ReindexState(running=True)
        target = await self._configured()
        if target is None:
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot reindex: no embedding model can be used")
        await self._fill_all(target)
        await self._stores.spaces.activate(target.space.name)
        # Files that were published between the last query and the activation.
        await self._fill_all(target)
        # A file that is being processed may still put vectors into the former space.
        await self._no_ingest.wait()
        if self._settle is not None:
            await self._settle()
        for space in await self._stores.spaces.list():
            if space.name != target.space.name:
                await self._stores.spaces.remove(space.name)
                self._opened_embedders.pop(space.name, None)

    async def _fill_all(self, target: EmbeddingTarget) -> None:
        while file_ids := await self._stores.spaces.behind(target.space.name, FILE_BATCH_SIZE):
            added = [await self._fill(file_id, target) for file_id in file_ids]
            if not any(added):
                # All of these files are being processed again, and their staged passages have vectors.
                await asyncio.sleep(RETRY_SECONDS)

    async def _fill(self, file_id: str, target: EmbeddingTarget) -> int:
        added = 0
        await self._no_ingest.wait()
        file = await self._stores.files.find(file_id)
        with paid_by(NOBODY if file is None else WorkOwner(file.user_id)):
            async for count in embed_missing(self._stores.passages, file_id, target, REINDEX):
                added += count
                await self._no_ingest.wait()
        active = await self._stores.spaces.find_active()
        if added and active is not None and active.name == target.space.name:
            await self._updates.changed(file_id, await self._stores.files.collections_of(file_id))
        return added

    async def _configured(self) -> EmbeddingTarget | None:
        """Return the configured model with its space, which the store then contains."""
        embedder = self._models.configured
        if embedder is None:
            return None
        async with self._space_lock:
            if self._own_space is None:
                self._own_space = await self._register_space(embedder)
            return None if self._own_space is None else EmbeddingTarget(self._own_space, embedder)

    async def _register_space(self, embedder: Embedder) -> EmbeddingSpace | None:
        try:
            space = await embedder.space()
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_CONFIGURED:
                raise
            self._warn(f"cannot embed documents, search uses words only: {error.message}")
            return None
        known = {each.name: each for each in await self._stores.spaces.list()}.get(space.name, space)
        if known.dimension != space.dimension:
            self._warn(
                f"cannot embed documents: {space.name} now has {space.dimension} dimensions, "
                f"its stored vectors have {known.dimension}"
            )
            return None
        await self._stores.spaces.add(space)
        if await self._stores.spaces.find_active() is None:
            await self._stores.spaces.activate(space.name)
        return space

    def _opened(self, space: EmbeddingSpace, configured: EmbeddingTarget | None) -> EmbeddingTarget | None:
        """Return a space with the model that made its vectors; None when that model cannot be opened."""
        if configured is not None and configured.space.name == space.name:
            return configured
        if space.name not in self._opened_embedders:
            self._opened_embedders[space.name] = self._models.open_embedder(space.name)
        embedder = self._opened_embedders[space.name]
        if embedder is None:
            self._warn(f"cannot open the model of {space.name}: search uses words only until a reindex")
            return None
        return EmbeddingTarget(space, embedder)

    def _warn(self, sentence: str) -> None:
        """Log a sentence once, not once per file."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            log.warning("%s", sentence)
