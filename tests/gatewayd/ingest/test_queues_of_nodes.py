"""The queues of several nodes over one set of stores."""

import asyncio
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest import queue as queue_module
from gatewayd.ingest.queue import QueueState
from gatewayd.ingest.records import FileStatus, IngestJob
from tests.fakes.documents.ingest_services import NOON, ingesting
from tests.fakes.documents.memory_stores import Library
from tests.fakes.storage.nodes import FakeMembership


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "MIN_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(queue_module, "MIN_POLL_SECONDS", 0.01)
    monkeypatch.setattr(queue_module, "MAX_POLL_SECONDS", 0.02)


async def test_a_start_leaves_the_leases_of_living_nodes_alone(tmp_path: Path) -> None:
    library = Library()
    async with ingesting(tmp_path, library=library, node=FakeMembership("n1")) as ingest:
        await ingest.queue.close()
        file = await ingest.upload("a.txt", "text")
        await ingest.jobs.put(IngestJob(file.id, attempts=1, lease_owner="n3", lease_until=NOON + 60))
    async with ingesting(tmp_path, library=library, node=FakeMembership("n2")) as ingest:
        other = await ingest.completed("b.txt", "other")
        assert other.status is FileStatus.COMPLETED
        job = await ingest.jobs.find(file.id)
        assert job is not None
        assert job.lease_owner == "n3"
        assert await ingest.queue.state() == QueueState(0, 1, 0)
        # The node dies, and nobody wakes the queue.
        ingest.jobs.dead.add("n3")
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


async def test_a_file_that_another_node_accepted_is_found_without_being_woken(tmp_path: Path) -> None:
    library = Library()
    async with (
        ingesting(tmp_path, library=library, node=FakeMembership("n1")) as first,
        ingesting(tmp_path, library=library, node=FakeMembership("n2")) as second,
    ):
        await first.queue.close()
        file = await first.upload("a.txt", "text")
        async with asyncio.timeout(10):
            while second.texts(file.id) != ["text"]:
                await asyncio.sleep(0.01)


async def test_a_node_that_drains_begins_nothing(tmp_path: Path) -> None:
    node = FakeMembership(is_draining=True)
    async with ingesting(tmp_path, node=node) as ingest:
        file = await ingest.upload("a.txt", "text")
        await asyncio.sleep(0.1)
        assert ingest.texts(file.id) == []
        node.is_draining = False
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


async def test_a_node_whose_lease_is_over_stops_its_work(tmp_path: Path) -> None:
    node = FakeMembership()
    async with ingesting(tmp_path, node=node) as ingest:
        begun, never = asyncio.Event(), asyncio.Event()

        async def hang(*_: object) -> None:
            begun.set()
            await never.wait()

        extract, ingest.extractor.extract = ingest.extractor.extract, hang  # type: ignore[method-assign,assignment]
        file = await ingest.upload("a.txt", "text")
        await begun.wait()
        node.is_owner = False
        async with asyncio.timeout(10):
            while ingest.queue._working:
                ingest.queue.wake()
                await asyncio.sleep(0.01)
        ingest.extractor.extract = extract  # type: ignore[method-assign]
        job = await ingest.jobs.find(file.id)
        assert job is not None
        assert job.lease_owner == "n1", "whoever finds the node dead frees it"
        ingest.jobs.dead.add("n1")
        node.is_owner = True
        async with asyncio.timeout(10):
            while await ingest.jobs.find(file.id) is not None:
                ingest.jobs.dead.discard("n1")
                await asyncio.sleep(0.01)
                ingest.jobs.dead.add("n1")
        assert ingest.texts(file.id) == ["text"]


async def test_a_failure_of_a_file_that_another_node_took_is_not_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with ingesting(tmp_path, node=FakeMembership()) as ingest:
        begun, failing = asyncio.Event(), asyncio.Event()

        async def fail(*_: object) -> None:
            begun.set()
            await failing.wait()
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read it")

        ingest.extractor.extract = fail  # type: ignore[method-assign,assignment]
        file = await ingest.upload("a.txt", "text")
        await begun.wait()
        later = NOON + 60
        [taken] = await ingest.jobs.lease("n2", [file.id], now=later, until=later + 60)
        failing.set()
        async with asyncio.timeout(10):
            while "another node processes it" not in caplog.text:
                await asyncio.sleep(0.01)
        assert await ingest.jobs.find(file.id) == taken
