"""The vector index of the database's kind."""

import logging
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd.assembly.gateway import assemble, open_database
from gatewayd.assembly.indexes import LazyIndex, describe_index, find_cache_state, find_recall, open_index
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import EmbeddingSpace, ScopeKind, SearchScope
from gatewayd.settings import load
from gatewayd.storage.search.pgvector import PgVectorIndex
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.memory_stores import Library, MemoryPassages
from tests.fakes.storage.postgres import Postgres

SPACE, SCOPE = EmbeddingSpace("test", 4), SearchScope(ScopeKind.COLLECTION, "c")
ONE = b"\0\0\x80\x3f" + bytes(12)
LOADED = """
import sys
from gatewayd import daemon
made = {"onnx", "google.protobuf"}
heavy = {"numpy", "hnswlib", "fastembed", "onnxruntime", "pymupdf", "lxml", "openpyxl", *made}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""


@pytest.mark.process
def test_the_daemon_loads_no_heavy_library_at_its_start() -> None:
    subprocess.run([sys.executable, "-c", LOADED], check=True, timeout=60)


@pytest.mark.process
def test_nothing_that_runs_models_loads_what_makes_them() -> None:
    modules = "gatewayd.vectors.worker, gatewayd.vectors.models.wordpiece, sys"
    code = f"import {modules}; sys.exit('google.protobuf' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.fixture
def passages() -> MemoryPassages:
    return MemoryPassages(Library())


async def test_the_local_index_is_opened_by_the_first_search(state: Path, passages: MemoryPassages) -> None:
    tasks = TaskRegistry()
    index = LazyIndex(passages, state / "vectors", 2**20, tasks)
    await index.refresh(SCOPE, "f")
    await index.forget(SCOPE)
    assert not (state / "vectors").exists()
    unused = {"size_bytes": 0, "limit_bytes": 2**20, "reloads": 0, "problem": None}
    assert find_cache_state(index) == unused
    assert await index.search(SPACE, SCOPE, ONE, 3) == []
    used = find_cache_state(index)
    assert used is not None
    assert used != unused
    assert used == unused | {"size_bytes": used["size_bytes"]}
    assert (state / "vectors").is_dir()
    assert await index.similarities(SPACE, SCOPE, ONE, [1]) == {}
    assert await index.check(SPACE, SCOPE) == []
    await index.refresh(SCOPE, "f")
    await index.forget(SCOPE)
    await index.close()
    await tasks.close()


async def test_the_recall_of_graphs_is_that_of_the_index(
    state: Path, passages: MemoryPassages, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = TaskRegistry()
    index = LazyIndex(passages, state / "vectors", 2**20, tasks)
    assert find_recall(index) is None
    opened = await index.load()
    assert find_recall(index) is None
    monkeypatch.setattr(type(opened), "recall", (0.97, 600))
    assert find_recall(index) == (0.97, 600)
    assert find_recall(PgVectorIndex(tasks)) is None
    await index.close()
    await tasks.close()


async def test_an_index_that_was_never_used_closes(state: Path, passages: MemoryPassages) -> None:
    await LazyIndex(passages, state / "vectors", 2**20, TaskRegistry()).close()


async def test_a_database_with_vectors_searches_them_itself(state: Path, postgres: Postgres) -> None:
    settings = load(None, {"DATA_DIR": str(state), "DATABASE_URL": postgres.create_database()})
    tasks = TaskRegistry()
    async with AsyncExitStack() as stack:
        database = await open_database(settings, stack)
        index = await open_index(settings, database, MemoryPassages(Library()), tasks, stack)
        assert isinstance(index, PgVectorIndex)
        assert describe_index(index) == "pgvector"
        assert find_cache_state(index) is None
        await tasks.close()


async def test_a_node_without_vectors_in_the_database_is_refused(
    state: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_none(*_: object) -> None:
        return None

    monkeypatch.setattr("gatewayd.assembly.indexes.open_pgvector", find_none)
    environ = {"DATA_DIR": str(state), "DATABASE_URL": postgres.create_database()}
    alone = load(None, environ)
    shared = {"WEBUI_SECRET_KEY": "s" * 32, "FILE_STORE": "s3://b", "REDIS_URL": "redis://r"}
    node = load(None, {**environ, "CLUSTER": "true", **shared})
    async with AsyncExitStack() as stack:
        database = await open_database(alone, stack)
        passages, tasks = MemoryPassages(Library()), TaskRegistry()
        assert isinstance(await open_index(alone, database, passages, tasks, stack), LazyIndex)
        with pytest.raises(GatewayError, match="lacks the extension vector") as caught:
            await open_index(node, database, passages, tasks, stack)
        assert caught.value.kind is ErrorKind.NOT_CONFIGURED


async def test_a_file_database_searches_in_the_process(state: Path) -> None:
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings, stack)
        assert isinstance(gateway.services.documents.engines.index, LazyIndex)
        assert describe_index(gateway.services.documents.engines.index) == "hnsw"


async def test_a_start_without_the_extra_graph_says_that_every_vector_is_compared(
    state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    caplog.set_level(logging.INFO)
    async with AsyncExitStack() as stack:
        gateway = await assemble(load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"}), stack)
        kind = describe_index(gateway.services.documents.engines.index)
    assert kind == "flat: the extra 'graph' is not installed, pip install 'gatewayd[graph]' installs it"
    told = [record.getMessage() for record in caplog.records if "gatewayd[graph]" in record.getMessage()]
    assert len(told) == 1
