"""Tests for gatewayd.knowledge.index_updates."""

import asyncio
import logging

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.knowledge.index_updates import IndexNotifier
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.memory_stores import ExactIndex, Library, MemoryPassages

DOCS = SearchScope(ScopeKind.COLLECTION, "docs")


class Index(ExactIndex):
    """An index that waits, or fails."""

    def __init__(self) -> None:
        super().__init__(MemoryPassages(Library()))
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.failure: GatewayError | None = None

    async def refresh(self, scope: SearchScope, file_id: str) -> None:
        self.entered.set()
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        await super().refresh(scope, file_id)


async def test_the_index_learns_even_when_the_caller_goes() -> None:
    index, tasks = Index(), TaskRegistry()
    work = asyncio.ensure_future(IndexNotifier(index, tasks).changed("docs", ["f1", "f2"]))
    await index.entered.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    index.gate.set()
    while tasks.list():
        await asyncio.sleep(0)
    assert index.learned == [(DOCS, "f1"), (DOCS, "f2")]


async def test_a_failure_is_logged_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    index = Index()
    index.gate.set()
    index.failure = GatewayError(ErrorKind.UNAVAILABLE, "cannot read: locked")
    with caplog.at_level(logging.WARNING):
        await IndexNotifier(index, TaskRegistry()).changed("docs", ["f1"])
    assert "cannot read: locked" in caplog.text


async def test_nothing_changed_and_all_gone() -> None:
    index = Index()
    await IndexNotifier(index, TaskRegistry()).changed("docs", [])
    assert not index.entered.is_set()
    await IndexNotifier(index, TaskRegistry()).gone("docs")
    assert index.forgotten == [DOCS]
