"""A control socket, and gatewayctl in this process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.control import Control, Ctl, control_socket


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[Control]:
    async with control_socket(tmp_path) as running:
        yield running


@pytest.fixture
def ctl(control: Control, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ctl:
    for name in ("GATEWAYCTL_SOCKET", "GATEWAYCTL_OUTPUT", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Ctl(control.socket, monkeypatch, capsys)
