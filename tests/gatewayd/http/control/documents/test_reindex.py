"""`/v1/reindex`."""

import asyncio
import logging

import pytest

from gatewayctl.wire import routes
from tests.fakes.daemons.control_documents import boss, processed, refused
from tests.fakes.daemons.control_socket import Control


async def test_a_reindex_makes_what_is_missing(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    client, documents = control.client, control.documents
    await boss(control)
    for number in range(2):
        await processed(control, f"text {number}".encode())
    state = await control.call(client.call, routes.GET_REINDEX)
    assert (state.state, state.active, state.target, state.done, state.total) == (
        "current",
        "test:hash:1",
        "",
        2,
        2,
    )
    documents.library.tables.vectors.clear()
    state = await control.call(client.call, routes.GET_REINDEX)
    assert (state.state, state.done, state.total) == ("behind", 0, 2)
    with caplog.at_level(logging.INFO, "gatewayd.audit"), documents.spaces.pause_reindex():
        assert (await control.call(client.call, routes.START_REINDEX)).state == "running"
        assert (await refused(control, client.call, routes.START_REINDEX)).kind == "conflict"
    assert [line.getMessage() for line in caplog.records] == ["collection reindex"]
    while (state := await control.call(client.call, routes.GET_REINDEX)).state == "running":
        await asyncio.sleep(0.01)
    assert (state.state, state.done, state.error) == ("current", 2, None)
