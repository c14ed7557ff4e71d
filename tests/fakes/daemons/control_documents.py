"""Documents put in through the control socket, as gatewayctl does it."""

from io import BytesIO
from typing import Any

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.files import File, FileWritten, NewFile, Wait
from gatewayd.accounts.records import Role, User
from tests.fakes.daemons.control_socket import Control


async def boss(control: Control) -> User:
    """Make the first administrator, who owns what nobody is named for."""
    return await control.accounts.add_user("boss", Role.ADMIN)


async def add(control: Control, content: bytes, name: str = "a.txt", **query: Any) -> FileWritten:
    """Upload a file and return its record."""
    wanted = NewFile(name=name, **query)
    made = await control.call(control.client.upload, wanted, BytesIO(content), len(content))
    assert isinstance(made, FileWritten)
    return made


async def processed(control: Control, content: bytes, name: str = "a.txt", **query: Any) -> File:
    """Upload a file and return its record once it is processed."""
    made = await add(control, content, name, **query)
    waited = await control.call(
        control.client.call, routes.WAIT_FOR_FILES, body=Wait(ids=[made.id], seconds=10)
    )
    assert waited.is_done
    [file] = waited.files
    assert isinstance(file, File)
    return file


async def refused(control: Control, *args: Any, **named: Any) -> CommandError:
    """Call a client method that must fail, and return the failure."""
    with pytest.raises(CommandError) as caught:
        await control.call(*args, **named)
    return caught.value
