"""A real Redis, and nodes without one or over it."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.daemons.bus_nodes import BusNode, bus_nodes
from tests.fakes.daemons.redis_server import redis as redis
from tests.fakes.daemons.redis_server import redis_server


@pytest.fixture(params=["memory", "redis"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[list[BusNode]]:
    """Three nodes, which are one without Redis."""
    limits = {"replay_frames": 20, "replay_bytes": 2000}
    if request.param == "memory":
        async with bus_nodes(None, 3, **limits) as made:
            yield made
        return
    with redis_server() as server:
        async with bus_nodes(server.url, 3, **limits) as made:
            yield made
