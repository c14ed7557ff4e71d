"""Tests for gatewayd.storage.providers."""

from dataclasses import replace

import orjson

from gatewayd.catalog.providers.options import NO_OPTIONS, ConnectionOptions
from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily, StoredProviders
from gatewayd.storage.engine.database import Database
from gatewayd.storage.providers import VALUE_NAME, TortoiseProviders
from gatewayd.storage.tables.accounts import ValueRow

OPTIONS = ConnectionOptions(("canary-key-2",), (("X-A", "canary-key-3"),), families=(("m", "gpt-5"),))
PROVIDER = ManagedProvider(
    "p1",
    "acme é",
    "openai",
    "https://acme.test",
    key="canary-key",
    prefix="a.",
    models=("m", "n"),
    options=OPTIONS,
)
STORED = StoredProviders((PROVIDER,), {ProviderFamily.OLLAMA: False}, 7)


async def test_what_is_stored_comes_back_and_the_key_is_encrypted(database: Database) -> None:
    store = TortoiseProviders(b"secret")
    assert await store.load() == StoredProviders()
    await store.save(STORED, at=1, by="me")
    assert await store.load() == STORED
    await store.save(StoredProviders((PROVIDER,), {}, 8), at=2, by="me")
    assert (await store.load()).revision == 8
    row = await ValueRow.get(name=VALUE_NAME)
    assert "canary-key" not in row.value


async def test_a_key_of_another_secret_is_kept_as_it_is(database: Database) -> None:
    await TortoiseProviders(b"secret").save(STORED, at=1, by="me")
    other = TortoiseProviders(b"another")
    (found,) = (await other.load()).providers
    assert (found.key, found.has_key) == ("", True)
    assert "enter the key again" in found.problem
    await other.save(StoredProviders((found,), {}, 8), at=2, by="me")
    assert (await TortoiseProviders(b"secret").load()).providers == (PROVIDER,)


async def test_a_provider_of_an_earlier_version_has_no_options(database: Database) -> None:
    store = TortoiseProviders(b"secret")
    await store.save(StoredProviders((replace(PROVIDER, options=NO_OPTIONS),), {}, 1), at=1, by="me")
    row = await ValueRow.get(name=VALUE_NAME)
    value = orjson.loads(row.value)
    del value["providers"][0]["options"]
    row.value = orjson.dumps(value).decode()
    await row.save()
    assert "options" not in row.value
    assert (await store.load()).providers == (replace(PROVIDER, options=NO_OPTIONS),)
