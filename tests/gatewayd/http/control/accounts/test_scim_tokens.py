"""`/v1/scim-token`."""

import logging

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayd.scim.tokens.rotation import fingerprint
from tests.fakes.daemons.control_socket import Control


async def test_writes_are_audited_by_fingerprint(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    client = control.client
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        await control.call(client.call, routes.CREATE_SCIM_TOKEN, dry_run=True)
        made = await control.call(client.call, routes.CREATE_SCIM_TOKEN)
        turned = await control.call(client.call, routes.ROTATE_SCIM_TOKEN)
        retired = await control.call(client.call, routes.RETIRE_SCIM_TOKEN)
    lines = [(record.getMessage(), record.target) for record in caplog.records]
    assert lines == [
        ("scim-token create", fingerprint(made.value)),
        ("scim-token rotate", fingerprint(turned.value)),
        ("scim-token retire", fingerprint(made.value)),
    ]
    assert (retired.outcome, retired.count, retired.value) == ("removed", 1, None)


async def test_a_file_that_cannot_be_read_is_told_of(control: Control) -> None:
    (control.socket.parent / "scim-token").write_text("a b c")
    for endpoint in (routes.GET_SCIM_TOKEN, routes.CREATE_SCIM_TOKEN):
        with pytest.raises(CommandError) as caught:
            await control.call(control.client.call, endpoint)
        assert (caught.value.kind, caught.value.param) == ("not_configured", "scim_token_file")
