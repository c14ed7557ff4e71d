"""Embedder with a model on this machine, which runs in a child process."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error
from gatewayd.ingest.fair_gate import FairGate
from gatewayd.ingest.records import MARK_CHARACTERS, EmbeddingPrefixes, EmbeddingPurpose, EmbeddingSpace
from gatewayd.ingest.size_classes import OTHER_WORK, QueueKey
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.models import catalogue
from gatewayd.vectors.models.catalogue import ModelEngine, PackagedModel
from gatewayd.vectors.process import ANSWER_SECONDS, IDLE_SECONDS, OPEN_SECONDS, ModelProcess, Prepare
from gatewayd.workers import WorkerDiedError, WorkerOptions, WorkerProcess

log = logging.getLogger(__name__)

BUILD_MODULE: Final = "gatewayd.vectors.models.build"
OFFLINE_ENVIRONMENT: Final = {"HF_HUB_OFFLINE": "1"}
POOLINGS: Final = ("mean", "cls")
MODEL_FILES: Final = (catalogue.GRAPH_FILE, catalogue.TOKENIZER_FILE, "tokenizer_config.json", "config.json")
"""Files that the folder of a model must hold."""

NICENESS: Final = 10
DOWNLOAD_SECONDS: Final = 3600.0
"""Time-out of opening a model that is downloaded first."""
PASSAGE_BATCH_SIZE: Final = 16
"""Passages per request to the process: about half a second for one thread."""
PASSAGE_TIME_FACTOR: Final = 10
"""Time-out of a batch of passages as a multiple of that of a query: their threads have low priority."""


class LocalKind(StrEnum):
    """Origin of a model."""

    # From a Python package: minilm, e5-small.
    BUILTIN = "builtin"
    # A name that fastembed knows; downloaded on first use.
    FASTEMBED = "fastembed"
    # A folder with an ONNX graph and its tokenizer.
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Model, and options of its process.

    `model` is a name, or the path of the folder for the kind directory. `folder` is the state directory,
    which holds the models. Prefixes precede the texts; None selects those of the model. `threads` threads
    embed passages, one more embeds queries. `sandbox` confines the process, unless the model is downloaded.
    `seconds` is the time-out of a query. `environment` holds the environment variables of a download, for
    example proxies.
    """

    kind: LocalKind
    model: str
    folder: Path
    threads: int = 1
    sandbox: SandboxMode = SandboxMode.AUTO
    query_prefix: str | None = None
    content_prefix: str | None = None
    pooling: str = "mean"
    idle_seconds: float = IDLE_SECONDS
    seconds: float = ANSWER_SECONDS
    environment: Mapping[str, str] = field(default_factory=dict)


class LocalEmbedder:
    """An `ingest.interfaces.Embedder` whose process starts on first use and ends when idle."""

    def __init__(self, options: LocalOptions, tasks: TaskRegistry) -> None:
        builtin = catalogue.find_builtin(options.model) if options.kind is LocalKind.BUILTIN else None
        self._options = options
        self._builtin = builtin
        self._tasks = tasks
        self._default_prefixes = (
            EmbeddingPrefixes(builtin.query_prefix, builtin.content_prefix)
            if builtin
            else EmbeddingPrefixes()
        )
        self._prefixes = EmbeddingPrefixes(
            self._default_prefixes.query if options.query_prefix is None else options.query_prefix,
            self._default_prefixes.passage if options.content_prefix is None else options.content_prefix,
        )
        self._space: EmbeddingSpace | None = None
        self._passages = FairGate(options.threads + 1)
        self._process = open_process(options, self._opening, tasks)

    @property
    def pid(self) -> int | None:
        """The id of the process, None while it does not run."""
        return self._process.pid

    async def space(self) -> EmbeddingSpace:
        """Return the embedding space of the vectors.

        Raises not_configured if the model is not installed. A model that is not built in is loaded to learn
        its dimension, which may raise unavailable.
        """
        if self._space is None:
            self._space = await self._find_space()
        return self._space

    async def embed(
        self, texts: Sequence[str], purpose: EmbeddingPurpose, key: QueueKey = OTHER_WORK
    ) -> bytes:
        """Return a vector of length 1 for each text, in order, as little-endian float32.

        Queries overtake passages; batches of passages take turns by `key`. Raises GatewayError:
        not_configured, unavailable, upstream_failed, and timeout if the process does not answer.
        """
        if not texts:
            return b""
        prefixed = [self._prefixes.before(purpose) + text for text in texts]
        request = {"purpose": purpose, "priority": purpose}
        seconds = self._options.seconds
        if purpose is EmbeddingPurpose.QUERY:
            return await self._process.rows(prefixed, request, seconds)
        found = []
        for start in range(0, len(prefixed), PASSAGE_BATCH_SIZE):
            async with self._passages.held(key):
                batch = prefixed[start : start + PASSAGE_BATCH_SIZE]
                found.append(await self._process.rows(batch, request, seconds * PASSAGE_TIME_FACTOR))
        return b"".join(found)

    async def warm(self) -> None:
        """Build the model if needed and start its process; raises GatewayError as `embed` does."""
        await self._process.start()

    async def close(self) -> None:
        """End the process."""
        await self._process.close()

    async def _find_space(self) -> EmbeddingSpace:
        options, builtin = self._options, self._builtin
        mark = self._prefixes.mark(self._default_prefixes)
        if builtin is not None:
            describe_model(options, "embed")
            catalogue.find_source(builtin)
            return EmbeddingSpace(f"builtin:{builtin.name}:{builtin.revision}{mark}", catalogue.DIMENSION)
        width = await self._process.width()
        if options.kind is LocalKind.FASTEMBED:
            return EmbeddingSpace(f"fastembed:{options.model}{mark}", width)
        graph = Path(options.model) / catalogue.GRAPH_FILE
        digest = await asyncio.to_thread(catalogue.digest, graph)
        name = f"directory:{Path(options.model).name}:{digest[:MARK_CHARACTERS]}:{options.pooling}"
        return EmbeddingSpace(name + mark, width)

    async def _opening(self) -> Mapping[str, Any]:
        """Return the request that opens the model in the process."""
        options = self._options
        opening = describe_model(options, "embed")
        if self._builtin is None:
            return opening
        folder, pooling = await self._made(self._builtin)
        return {**opening, "path": str(folder), "pooling": pooling}

    async def _made(self, model: PackagedModel) -> tuple[Path, str]:
        """Return the folder of a built-in model and its pooling; build the folder if needed."""
        folder = catalogue.model_folder(self._options.folder, model)
        if await asyncio.to_thread(catalogue.is_ready, folder, model):
            return folder, "none"
        catalogue.find_source(model)
        try:
            await self._build(model)
        except WorkerDiedError as error:
            if not model.is_usable_as_shipped:
                sentence = f"cannot build the embedding model {model.name!r}: the process {error.reason}"
                raise GatewayError(ErrorKind.NOT_CONFIGURED, sentence) from error
            log.warning(
                "cannot build the fast form of the model %r: the process %s", model.name, error.reason
            )
            shipped = await asyncio.to_thread(catalogue.make_shipped_folder, self._options.folder, model)
            return shipped, "mean"
        return folder, "none"

    async def _build(self, model: PackagedModel) -> None:
        worker = await WorkerProcess.start(WorkerOptions(BUILD_MODULE, nice=NICENESS), self._tasks)
        try:
            await worker.call({"state": str(self._options.folder), "model": model.name})
        finally:
            await worker.close()


def open_process(options: LocalOptions, opening: Prepare, tasks: TaskRegistry) -> ModelProcess:
    """Return the supervisor of the process of a model, which `opening` describes."""
    is_downloaded = options.kind is LocalKind.FASTEMBED
    return ModelProcess(
        options.model,
        opening,
        options.environment if is_downloaded else OFFLINE_ENVIRONMENT,
        tasks,
        idle_seconds=options.idle_seconds,
        open_seconds=DOWNLOAD_SECONDS if is_downloaded else OPEN_SECONDS,
    )


def describe_model(options: LocalOptions, task: str) -> dict[str, Any]:
    """Return the description of a model for `vectors.worker`; raise not_configured if it is unusable."""
    builtin = catalogue.find_builtin(options.model) if options.kind is LocalKind.BUILTIN else None
    extra = PackageExtra.FASTEMBED if builtin is None else builtin.extra
    if extra is not None and not is_installed(extra):
        raise missing_extra_error(f"cannot use the model {options.model!r}", extra)
    if options.kind is LocalKind.DIRECTORY:
        missing = [name for name in MODEL_FILES if not Path(options.model, name).is_file()]
        if missing:
            raise _refused(options.model, f"its folder lacks {', '.join(missing)}")
        if options.pooling not in POOLINGS:
            raise _refused(options.model, f"its pooling must be {' or '.join(POOLINGS)}")
    return {
        "engine": ModelEngine.FASTEMBED if builtin is None else builtin.engine,
        "task": task,
        "name": options.model,
        "path": options.model if options.kind is LocalKind.DIRECTORY else None,
        "pooling": options.pooling,
        "cache": str(options.folder / catalogue.MODELS_FOLDER / "fastembed"),
        "threads": options.threads,
        "sandbox": options.sandbox,
    }


def _refused(name: str, why: str) -> GatewayError:
    return GatewayError(ErrorKind.NOT_CONFIGURED, f"cannot use the model {name!r}: {why}")
