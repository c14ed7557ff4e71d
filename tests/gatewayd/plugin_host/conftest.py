"""The host that most tests of this folder use."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.plugins.host_services import Hosting, hosting


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Hosting]:
    async with hosting(tmp_path) as opened:
        yield opened
