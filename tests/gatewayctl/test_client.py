"""One method per control route, and where the socket is."""

import inspect
import re
import socket
from pathlib import Path

import pytest

from gatewayctl import client
from gatewayctl.client import ControlClient, default_socket
from gatewayd.chat.pipeline import NoFilters, NoTools, Pipeline
from tests.fakes.attachments import NoAttachments
from tests.fakes.control import Control, rows


def test_the_socket_of_the_system_comes_before_that_of_a_quickstart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, quickstart = tmp_path / "system.sock", tmp_path / "quickstart.sock"
    monkeypatch.setattr(client, "SYSTEM_SOCKET", system)
    monkeypatch.setattr(client, "QUICKSTART_SOCKET", quickstart)
    assert default_socket() == system
    quickstart.touch()
    assert default_socket() == quickstart
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(system))
        listener.listen()
        assert default_socket() == system
    # What a daemon that was killed leaves behind.
    assert system.exists()
    assert default_socket() == quickstart


def test_each_route_has_a_method(control: Control) -> None:
    source = "".join(inspect.getsource(part) for part in ControlClient.__mro__[:-1])
    used = {re.sub(r"\{[^}]*\}", "{}", path) for path in re.findall(r'f?"(/v1/[^"?]*)"', source)}
    pipeline = Pipeline(control.catalog, NoFilters(), NoAttachments(), NoTools())
    served = {re.sub(r"\{[^}]*\}", "{}", row.path) for row in rows(control, pipeline)}
    assert used == served


async def test_references_are_escaped(control: Control) -> None:
    await control.accounts.add_user("ann")
    made = await control.call(control.client.get_user, "ann@example.org")
    assert made.name == "ann"
    with pytest.raises(Exception, match=r"cannot find user 'a/\.\./\?x=1#%2F'"):
        await control.call(control.client.get_user, "a/../?x=1#%2F")
