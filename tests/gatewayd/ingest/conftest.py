"""The ingestion services at work, over stores in memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.documents.ingest_services import Ingest, ingesting


@pytest.fixture
async def ingest(tmp_path: Path) -> AsyncIterator[Ingest]:
    async with ingesting(tmp_path / "files") as running:
        yield running
