"""Tests for gatewayd.assembly.resumption."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.assembly.gateway import Gateway, assemble, reload
from gatewayd.resumption.live_stream import StreamRecording
from gatewayd.settings import load


@pytest.fixture
async def gateway(state: Path) -> AsyncIterator[Gateway]:
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        yield await assemble(settings, stack)


async def endless(recording: StreamRecording) -> None:
    recording.begin({})
    await asyncio.Event().wait()


async def test_account_that_loses_its_access_loses_its_streams(gateway: Gateway) -> None:
    services = gateway.services
    streams = services.resumption.streams
    own, other = (streams.begin(user_id, "openai", endless) for user_id in ("ann", "bob"))
    await other.begun()
    services.accounts.changes.publish(AccountChange("ann", asks_again=True))
    services.accounts.changes.publish(AccountChange("ann", is_out=True))
    async with asyncio.timeout(1):
        while not own.is_over:
            await asyncio.sleep(0)
    assert own.ending is not None
    assert (own.ending.code, other.is_over) == ("stream_stopped", False)


async def test_reload_applies_the_times(gateway: Gateway, state: Path) -> None:
    changed = {"STREAM_UNREAD_TIMEOUT": "7", "STREAM_RETENTION": "8", "IDEMPOTENCY_RETENTION": "9"}
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false", **changed})
    await reload(gateway, settings)
    resumption = gateway.services.resumption
    assert (resumption.streams._times.unread, resumption.streams._times.kept) == (7, 8)
    assert resumption.replies._kept == 9
