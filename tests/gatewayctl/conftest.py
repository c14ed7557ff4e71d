"""A control socket, and gatewayctl in this process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.daemons.control_documents import boss
from tests.fakes.daemons.control_socket import Control, Ctl, control_socket


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[Control]:
    async with control_socket(tmp_path) as running:
        yield running


@pytest.fixture
async def owner(control: Control) -> None:
    """Make the administrator who owns what nobody is named for."""
    await boss(control)


@pytest.fixture
async def idle(tmp_path: Path) -> AsyncIterator[Control]:
    """A control socket where nothing is processed until the queue is started."""
    (tmp_path / "idle").mkdir()
    async with control_socket(tmp_path / "idle", works=False) as running:
        await boss(running)
        yield running


@pytest.fixture
def ctl(control: Control, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ctl:
    for name in ("GATEWAYCTL_SOCKET", "GATEWAYCTL_OUTPUT", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Ctl(control.socket, monkeypatch, capsys)
