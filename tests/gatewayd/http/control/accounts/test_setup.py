"""`/v1/setup`."""

import asyncio

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.setup import Setup
from tests.fakes.daemons.control_socket import Control


async def test_of_many_at_once_one_is_first(control: Control) -> None:
    requests = [Setup(email=f"u{number}@example.org", name="U") for number in range(6)]
    made = await asyncio.gather(
        *(control.call(control.client.call, routes.RUN_SETUP, body=request) for request in requests),
        return_exceptions=True,
    )
    refused = [error for error in made if isinstance(error, CommandError)]
    assert [error.kind for error in refused] == ["conflict"] * 5
    assert await control.accounts.users.count() == 1


async def test_a_dry_run_says_who_would_be_made(control: Control) -> None:
    request = Setup(email="Root@example.org", name="Root", password="correct horse", group="keys")
    made = await control.call(control.client.call, routes.RUN_SETUP, body=request, dry_run=True)
    assert (made.email, made.group, made.key, made.password) == ("root@example.org", "keys", None, None)
    assert control.accounts.runtime.flag("ENABLE_API_KEYS") is False
    assert await control.accounts.users.count() == 0
