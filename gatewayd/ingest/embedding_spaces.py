"""Which embedding spaces are searched and filled, and the change from one model to another."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.embedder import EmbeddingTarget, embed_missing
from gatewayd.ingest.interfaces import Embedder, FileStore, PassageStore, SpaceStore
from gatewayd.ingest.records import EmbeddingSpace
from gatewayd.ingest.size_classes import REINDEX
from gatewayd.ingest.updates import IndexUpdates

log = logging.getLogger(__name__)

FILE_BATCH_SIZE: Final = 50
RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class SpaceStores:
    """Where spaces and their vectors are kept."""

    spaces: SpaceStore
    passages: PassageStore
    files: FileStore


@dataclass(frozen=True, slots=True)
class SpaceModels:
    """The configured model, None for none, and a way to open the model of another space by its name."""

    configured: Embedder | None
    open_embedder: Callable[[str], Embedder | None]


@dataclass(frozen=True, slots=True)
class ReindexState:
    """Whether a reindex runs, and why the last one ended early."""

    running: bool = False
    error: str | None = None


class EmbeddingSpaces:
    """Knows the active space, which is searched, and the configured one, which new files enter as well.

    They are the same until the configured model changes; `reindex` makes them the same again.
    """

    def __init__(self, stores: SpaceStores, models: SpaceModels, updates: IndexUpdates) -> None:
        self._stores = stores
        self._models = models
        self._updates = updates
        self._former: dict[str, Embedder | None] = {}
        self._settled: EmbeddingSpace | None = None
        self._settling = asyncio.Lock()
        self._reindexing = asyncio.Lock()
        self._state = ReindexState()
        self._workers = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._warned: set[str] = set()

    async def open(self) -> None:
        """Make the configured model's space known, and search in it if no other is searched.

        A model that cannot be asked now is asked again when it is needed.
        """
        try:
            await self._configured()
            await self.query()
        except GatewayError as error:
            self._warn(f"the embedding model cannot be used now: {error.message}")

    async def query(self) -> tuple[EmbeddingSpace, Embedder] | None:
        """Return the space to search and the model for the queries; None when there is none, or no such
        model.

        Raises what the configured model raises when it cannot be asked for its space; not not_configured.
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
    def first(self) -> Iterator[None]:
        """Let a reindex wait while the block runs: new files are embedded before old ones."""
        self._workers += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._workers -= 1
            if not self._workers:
                self._quiet.set()

    def progress(self) -> ReindexState:
        """Return whether a reindex runs, or how the last one ended."""
        return self._state

    async def reindex(self) -> None:
        """Fill the configured space, search in it from then on, and remove the others.

        May be stopped at any time and begun again. Raises conflict when one is running, not_configured
        without a configured model, and what that model raises.
        """
        if self._reindexing.locked():
            raise GatewayError(ErrorKind.CONFLICT, "cannot reindex: a reindex is running already")
        async with self._reindexing:
            try:
                await self._reindex()
            except GatewayError as error:
                self._state = replace(self._state, error=error.message)
                raise
            finally:
                self._state = replace(self._state, running=False)

    async def _reindex(self) -> None:
        self._state = ReindexState(running=True)
        target = await self._configured()
        if target is None:
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot reindex: no embedding model can be used")
        await self._fill_all(target)
        await self._stores.spaces.activate(target.space.name)
        # What was published between the last look and the change.
        await self._fill_all(target)
        # A file that is being processed may still put vectors into the former space.
        await self._quiet.wait()
        for space in await self._stores.spaces.list():
            if space.name != target.space.name:
                await self._stores.spaces.remove(space.name)
                self._former.pop(space.name, None)

    async def _fill_all(self, target: EmbeddingTarget) -> None:
        while file_ids := await self._stores.spaces.behind(target.space.name, FILE_BATCH_SIZE):
            added = [await self._fill(file_id, target) for file_id in file_ids]
            if not any(added):
                # All of them are being processed anew, and their staged passages have vectors.
                await asyncio.sleep(RETRY_SECONDS)

    async def _fill(self, file_id: str, target: EmbeddingTarget) -> int:
        added = 0
        await self._quiet.wait()
        async for count in embed_missing(self._stores.passages, file_id, target, REINDEX):
            added += count
            await self._quiet.wait()
        active = await self._stores.spaces.find_active()
        if added and active is not None and active.name == target.space.name:
            await self._updates.changed(file_id, await self._stores.files.collections_of(file_id))
        return added

    async def _configured(self) -> EmbeddingTarget | None:
        """Return the configured model with its space, which is known to the store then."""
        embedder = self._models.configured
        if embedder is None:
            return None
        async with self._settling:
            if self._settled is None:
                self._settled = await self._settle(embedder)
            return None if self._settled is None else EmbeddingTarget(self._settled, embedder)

    async def _settle(self, embedder: Embedder) -> EmbeddingSpace | None:
        try:
            space = await embedder.space()
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_CONFIGURED:
                raise
            self._warn(f"documents get no vectors, only their words are searched: {error.message}")
            return None
        known = {each.name: each for each in await self._stores.spaces.list()}.get(space.name, space)
        if known.dimension != space.dimension:
            self._warn(
                f"documents get no vectors: {space.name} has {space.dimension} dimensions now, "
                f"its stored vectors have {known.dimension}"
            )
            return None
        await self._stores.spaces.add(space)
        if await self._stores.spaces.find_active() is None:
            await self._stores.spaces.activate(space.name)
        return space

    def _opened(self, space: EmbeddingSpace, configured: EmbeddingTarget | None) -> EmbeddingTarget | None:
        """Return a space with its model: the configured one, or the one it was made with."""
        if configured is not None and configured.space.name == space.name:
            return configured
        if space.name not in self._former:
            self._former[space.name] = self._models.open_embedder(space.name)
        embedder = self._former[space.name]
        if embedder is None:
            self._warn(f"only words are searched until a reindex: the model of {space.name} cannot be opened")
            return None
        return EmbeddingTarget(space, embedder)

    def _warn(self, sentence: str) -> None:
        """Log a sentence once, however many files it concerns."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            log.warning("%s", sentence)
