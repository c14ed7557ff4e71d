"""Settings, permissions, providers and tool servers: what is here counts more than what is imported."""

import asyncio
from typing import Any

from gatewayd.catalog.providers.records import ManagedProvider, StoredProviders
from gatewayd.storage.providers import TortoiseProviders
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.tool_servers import TortoiseToolServers
from tests.fakes.storage.open_webui import OLD, Rows, household
from tests.gatewayd.offline.imports.conftest import Importing, numbers, reasons

SECRET = "the-signing-secret-of-this-gateway"


def configured(**values: Any) -> Rows:
    """Return a household with these settings alone, `__` for the dots of their names."""
    rows = household()
    rows["config"] = [{"key": name.replace("__", "."), "value": value} for name, value in values.items()]
    return rows


def providers(importing: Importing) -> list[ManagedProvider]:
    importing.environ["WEBUI_SECRET_KEY"] = SECRET

    async def read() -> list[ManagedProvider]:
        async with importing.open():
            return list((await TortoiseProviders(SECRET.encode()).load()).providers)

    return asyncio.run(read())


def test_settings_of_the_configuration_and_stored_ones_stay(importing: Importing) -> None:
    importing.environ |= {"ENABLE_SIGNUP": "true", "USER_PERMISSIONS_CHAT_EDIT": "false"}

    async def store() -> None:
        async with importing.open():
            await TortoiseValues().put({"WEBUI_URL": "https://here.example"}, at=1, by="ann")

    asyncio.run(store())
    rows = configured(
        ui__enable_signup=False,
        webui__url="https://there.example",
        auth__jwt_expiry="soon",
        auth__api_key__enable=True,
        ui__default_group_id="g-none",
        user__permissions={"chat": {"delete": False}},
    )
    report = importing.rows(rows)
    assert reasons(report, "setting") == {
        "ENABLE_SIGNUP": "the configuration of the gateway sets it",
        "JWT_EXPIRES_IN": "cannot set JWT_EXPIRES_IN: expected -1, 0, or a number and ms, s, m, h, d or w, "
        "at least one second",
        "USER_PERMISSIONS": "the configuration of the gateway sets it",
    }
    assert numbers(report)["setting"] == (1, 2, 3)

    async def read() -> None:
        async with importing.open():
            values = await TortoiseValues().load()
            assert values == {"WEBUI_URL": "https://here.example", "ENABLE_API_KEYS": True}

    asyncio.run(read())


def test_permissions_of_another_form_are_left_out(importing: Importing) -> None:
    report = importing.rows(configured(user__permissions={"chat": "all"}))
    assert "permissions.chat" in reasons(report, "setting")["USER_PERMISSIONS"]
    assert numbers(importing.rows(configured(user__permissions={})))["setting"] == (0, 1, 0)


def test_providers_have_their_keys_encrypted_here(importing: Importing) -> None:
    importing.environ |= {
        "WEBUI_SECRET_KEY": SECRET,
        "OPENAI_API_BASE_URLS": "http://127.0.0.1:7/v1",
        "OPENAI_API_KEYS": "sk-own",
    }
    urls = [
        "http://127.0.0.1:7/v1/",
        "http://127.0.0.1:9/v1",
        "http://127.0.0.1:9/v1",
        7,
        "",
        "http://127.0.0.1:8",
    ]
    rows = configured(
        openai__api_base_urls=urls,
        openai__api_keys=["sk-7", "sk-9", "sk-10", "", "", 5],
        openai__api_configs={"1": {"prefix_id": "p", "model_ids": ["m"]}, "5": {"auth_type": "oauth"}},
        ollama__enable=False,
        ollama__base_urls=["http://127.0.0.1:11434"],
    )
    report = importing.rows(rows)
    assert numbers(report)["provider"] == (2, 1, 4)
    one, two = providers(importing)
    assert (one.base_url, one.key, one.prefix, one.models) == ("http://127.0.0.1:9/v1", "sk-9", "p.", ("m",))
    assert (two.key, two.name != one.name, two.id != one.id) == ("sk-10", True, True)
    assert "sk-9" not in importing.gateway.place.location.path.read_bytes().decode("latin-1")  # type: ignore[union-attr]
    again = importing.rows(rows)
    assert (numbers(again)["provider"], again["has_changed"]) == ((0, 3, 4), False)
    assert providers(importing) == [one, two]


def test_providers_that_are_stored_here_stay(importing: Importing) -> None:
    importing.environ["WEBUI_SECRET_KEY"] = SECRET
    own = ManagedProvider("id-1", "127.0.0.1:11434", "ollama", "http://127.0.0.1:11435", key="k")

    async def store() -> None:
        async with importing.open():
            await TortoiseProviders(SECRET.encode()).save(StoredProviders((own,), {}, 4), at=1, by="ann")

    asyncio.run(store())
    importing.rows(
        configured(ollama__base_urls=["http://127.0.0.1:11434"], ollama__api_configs={"0": {"key": "sk"}})
    )
    first, second = providers(importing)
    assert first == own
    assert (second.name, second.kind, second.key) == ("127.0.0.1:11434 2", "ollama", "sk")


def test_tool_servers_keep_their_access_lists(importing: Importing) -> None:
    grants = [
        {"principal_type": "group", "principal_id": "g-1", "permission": "read"},
        {"principal_type": "user", "principal_id": "gone", "permission": "read"},
    ]
    entries = [
        {"url": "http://127.0.0.1:9/a", "path": "openapi.json", "config": {"access_grants": grants}},
        {"url": "http://127.0.0.1:9/b", "path": "openapi.json", "info": {"id": "0"}},
        {"url": "ftp://x", "path": "openapi.json"},
        "no server",
    ]
    rows = configured(tool_server__connections=entries)
    report = importing.rows(rows)
    assert numbers(report)["tool server"] == (2, 0, 2)
    assert "user gone of its access list" in reasons(report, "tool server", "changed")["0"]

    async def read() -> None:
        async with importing.open():
            one, two = await TortoiseToolServers().list()
            assert (one.id, two.id) == ("0", "0-2")
            assert [each.principal_id for each in one.grants] == ["g-1"]

    asyncio.run(read())
    again = importing.rows(rows)
    assert (numbers(again)["tool server"], again["has_changed"]) == ((0, 2, 2), False)


def test_settings_that_cannot_be_read_are_noted(importing: Importing) -> None:
    rows = household()
    rows["config"] = [{"key": "ui.enable_signup", "value": "x"}]
    report = importing.rows(rows)
    assert "ENABLE_SIGNUP" in reasons(report, "setting")
    rows = household(OLD)
    rows["config"] = [{"id": 1, "data": '{"cut'}]
    report = importing.rows(rows, OLD)
    assert reasons(report, "setting", "changed") == {"config": "cannot read data: it is no JSON"}
