"""`/v1/providers`."""

import asyncio
import logging
from typing import Any

import aiohttp
import pytest
from pydantic import ValidationError

from gatewayctl.wire import routes
from gatewayctl.wire.base import HEADER, VERSION
from gatewayctl.wire.upkeep.providers import NewProviderKey
from gatewayd.catalog.providers.records import ProviderFamily
from tests.fakes.daemons.control_documents import refused
from tests.fakes.daemons.control_socket import Control

KEY = NewProviderKey(key="canary-new-key")


def keys(control: Control) -> list[str]:
    return [each.key for each in control.providers.show(ProviderFamily.OPENAI).providers]


async def test_a_key_is_replaced_and_audited_without_it(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    client, call = control.client, control.call
    dry = await call(client.call, routes.REPLACE_PROVIDER_KEY, "acme", body=KEY, dry_run=True)
    assert (dry.name, dry.base_url, dry.models, dry.dry_run) == ("acme", "https://acme.test/v1", 2, True)
    assert keys(control) == ["file-key", "canary-stored-key"]
    with caplog.at_level(logging.INFO):
        made = await call(client.call, routes.REPLACE_PROVIDER_KEY, "acme", body=KEY)
    assert (made.outcome, made.dry_run) == ("changed", False)
    assert keys(control) == ["file-key", "canary-new-key"]
    assert "secret rotate-provider" in caplog.text
    assert "canary" not in caplog.text
    assert "canary" not in made.model_dump_json()


async def test_refusals(control: Control) -> None:
    client = control.client
    for name, kind in (("none", "not_found"), ("hosted", "conflict")):
        failure = await refused(control, client.call, routes.REPLACE_PROVIDER_KEY, name, body=KEY)
        assert failure.kind == kind
    spaced = NewProviderKey(key="two words")
    failure = await refused(control, client.call, routes.REPLACE_PROVIDER_KEY, "acme", body=spaced)
    assert (failure.kind, failure.param) == ("invalid_request", "key")
    for key in ("", "x" * 4097):
        with pytest.raises(ValidationError):
            NewProviderKey(key=key)
    assert keys(control) == ["file-key", "canary-stored-key"]


async def test_a_key_that_would_not_be_stored_is_sent_to_nobody(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    tester: Any = control.providers._tester
    test, asked = tester.test, list[str]()

    async def note(provider: Any) -> Any:
        asked.append(provider.name)
        return await test(provider)

    monkeypatch.setattr(tester, "test", note)
    client = control.client
    assert (
        await refused(control, client.call, routes.REPLACE_PROVIDER_KEY, "hosted", body=KEY)
    ).kind == "conflict"
    assert asked == []
    await control.call(client.call, routes.REPLACE_PROVIDER_KEY, "hosted", body=KEY, dry_run=True)
    assert asked == ["hosted"]


async def test_a_client_who_leaves_does_not_part_what_is_stored_from_what_is_in_use(
    control: Control, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = control.providers._store
    save, stored, may_end = store.save, asyncio.Event(), asyncio.Event()
    used = asyncio.Event()
    control.providers.on_change = used.set

    async def slow_save(*args: Any, **named: Any) -> None:
        await save(*args, **named)
        stored.set()
        await may_end.wait()

    monkeypatch.setattr(store, "save", slow_save)
    with caplog.at_level(logging.INFO):
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(control.socket))) as session:
            url = "http://gatewayd/v1/providers/acme/key"
            asked = session.post(url, json=KEY.model_dump(), headers={HEADER: VERSION})
            client = asyncio.ensure_future(asked.__aenter__())
            await stored.wait()
            client.cancel()
            await asyncio.gather(client, return_exceptions=True)
        may_end.set()
        await asyncio.wait_for(used.wait(), 20)
    assert "secret rotate-provider" in caplog.text
    assert store.stored.providers[0].key == KEY.key
    assert keys(control) == ["file-key", KEY.key]
