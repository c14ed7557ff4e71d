"""The names installed over a fake host, and a thread as plugins run in."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules, install
from tests.fakes.plugins.host import make_host

Sync = Callable[..., Awaitable[Any]]


@pytest.fixture
def host(tmp_path: Path) -> PluginHost:
    return make_host(tmp_path)


@pytest.fixture
async def installed(host: PluginHost) -> AsyncIterator[InstalledModules]:
    names = install(host, asyncio.get_running_loop())
    yield names
    names.close()
