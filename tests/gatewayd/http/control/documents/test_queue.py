"""`/v1/queue`."""

from pathlib import Path

from gatewayctl.wire import routes
from gatewayctl.wire.files import Wait
from gatewayd.errors import invalid
from tests.fakes.daemons.control_documents import add, boss
from tests.fakes.daemons.control_socket import control_socket


async def test_what_is_to_do_is_counted(tmp_path: Path) -> None:
    async with control_socket(tmp_path, works=False) as control:
        await boss(control)
        control.documents.extractor.failures = [invalid("cannot read the document: it is torn")]
        made = [(await add(control, f"text {number}".encode())).id for number in range(3)]
        state = await control.call(control.client.call, routes.GET_QUEUE)
        assert (state.waiting, state.working, state.failed) == (3, 0, 0)
        control.documents.queue.start()
        await control.call(control.client.call, routes.WAIT_FOR_FILES, body=Wait(ids=made, seconds=30))
        state = await control.call(control.client.call, routes.GET_QUEUE)
        assert (state.waiting, state.working, state.failed) == (0, 0, 1)
