"""A worker of batches over a provider that runs them, with stores in memory and a clock that tests set."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.batches.files import BatchFiles, FileWishes
from gatewayd.batches.interfaces import Fence
from gatewayd.batches.passed import PassedBatches
from gatewayd.batches.passed_choice import PassedChoice
from gatewayd.batches.passed_run import PassedServices, Pauses
from gatewayd.batches.passed_state import PassedState
from gatewayd.batches.records import UNFINISHED, Batch, BatchDialect, BatchFile, BatchStatus
from gatewayd.batches.run import LineServices
from gatewayd.batches.worker import BatchWorker
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.reasoning_memory import ReasoningMemory
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.nodes.duties import LEASE_TAKEN
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.pipeline import NoFilters
from gatewayd.pipeline.reasoning_keeper import ReasoningKeeper
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.providers.batch_provider import BatchProvider
from tests.fakes.providers.models import FakeRecords, make_actor

CHATS = "/v1/chat/completions"
NOW = 1_000_000


class MemoryBatches:
    """A `BatchStore`; `usage` has what was counted, and `fails` how often that fails."""

    def __init__(self) -> None:
        self.rows: dict[str, Batch] = {}
        self.usage: dict[UsageKey, UsageSums] = {}
        self.fails: list[BaseException] = []
        self.counted: list[tuple[int, int]] = []
        self.fence: Fence = nullcontext

    async def add(self, batch: Batch) -> None:
        self.rows[batch.id] = batch

    async def find(self, batch_id: str) -> Batch | None:
        return self.rows.get(batch_id)

    async def unfinished(self) -> Sequence[Batch]:
        return [batch for batch in self.rows.values() if batch.is_unfinished]

    async def count_unfinished(self, user_id: str) -> int:
        return len(await self.unfinished())

    async def change(self, batch_id: str, states: Collection[BatchStatus], **columns: Any) -> bool:
        async with self.fence():
            found = self.rows.get(batch_id)
            if found is None or found.status not in states:
                return False
            self.rows[batch_id] = replace(found, **columns)
            return True

    async def store_usage(
        self, batch_id: str, usage: Mapping[UsageKey, UsageSums], completed: int, failed: int
    ) -> bool:
        if usage and self.fails:
            raise self.fails.pop(0)
        if not await self.change(batch_id, UNFINISHED, completed=completed, failed=failed):
            return False
        self.counted.append((completed, failed))
        for key, sums in usage.items():
            self.usage.setdefault(key, UsageSums()).add(sums)
        return True


class MemoryPassedStates:
    """A `PassedStateStore`; a state is copied, as a database does."""

    def __init__(self, batches: MemoryBatches) -> None:
        self.rows: dict[str, PassedState] = {}
        self._batches = batches

    async def find(self, batch_id: str) -> PassedState | None:
        found = self.rows.get(batch_id)
        return None if found is None else replace(found)

    async def save(self, batch_id: str, state: PassedState) -> None:
        async with self._batches.fence():
            if batch_id not in self._batches.rows:
                raise not_found("batch", batch_id)
            self.rows[batch_id] = replace(state)

    async def add(self, batch_id: str, state: PassedState) -> None:
        if batch_id not in self._batches.rows:
            raise not_found("batch", batch_id)
        self.rows.setdefault(batch_id, replace(state))

    async def remove(self, batch_id: str) -> None:
        async with self._batches.fence():
            self.rows.pop(batch_id, None)


class MemoryFiles:
    """A `BatchFileStore` of what the worker asks for."""

    def __init__(self) -> None:
        self.rows: dict[str, BatchFile] = {}

    async def add(self, file: BatchFile) -> None:
        self.rows[file.id] = file

    async def find(self, file_id: str) -> BatchFile | None:
        return self.rows.get(file_id)

    async def usage(self, user_id: str) -> tuple[int, int]:
        return 0, 0

    async def named(self, user_id: str, purpose: str, name: str) -> Sequence[str]:
        wanted = (user_id, purpose, name)
        return [each.id for each in self.rows.values() if (each.user_id, each.purpose, each.name) == wanted]

    async def remove(self, file_ids: Iterable[str]) -> None:
        for file_id in file_ids:
            self.rows.pop(file_id, None)


class Short(Pauses):
    """Pauses that take no time, during which `act` may change the world."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def next(self) -> float:
        super().next()
        self._act()
        return 0.001


@dataclass
class PassedBench:
    """One batch `batch_b` of a user, the worker, and the provider."""

    folder: Path
    provider: BatchProvider
    catalog: Catalog
    dialect: BatchDialect = BatchDialect.OPENAI
    filters: ChatFilters = field(default_factory=NoFilters)
    now: int = NOW
    store: MemoryBatches = field(default_factory=MemoryBatches)
    rows: MemoryFiles = field(default_factory=MemoryFiles)
    tasks: TaskRegistry = field(default_factory=TaskRegistry)
    refusal: GatewayError | None = None
    own: list[Body] = field(default_factory=list)
    acts: list[Callable[[], None]] = field(default_factory=list)

    is_taken: bool = False
    """Whether another node has taken the batches over."""

    def __post_init__(self) -> None:
        self.store.fence = self.fence
        self.states = MemoryPassedStates(self.store)
        self.restart()

    @asynccontextmanager
    async def fence(self) -> AsyncIterator[None]:
        if self.is_taken:
            raise GatewayError(ErrorKind.CONFLICT, "cannot write: taken over", code=LEASE_TAKEN)
        yield

    def restart(self) -> None:
        """Make the worker anew, as a daemon does that was killed."""
        self.blobs = LocalBlobs(self.folder / "files")
        self.files = BatchFiles(
            self.rows,  # type: ignore[arg-type]
            self.blobs,
            lambda: self.now,
            fence=self.fence,
        )
        lines = LineServices(self, self, self, self.render_error, asyncio.Semaphore(2), 2, lambda: self.now)
        choice = PassedChoice(self.catalog, self.filters, ReasoningKeeper(ReasoningMemory()))
        self.services = PassedServices(
            choice,
            self.store,  # type: ignore[arg-type]
            self.states,
            self,
            lambda: Short(self.act),
            lambda: self.now,
        )
        self.passed = PassedBatches(self.services, self.catalog, self.render_error, self.folder / "passed")
        self.worker = BatchWorker(
            self.store,  # type: ignore[arg-type]
            self.files,
            lines,
            self.tasks,
            self.folder / "progress",
            lambda: self.now,
            self.passed,
        )

    def act(self) -> None:
        """Do the next of the acts, one in each pause."""
        if self.acts:
            self.acts.pop(0)()

    def render_error(self, error: GatewayError, dialect: BatchDialect) -> tuple[int, Body]:
        return 500, {"error": {"message": error.message, "code": error.told_code}}

    def begin_run(self, account: str) -> Callable[[], None]:
        return lambda: None

    async def of(self, batch: Batch) -> Actor:
        if self.refusal is not None:
            raise self.refusal
        return make_actor(batch.user_id)

    async def run(self, batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        self.own.append(body)
        return {"model": body["model"]}

    async def add(self, bodies: Sequence[Body], endpoint: str = "", **changes: Any) -> Batch:
        """Store a batch with these requests, whose ids are `c0`, `c1` and so on."""
        is_messages = self.dialect is BatchDialect.ANTHROPIC
        endpoint = endpoint or ("/v1/messages" if is_messages else CHATS)

        async def lines() -> AsyncIterator[bytes]:
            for number, body in enumerate(bodies):
                line = {"custom_id": f"c{number}", "method": "POST", "url": endpoint, "body": body}
                if is_messages:
                    line = {"custom_id": f"c{number}", "params": body}
                # A blank line is no request.
                yield json.dumps(line).encode() + b"\n\n"

        file = await self.files.upload("u1", "a", lines(), lambda: FileWishes("batch"))
        times = (NOW, NOW + 24 * 3600)
        batch = Batch("batch_b", "u1", self.dialect, endpoint, file.id, BatchStatus.VALIDATING, *times)
        if is_messages:
            batch = replace(batch, status=BatchStatus.IN_PROGRESS, total=len(bodies))
        await self.store.add(replace(batch, **changes))
        return self.store.rows["batch_b"]

    async def finish(self) -> Batch:
        """Run the worker until nothing is left to do."""
        while True:
            await self.worker.start_waiting()
            if not self.tasks.list():
                return self.store.rows["batch_b"]
            while self.tasks.list():
                await asyncio.sleep(0.001)

    async def kill(self) -> None:
        """End all tasks at once, and begin anew."""
        await self.tasks.close()
        self.tasks = TaskRegistry()
        self.restart()

    def results(self, file_id: str | None) -> dict[str, Any]:
        assert file_id is not None
        lines = list(map(json.loads, self.blobs.path(file_id).read_text().splitlines()))
        assert len({line["custom_id"] for line in lines}) == len(lines)
        return {line["custom_id"]: line for line in lines}

    def counted(self) -> UsageSums:
        """Return the sum of all usage."""
        found = UsageSums()
        for sums in self.store.usage.values():
            found.add(sums)
        return found


@asynccontextmanager
async def passed_bench(
    folder: Path, dialect: BatchDialect = BatchDialect.OPENAI, **options: Any
) -> AsyncIterator[PassedBench]:
    """Open the bench: the models `up.m` and `up.n` are of the provider, `own.m` of one that runs no batch."""
    is_messages = dialect is BatchDialect.ANTHROPIC
    kind = SourceKind.ANTHROPIC if is_messages else SourceKind.OPENAI
    tasks = TaskRegistry()
    async with BatchProvider(is_messages=is_messages) as provider:
        sources = [
            open_source(ProviderConfig("up", kind, provider.base_url, prefix="up.", passes_batches=True)),
            open_source(ProviderConfig("own", kind, provider.base_url, prefix="own.")),
        ]
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        catalog.use(sources)
        await catalog.list(make_actor())
        bench = PassedBench(folder, provider, catalog, dialect, **options)
        try:
            yield bench
        finally:
            await bench.tasks.close()
            for source in sources:
                await source.close()
            await tasks.close()
