"""Documents over the assembled services: what the settings say is what runs."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from gatewayd.assembly.documents import (
    attachment_options,
    chunk_rules,
    extraction_workers,
    find_confinement,
    make_extractor,
    search_options,
    upload_rules,
)
from gatewayd.assembly.embeddings import ConfiguredEmbedders
from gatewayd.assembly.gateway import assemble
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.pool import ExtractorPool
from gatewayd.ingest.embedding_spaces import EmbeddingSpaces
from gatewayd.ingest.records import EmbeddingSpace
from gatewayd.knowledge.fusion import FusionMethod
from gatewayd.sandbox import confinement
from gatewayd.settings import Settings, load
from gatewayd.storage.search import passage_removal
from gatewayd.storage.tables.documents import PassageRow
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.services.extractor import ExternalExtractor
from tests.fakes.documents.collections import a_file
from tests.fakes.storage.passages import extraction

MIB = 2**20


def settings_for(state: Path, **values: str) -> Settings:
    return load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false", **values})


async def test_leftovers_of_uploads_are_swept_at_the_start(state: Path) -> None:
    for place in ("files/incoming/half", "files/ef/nobody-knows-this-ef", "readers/reader-x/document"):
        path = state / place
        path.parent.mkdir(parents=True)
        path.write_bytes(b"left")
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        assert gateway.services.documents.files is not None
    left = [path for name in ("files", "readers") for path in (state / name).rglob("*") if path.is_file()]
    assert left == []


async def test_what_a_killed_process_left_of_a_removed_file_goes_with_the_next_start(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed() -> None:
        pass

    monkeypatch.setattr(passage_removal, "MAX_PART_ROWS", 1)
    with monkeypatch.context() as patch:
        patch.setattr(passage_removal, "purge", killed)
        async with AsyncExitStack() as stack:
            stores = (await assemble(settings_for(state), stack)).services.documents.stores
            await stores.files.add(a_file("f"))
            await stores.passages.stage("f", extraction("one", "two"))
            assert await stores.files.remove("f")
            assert await PassageRow.all().count() == 2
    async with AsyncExitStack() as stack:
        stores = (await assemble(settings_for(state), stack)).services.documents.stores
        await until_no_passages()
        await stores.files.add(a_file("f"))
        await stores.passages.stage("f", extraction("one", "two"))
        await stores.passages.unstage("f")
        await until_no_passages()
        assert stores.files._wake == stores.passages._wake == stores.collections._wake


async def until_no_passages() -> None:
    async with asyncio.timeout(5):
        while await PassageRow.all().count():
            await asyncio.sleep(0.001)


async def test_a_start_goes_on_without_an_embedding_model(
    state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(state, RAG_EMBEDDING_ENGINE="directory", RAG_EMBEDDING_MODEL="/not/there")
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings, stack)
        await gateway.services.documents.start()
        assert await gateway.services.documents.spaces.query() is None
    assert "/not/there" in caplog.text


@pytest.mark.parametrize(
    ("model", "has_file", "begun"),
    [("minilm", False, []), ("minilm", True, ["open", "warm"]), ("e5-small", False, ["open"])],
)
async def test_the_default_model_is_loaded_where_there_is_something_to_search(
    state: Path, monkeypatch: pytest.MonkeyPatch, model: str, has_file: bool, begun: Sequence[str]
) -> None:
    seen: list[str] = []

    async def noted(name: str) -> None:
        seen.append(name)

    monkeypatch.setattr(EmbeddingSpaces, "open", partial(noted, "open"))
    monkeypatch.setattr(ConfiguredEmbedders, "warm", partial(noted, "warm"))
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state, RAG_EMBEDDING_MODEL=model), stack)
        documents = gateway.services.documents
        if has_file:
            await documents.stores.files.add(a_file("f"))
            await documents.stores.spaces.add(EmbeddingSpace("test:x", 4))
            await documents.stores.spaces.activate("test:x")
        await documents.start()
    assert seen == begun


async def test_the_external_extractor_takes_the_place_of_the_processes(state: Path) -> None:
    ours = settings_for(state)
    theirs = settings_for(
        state, CONTENT_EXTRACTION_ENGINE="external", EXTERNAL_DOCUMENT_LOADER_URL="http://127.0.0.1:9"
    )
    tasks = TaskRegistry()
    async with AsyncExitStack() as stack:
        assert isinstance(make_extractor(ours, tasks, stack), ExtractorPool)
        assert isinstance(make_extractor(theirs, tasks, stack), ExternalExtractor)
    await tasks.close()


def test_each_setting_reaches_its_service(state: Path) -> None:
    settings = settings_for(
        state,
        RAG_FILE_MAX_SIZE="7",
        RAG_FILE_MAX_COUNT="3",
        RAG_ALLOWED_FILE_EXTENSIONS="pdf",
        CHUNK_SIZE="500",
        CHUNK_OVERLAP="50",
        INGEST_WORKERS="5",
        RAG_TOP_K="4",
        RAG_RELEVANCE_THRESHOLD="0.2",
        ENABLE_RAG_HYBRID_SEARCH="false",
        RAG_HYBRID_BM25_WEIGHT="0.3",
        RAG_FUSION="rrf",
        RAG_TOP_K_RERANKER="2",
        RAG_FULL_CONTEXT="true",
        FULL_CONTEXT_LIMIT="5000",
        RAG_SYSTEM_CONTEXT="true",
        RAG_TEMPLATE="{{CONTEXT}}",
    )
    rules = upload_rules(settings)
    assert (rules.max_size, rules.max_count, rules.extensions) == (7 * MIB, 3, {"pdf"})
    assert (chunk_rules(settings).size, chunk_rules(settings).overlap) == (500, 50)
    assert extraction_workers(settings) == 5
    search = search_options(settings)
    assert (search.k, search.threshold, search.hybrid, search.weight) == (4, 0.2, False, 0.3)
    assert (search.fusion, search.k_reranker) == (FusionMethod.RRF, 2)
    options = attachment_options(settings)
    assert (options.full_context, options.full_context_limit) == (True, 5000)
    assert (options.system_context, options.template) == (True, "{{CONTEXT}}")


def test_how_readers_are_confined_is_told_and_required_at_the_start(
    state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    required = settings_for(state, INGEST_SANDBOX="require")
    assert find_confinement(required) == "full"
    monkeypatch.setattr(confinement, "missing_features", lambda: ["Landlock", "seccomp"])
    with pytest.raises(GatewayError, match="does not permit Landlock and seccomp") as caught:
        find_confinement(required)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    assert find_confinement(settings_for(state, INGEST_SANDBOX="off")) == "off"
    elsewhere = {
        "CONTENT_EXTRACTION_ENGINE": "external",
        "EXTERNAL_DOCUMENT_LOADER_URL": "http://127.0.0.1:1",
        "INGEST_SANDBOX": "require",
    }
    assert find_confinement(settings_for(state, **elsewhere)) is None
    assert caplog.records == []
    assert find_confinement(settings_for(state)) == "without Landlock and seccomp"
    assert "confined without Landlock and seccomp" in caplog.text
