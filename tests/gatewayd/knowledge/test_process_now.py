"""Tests for gatewayd.knowledge.process_now."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import FileStatus
from gatewayd.ingest.upload import NewFile
from gatewayd.knowledge import process_now
from gatewayd.knowledge.collections import NewCollection
from gatewayd.knowledge.process_now import SynchronousProcessing, parse_collection_name
from tests.fakes.documents.collections import once, person
from tests.fakes.documents.site import DocumentServices

TEXT = "The heron stands in the water."
ANN, BOB = person("ann"), person("bob")


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[DocumentServices]:
    made = DocumentServices(tmp_path)
    await made.spaces.open()
    yield made
    await made.queue.close()
    await made.tasks.close()


async def stored(services: DocumentServices) -> str:
    file = await services.files.uploads.keep(
        NewFile("a.txt", None, "ann", {}, process=False), once(TEXT.encode())
    )
    return file.id


def ready(services: DocumentServices) -> SynchronousProcessing:
    return SynchronousProcessing(services.files, services.members)


async def test_a_stored_file_is_extracted(services: DocumentServices) -> None:
    services.queue.start()
    file_id = await stored(services)
    assert (await ready(services).process(ANN, file_id)).status is FileStatus.COMPLETED
    assert await services.files.text(ANN, file_id) == TEXT


async def test_another_text_in_a_collection(services: DocumentServices) -> None:
    collection = await services.collections.create(ANN, NewCollection("birds"))
    file_id = await stored(services)
    await ready(services).process(ANN, file_id, "A stork.", collection.id)
    assert await services.files.text(ANN, file_id) == "A stork."
    assert await services.collections.count_files(collection) == 1


async def test_what_cannot_be_read(services: DocumentServices) -> None:
    services.extractor.failures = [GatewayError(ErrorKind.EMPTY_CONTENT, "it is empty")]
    services.queue.start()
    file_id = await stored(services)
    with pytest.raises(GatewayError) as failed:
        await ready(services).process(ANN, file_id)
    assert failed.value.kind is ErrorKind.EMPTY_CONTENT
    assert "it is empty" in failed.value.message


async def test_what_takes_too_long(services: DocumentServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_now, "MAX_WAIT_SECONDS", 0.01)
    file_id = await stored(services)
    with pytest.raises(GatewayError) as late:
        await ready(services).process(ANN, file_id)
    assert late.value.kind is ErrorKind.TIMEOUT


async def test_a_foreign_file(services: DocumentServices) -> None:
    file_id = await stored(services)
    with pytest.raises(GatewayError) as unknown:
        await ready(services).process(BOB, file_id)
    assert unknown.value.kind is ErrorKind.NOT_FOUND


def test_names() -> None:
    assert parse_collection_name("c1") == "c1"
    assert parse_collection_name("file-1") is None
    assert parse_collection_name(None) is None
