import pytest

from gatewayd.upstream.sources.config import UpstreamTimeouts
from tests.fakes.providers.upstream import FakeUpstream

SHORT = UpstreamTimeouts(connect=2.0, first_byte=0.2, idle=0.2)


@pytest.fixture
async def fake():
    async with FakeUpstream() as server:
        yield server


@pytest.fixture
def short():
    return SHORT
