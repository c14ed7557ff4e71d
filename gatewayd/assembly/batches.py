"""Batches: their stores, worker and routes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.assembly.accounts import AccountServices, AccountStores
from gatewayd.assembly.runs import AnswerServices
from gatewayd.batches.actors import CurrentBatchActors
from gatewayd.batches.files import BatchFiles
from gatewayd.batches.interfaces import RequestRunner
from gatewayd.batches.passed import PassedBatches
from gatewayd.batches.passed_choice import PassedChoice
from gatewayd.batches.passed_run import PassedServices
from gatewayd.batches.progress import move_to_files, take_over_files
from gatewayd.batches.records import BatchDialect
from gatewayd.batches.requests import BatchRequests
from gatewayd.batches.run import LineServices
from gatewayd.batches.service import Batches
from gatewayd.batches.worker import NODE_POLL_SECONDS, POLL_SECONDS, BatchWorker
from gatewayd.catalog.service import Catalog
from gatewayd.errors import GatewayError
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.batches import ControlBatchRoutes
from gatewayd.http.errors import body_of, status_of
from gatewayd.http.idempotency import IdempotentWrites
from gatewayd.http.public.batches.files import BatchFileRoutes
from gatewayd.http.public.batches.message_batches import MessageBatchRoutes
from gatewayd.http.public.batches.routes import BatchRoutes
from gatewayd.http.public.responses.batch_requests import ResponseBatchRequests
from gatewayd.http.public.responses.conversion import ResponseConversion
from gatewayd.http.public.responses.native import NativeResponses
from gatewayd.http.routes import Route, RouteDialect
from gatewayd.ingest.interfaces import BlobStore
from gatewayd.ingest.storage_room import StorageLimiter
from gatewayd.nodes.duties import Duties
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.interfaces import ChatFilters, RunLimiter
from gatewayd.pipeline.media.service import MediaService
from gatewayd.pipeline.passthrough import RequestForwarder
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.reasoning_keeper import ReasoningKeeper
from gatewayd.pipeline.responses.router import MissingEndpoints, ResponseRouter
from gatewayd.settings import Settings
from gatewayd.storage.batches import (
    TortoiseBatchAnswers,
    TortoiseBatches,
    TortoiseBatchFiles,
    TortoisePassedStates,
)
from gatewayd.tasks import TaskRegistry

FOLDER: Final = "batches"
BATCHES_DUTY: Final = "batches"
"""The duty of the node that runs all batches."""

DIALECTS: Final = {
    BatchDialect.OPENAI: RouteDialect.OPENAI,
    BatchDialect.ANTHROPIC: RouteDialect.ANTHROPIC,
}


@dataclass(frozen=True, slots=True)
class BatchServices:
    """Batches, and the worker that runs them."""

    batches: Batches
    worker: BatchWorker


@dataclass(frozen=True, slots=True)
class PassingServices:
    """What decides whether a provider runs a batch, and makes its requests."""

    catalog: Catalog
    filters: ChatFilters
    reasoning: ReasoningKeeper


def make_batch_requests(
    catalog: Catalog, pipeline: Pipeline, filters: ChatFilters, answering: AnswerServices
) -> RequestRunner:
    """Return what runs the requests of batches."""
    archive, missing = answering.responses, MissingEndpoints()
    forwarding = RequestForwarder(catalog, filters, answering.response_ids, missing)
    requests = BatchRequests(
        pipeline, EmbeddingService(catalog, filters), forwarding, MediaService(catalog, filters)
    )
    conversion = ResponseConversion(archive, answering.response_cipher)
    native = NativeResponses(ResponseRouter(catalog, missing), forwarding, archive, conversion)
    return ResponseBatchRequests(requests, pipeline, native, conversion)


@dataclass(frozen=True, slots=True)
class BatchStorage:
    """The bytes of the files of batches, their quotas, and whether other nodes may work on them.

    `duties` choose the node that runs the batches. With `has_rows` the answers of unfinished batches are in
    the database, else in a file of the daemon.
    """

    quotas: StorageLimiter
    blobs: BlobStore
    is_of_node: bool
    duties: Duties
    has_rows: bool


async def open_batches(
    settings: Settings,
    stores: AccountStores,
    accounts: AccountServices,
    requests: RequestRunner,
    room: RunLimiter,
    tasks: TaskRegistry,
    passing: PassingServices,
    storage: BatchStorage,
) -> BatchServices:
    """Return the services of batches; unless this is a node, files of a killed daemon without a row go."""
    folder = settings.data_dir / FOLDER
    fence = partial(storage.duties.fenced, BATCHES_DUTY)
    files = BatchFiles(TortoiseBatchFiles(), storage.blobs, quotas=storage.quotas, fence=fence)
    if not storage.is_of_node:
        await files.start()
    accounts.changes.subscribe(partial(_on_change, files, tasks))
    rows, own_rows = TortoiseBatches(), TortoiseBatches(fence)
    actors = CurrentBatchActors(stores.users, stores.keys, accounts.key_rules)
    lines = LineServices(
        requests,
        actors,
        room,
        render_failure,
        asyncio.Semaphore(settings.batch_parallel_requests),
        settings.batch_parallel_requests,
    )
    choice = PassedChoice(passing.catalog, passing.filters, passing.reasoning)
    services = PassedServices(choice, own_rows, TortoisePassedStates(fence), actors)
    passed = PassedBatches(services, passing.catalog, render_failure, folder / "passed")
    poll = NODE_POLL_SECONDS if storage.is_of_node else POLL_SECONDS
    await passed.take_over()
    progress, answers = folder / "progress", TortoiseBatchAnswers(fence)
    await (take_over_files if storage.has_rows else move_to_files)(progress, answers)
    worker = BatchWorker(
        own_rows,
        files,
        lines,
        tasks,
        progress,
        passed=passed,
        poll=poll,
        answers=answers if storage.has_rows else None,
    )
    return BatchServices(Batches(rows, files, worker, actors, passed=passed), worker)


def _on_change(files: BatchFiles, tasks: TaskRegistry, change: AccountChange) -> None:
    """Delete the bytes of the files of a removed account, whose rows are gone."""

    async def remove() -> None:
        await files.remove_orphans()

    if change.is_removed:
        tasks.spawn("removal of batch files", remove())


def batch_rows(services: BatchServices, writes: IdempotentWrites, *, body_limit: int) -> Sequence[Route]:
    """Return the rows of batches and their files."""
    batches = services.batches
    return [
        *BatchFileRoutes(batches, writes).routes(),
        *BatchRoutes(batches).routes(),
        *MessageBatchRoutes(batches, body_limit=body_limit).routes(),
    ]


def control_batch_rows(services: BatchServices, accounts: AccountServices) -> Sequence[Route]:
    """Return the rows of the noun batch of the control socket."""
    return ControlBatchRoutes(services.batches, GranteeFinder(accounts.users, accounts.groups)).routes()


def render_failure(error: GatewayError, dialect: BatchDialect) -> tuple[int, dict[str, Any]]:
    """Return status and body of a failure of one request."""
    return status_of(error, DIALECTS[dialect]), body_of(error, DIALECTS[dialect])
