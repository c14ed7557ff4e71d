"""A gateway with documents, a client of it, and the embedding model that both use."""

import asyncio
import contextlib
import http.client
import json
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from gatewayd.ingest.records import EmbeddingPurpose, EmbeddingSpace
from gatewayd.storage.engine.location import DatabaseLocation, parse
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.local import LocalEmbedder, LocalKind, LocalOptions
from gatewayd.vectors.models.catalogue import MODELS_FOLDER
from tests.bench.documents_corpus import Writer
from tests.bench.documents_filling import Filled, Rows, fill
from tests.bench.measure import say
from tests.bench.processes import Session
from tests.bench.targets import GATEWAY_PATH, Target, make_key, started
from tests.bench.tools import CannotRunError
from tests.fakes.http.multipart_forms import FORM, file_part, form
from tests.fakes.http.multipart_forms import field as form_field
from tests.fakes.storage.postgres import Postgres, start_postgres

ROOT: Final = Path(__file__).parents[2]
MODEL: Final = "minilm"
REAL_PASSAGES: Final = 1500
POOL_SIZE: Final = 8
SQLITE: Final = "sqlite"
POSTGRES: Final = "postgresql"
ENGINES: Final = (SQLITE, POSTGRES)

CONFIGURATION: Final = """
data_dir = "{state}"
control_socket = "{state}/control.sock"
database_url = "{url}"
host = "127.0.0.1"
enable_builtin_model = false
enable_api_keys = true
global_log_level = "WARNING"
{more}
"""
PROVIDER: Final = """
[[providers]]
name = "mock"
base_url = "http://127.0.0.1:{port}/v1"
"""


@dataclass(frozen=True)
class Model:
    """The built-in model, made ready once: its folder, its space, and vectors of real passages."""

    folder: Path
    space: EmbeddingSpace
    real: Rows

    def lend(self, state: Path) -> None:
        """Give a gateway's state directory a copy of what was made."""
        shutil.copytree(self.folder / MODELS_FOLDER, state / MODELS_FOLDER)


@asynccontextmanager
async def opened_embedder(
    folder: Path, tasks: TaskRegistry, threads: int = 1
) -> AsyncIterator[LocalEmbedder]:
    """Yield the model in a process of its own, and end it."""
    embedder = LocalEmbedder(LocalOptions(LocalKind.BUILTIN, MODEL, folder, threads=threads), tasks)
    try:
        yield embedder
    finally:
        await embedder.close()


def made_model(folder: Path, passages: int) -> Model:
    """Make the model ready in a folder, and embed some real passages."""
    writer = Writer(1)
    texts = [writer.passage() for _ in range(passages)]

    async def make() -> Model:
        tasks = TaskRegistry()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(tasks.close)
            embedder = await stack.enter_async_context(opened_embedder(folder, tasks, threads=2))
            space = await embedder.space()
            return Model(folder, space, _rows(await embedder.embed(texts, EmbeddingPurpose.PASSAGE)))

    return asyncio.run(make())


def query_vectors(model: Model, questions: Sequence[str]) -> Rows:
    """Return the vectors that the gateway searches with."""

    async def embed() -> Rows:
        tasks = TaskRegistry()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(tasks.close)
            embedder = await stack.enter_async_context(opened_embedder(model.folder, tasks))
            return _rows(await embedder.embed(questions, EmbeddingPurpose.QUERY))

    return asyncio.run(embed())


def _rows(packed: bytes) -> Rows:
    return np.frombuffer(packed, "<f4").astype(np.float32).reshape(-1, 384)


@dataclass
class Client:
    """One connection of an administrator."""

    port: int
    key: str
    connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def send(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        """Send a request and return the decoded answer; anything but success ends the run."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": kind}
        self.connection.request(method, path, body, headers)
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise CannotRunError(f"{method} {path}: {reply.status} {text[:500]!r}")
        return json.loads(text)

    def query(self, collection_id: str, question: str, **options: Any) -> Any:
        """Search one collection."""
        body = {"collection_names": [collection_id], "query": question, **options}
        found = self.send("POST", "/api/v1/retrieval/query/collection", json.dumps(body).encode())
        if found.get("warnings"):
            raise CannotRunError(f"a search was not whole: {found['warnings']}")
        return found

    def upload(self, path: Path, collection_id: str | None = None) -> str:
        """Upload a file to be processed, and return its id."""
        metadata = json.dumps({"knowledge_id": collection_id} if collection_id else {})
        file = file_part(path.read_bytes(), path.name, "Content-Type: application/octet-stream")
        answer = self.send("POST", "/api/v1/files/", form(form_field("metadata", metadata), file), FORM)
        file_id: str = answer["id"]
        return file_id

    def create_collection(self) -> str:
        """Make an empty collection and return its id."""
        body = json.dumps({"name": f"bench {uuid.uuid4().hex}", "description": ""}).encode()
        collection_id: str = self.send("POST", "/api/v1/knowledge/create", body)["id"]
        return collection_id

    def status(self, file_id: str) -> str:
        """Return how far a file is; one that failed ends the run."""
        answer = self.send("GET", f"/api/v1/files/{file_id}/process/status")
        if answer["status"] == "failed":
            raise CannotRunError(f"a file failed: {answer.get('error')}")
        status: str = answer["status"]
        return status

    def wait(self, file_ids: Sequence[str]) -> None:
        """Wait until files are completed, told by the gateway: to ask all the time is work for it."""
        for file_id in file_ids:
            path = f"/api/v1/files/{file_id}/process/status?stream=true"
            self.connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
            self.connection.getresponse().read()
            if self.status(file_id) != "completed":
                raise CannotRunError(f"file {file_id} is not completed")

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


@dataclass(frozen=True)
class Site:
    """A state directory with a database, an account and its key."""

    state: Path
    database: "Database"
    key: str
    collections: Sequence[Filled]

    @contextlib.contextmanager
    def running(self) -> Iterator["Running"]:
        """Start the gateway over it."""
        with (
            started(ROOT, self.state) as (port, session, seconds),
            contextlib.closing(Client(port, self.key)) as client,
        ):
            yield Running(client, session, seconds)


@dataclass(frozen=True)
class Running:
    """A gateway that runs: a client, its processes, and how long it took from exec to READY."""

    client: Client
    session: Session
    seconds: float

    @property
    def target(self) -> Target:
        """Return it as what answers chats."""
        return Target("gatewayd", self.client.port, GATEWAY_PATH, self.session, self.client.key)


@dataclass(frozen=True)
class Database:
    """An address, and the server if it needs one."""

    url: str
    server: Postgres | None = None

    @property
    def location(self) -> DatabaseLocation:
        """Return what opens it."""
        return parse(self.url, POOL_SIZE)

    def settle(self, limit: float) -> None:
        """Wait until the server builds no index any more, `limit` seconds at most."""
        deadline = time.monotonic() + limit
        while self.server is not None and time.monotonic() < deadline:
            building = self.server.psql("SELECT 'builds ' || COUNT(*) FROM pg_stat_progress_create_index")
            if "builds 0" in building:
                return
            time.sleep(1)


@contextlib.contextmanager
def database_in(folder: Path, engine: str) -> Iterator[Database]:
    """Yield an empty database."""
    if engine == SQLITE:
        yield Database(f"sqlite:///{folder}/bench.db")
        return
    server = start_postgres(folder)
    try:
        yield Database(server.create_database(), server)
    finally:
        server.stop()


@contextlib.contextmanager
def prepared(
    folder: Path, model: Model, engine: str = SQLITE, sizes: Sequence[int] = (), provider: int | None = None
) -> Iterator[Site]:
    """Make a state directory whose database has collections of these sizes, and an account."""
    state = folder / "s"
    state.mkdir(mode=0o700, parents=True)
    model.lend(state)
    with database_in(folder, engine) as database:
        began = time.monotonic()
        filled = asyncio.run(fill(database.location, model.space, model.real, sizes)) if sizes else []
        if sizes:
            say(f"filled {engine}: {sum(sizes):,} passages in {time.monotonic() - began:.0f} s")
        more = "" if provider is None else PROVIDER.format(port=provider)
        text = CONFIGURATION.format(state=state, url=database.url, more=more)
        (state / "gatewayd.toml").write_text(text)
        with started(ROOT, state):
            key = make_key(ROOT, state)
        yield Site(state, database, key, filled)
