"""A control socket."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.daemons.control_socket import Control, control_socket


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[Control]:
    async with control_socket(tmp_path) as running:
        yield running
