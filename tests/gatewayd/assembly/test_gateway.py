"""Tests for gatewayd.assembly.gateway: opening, reloading and closing the whole."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd.assembly.gateway import assemble, open_database, reload
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.connections.capacity import public_descriptor_limits
from gatewayd.settings import Settings, load
from tests.fakes.providers.upstream import FakeUpstream
from tests.fakes.storage.postgres import Postgres


def settings_for(state: Path, **values: str) -> Settings:
    return load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false", **values})


async def test_state_outlives_the_gateway(state: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        made = await gateway.services.accounts.setup.run("a@example.org", "A", "a password")
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        actor = await gateway.services.accounts.authenticator.authenticate(
            made.key_value, "GET", "/api/models"
        )
        assert actor.user.email == "a@example.org"
        assert gateway.services.accounts.runtime.flag("ENABLE_API_KEYS")


async def test_the_same_on_postgresql_and_one_daemon_only(state: Path, postgres: Postgres) -> None:
    settings = settings_for(state, DATABASE_URL=postgres.create_database())
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings, stack)
        assert gateway.services.room.places == public_descriptor_limits(settings.database_pool_size)
        made = await gateway.services.accounts.setup.run("a@example.org", "A", "a password")
        other = settings_for(state / "other", DATABASE_URL=settings.database_location())
        with pytest.raises(GatewayError) as caught:
            async with AsyncExitStack() as second:
                await assemble(other, second)
        assert caught.value.kind is ErrorKind.CONFLICT
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings, stack)
        actor = await gateway.services.accounts.authenticator.authenticate(
            made.key_value, "GET", "/api/models"
        )
        assert actor.is_admin


async def test_nodes_share_a_database_and_a_daemon_alone_does_not(state: Path, postgres: Postgres) -> None:
    address = postgres.create_database()
    shared = {
        "CLUSTER": "true",
        "WEBUI_SECRET_KEY": "s" * 32,
        "FILE_STORE": "s3://b",
        "REDIS_URL": "redis://r",
    }
    nodes = [settings_for(state / name, DATABASE_URL=address, **shared) for name in ("one", "two")]
    alone = settings_for(state / "three", DATABASE_URL=address)
    async with AsyncExitStack() as stack:
        for settings in nodes:
            await open_database(settings, stack)
        with pytest.raises(GatewayError, match="another gatewayd") as caught:
            async with AsyncExitStack() as third:
                await open_database(alone, third)
        assert caught.value.kind is ErrorKind.CONFLICT
    async with AsyncExitStack() as stack:
        await open_database(alone, stack)
        with pytest.raises(GatewayError, match="another gatewayd"):
            async with AsyncExitStack() as second:
                await open_database(nodes[0], second)


async def test_reload_changes_providers_and_runtime_values(state: Path) -> None:
    async with FakeUpstream() as upstream, AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        assert await gateway.first_model(0.1) is None
        fresh = settings_for(
            state, OPENAI_API_BASE_URLS=upstream.openai_url, OPENAI_API_KEYS="k", ENABLE_SIGNUP="false"
        )
        await reload(gateway, fresh)
        assert await gateway.first_model(5) is not None
        assert not gateway.services.accounts.runtime.flag("ENABLE_SIGNUP")
        await reload(gateway, settings_for(state))
        assert await gateway.services.catalog.list_all() == []
        assert gateway.services.accounts.runtime.flag("ENABLE_SIGNUP")


async def test_a_reload_that_cannot_be_changes_nothing(state: Path) -> None:
    async with FakeUpstream() as upstream, AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        paths = ",".join(f"/{number}" for number in range(3000))
        bad = settings_for(state, OPENAI_API_BASE_URLS=upstream.openai_url, API_KEYS_ALLOWED_ENDPOINTS=paths)
        with pytest.raises(GatewayError, match="API_KEYS_ALLOWED_ENDPOINTS"):
            await reload(gateway, bad)
        assert gateway.services.sources.count == 0


async def test_second_gateway_on_the_same_state_is_refused(state: Path) -> None:
    async with AsyncExitStack() as stack:
        await assemble(settings_for(state), stack)
        with pytest.raises(GatewayError) as caught:
            async with AsyncExitStack() as second:
                await assemble(settings_for(state), second)
        assert caught.value.kind is ErrorKind.CONFLICT
