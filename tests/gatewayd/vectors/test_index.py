"""The local index: what every index does, and what only this one has to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.tasks import Tasks
from gatewayd.vectors.index import LocalIndex
from gatewayd.vectors.loaded import Rules
from tests.fakes.indexes import IndexConformance, IndexHarness, MemoryHarness, MemoryPassages

SMALL = Rules(threshold=4, tail=2, changes=5)


class TestMatrix(IndexConformance):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[IndexHarness]:
        tasks, passages = Tasks(), MemoryPassages()
        index = LocalIndex(passages, tmp_path, 1 << 30, tasks)
        await index.open()
        yield MemoryHarness(index, passages)
        await index.close()
        await tasks.close()


class TestGraph(IndexConformance):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[IndexHarness]:
        tasks, passages = Tasks(), MemoryPassages()
        index = LocalIndex(passages, tmp_path, 1 << 30, tasks, SMALL)
        await index.open()
        yield MemoryHarness(index, passages)
        await index.close()
        await tasks.close()


class TestNothingStays(IndexConformance):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[IndexHarness]:
        tasks, passages = Tasks(), MemoryPassages()
        index = LocalIndex(passages, tmp_path, 0, tasks, SMALL)
        await index.open()
        yield MemoryHarness(index, passages)
        await index.close()
        await tasks.close()
