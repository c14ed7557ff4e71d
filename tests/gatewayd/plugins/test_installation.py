"""Plugins that are brought into a state, and what that would do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import EnsureOutcome, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.installation import DesiredPlugin, PluginInstaller, check_is_stored, rehearse_switch
from gatewayd.plugins.records import PluginFamily, PluginKind, PluginOrigin
from gatewayd.plugins.service import NewPlugin, PluginService
from gatewayd.plugins.source.check_process import SourceChecker
from gatewayd.plugins.source.requirements import InstallationOptions
from tests.fakes.accounts.services import Accounts
from tests.fakes.plugins.memory import Plugged, actor_of, make_registry, plugin_of

pytestmark = pytest.mark.timeout(30)

ADMIN = actor_of("u-admin", Role.ADMIN, permissions={"workspace": {"tools": True}})
FILTER = "class Filter:\n    def inlet(self, body): return 1\n"
BROKEN = "class Filter:\n    lost = 1 / 0\n"


@asynccontextmanager
async def installing(*plugins: Any, **options: Any) -> AsyncIterator[tuple[PluginInstaller, Plugged]]:
    async with make_registry(*plugins, **options) as plugged:
        registry = plugged.registry
        service = PluginService(registry, plugged.store, Accounts().commits, PluginAccess(), lambda: 77)
        yield (
            PluginInstaller(
                service, registry, SourceChecker(InstallationOptions(Path("/none")), 20.0), lambda: 77
            ),
            plugged,
        )


def wanted(
    content: str = FILTER, *, active: bool | None = None, glob: bool | None = None, **new: Any
) -> DesiredPlugin:
    return DesiredPlugin(NewPlugin("loud", content, **new), active, glob)


async def test_created_unchanged_changed() -> None:
    async with installing() as (service, plugged):
        made, outcome = await service.install(ADMIN, PluginFamily.FUNCTION, wanted())
        assert (outcome, made.kind, made.is_active, made.user_id) == (
            EnsureOutcome.CREATED,
            PluginKind.FILTER,
            False,
            "u-admin",
        )
        same, outcome = await service.install(ADMIN, PluginFamily.FUNCTION, wanted())
        assert (outcome, same) == (EnsureOutcome.UNCHANGED, made)
        changed, outcome = await service.install(ADMIN, PluginFamily.FUNCTION, wanted(FILTER + "# new\n"))
        assert (outcome, changed.content) == (EnsureOutcome.CHANGED, FILTER + "# new\n")
        named, outcome = await service.install(
            ADMIN, PluginFamily.FUNCTION, wanted(changed.content, name="Loud")
        )
        assert (outcome, named.name) == (EnsureOutcome.CHANGED, "Loud")
        assert (await service.install(ADMIN, PluginFamily.FUNCTION, wanted(changed.content)))[
            1
        ] is EnsureOutcome.UNCHANGED
        assert plugged.store.rows[PluginFamily.FUNCTION, "loud"].name == "Loud"


async def test_a_source_is_not_rehearsed_without_the_permission() -> None:
    async with installing(plugin_of("loud", "class Tools: pass", user_id="owner")) as (service, _):
        with pytest.raises(GatewayError, match=r"workspace\.tools is missing"):
            await service.rehearse(actor_of("owner"), PluginFamily.TOOL, wanted("class Tools: x = 1"))


async def test_switches_are_a_change() -> None:
    async with installing() as (service, _):
        made, _ = await service.install(ADMIN, PluginFamily.FUNCTION, wanted(active=True, glob=True))
        assert (made.is_active, made.is_global) == (True, True)
        same, outcome = await service.install(ADMIN, PluginFamily.FUNCTION, wanted(active=True))
        assert (outcome, same.is_global) == (EnsureOutcome.UNCHANGED, True)
        off, outcome = await service.install(ADMIN, PluginFamily.FUNCTION, wanted(active=False))
        assert (outcome, off.is_active, off.is_global) == (EnsureOutcome.CHANGED, False, True)


async def test_one_that_failed_to_load_is_tried_again(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    source = f"open({str(mark)!r}).close()\n{FILTER}"
    async with installing(plugin_of("loud", source)) as (service, plugged):
        with pytest.raises(GatewayError):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "loud")
        mark.touch()
        healed, outcome = await service.install(
            ADMIN, PluginFamily.FUNCTION, wanted(plugin_of("loud", source).content)
        )
        assert (outcome, healed.problem) == (EnsureOutcome.CHANGED, None)


@pytest.mark.process
async def test_what_does_not_load_is_refused_and_not_kept() -> None:
    async with installing() as (service, plugged):
        for work in (service.install, service.rehearse):
            with pytest.raises(GatewayError, match="ZeroDivisionError") as caught:
                await work(ADMIN, PluginFamily.FUNCTION, wanted(BROKEN))
            assert (caught.value.kind, caught.value.message[:12]) == (
                ErrorKind.INVALID_REQUEST,
                "cannot load ",
            )
        assert plugged.store.rows == {}


@pytest.mark.process
async def test_a_rehearsal_keeps_nothing() -> None:
    async with installing() as (service, plugged):
        made, outcome = await service.rehearse(ADMIN, PluginFamily.FUNCTION, wanted(active=True))
        assert (outcome, made.id, made.is_active) == (EnsureOutcome.CREATED, "loud", True)
        assert plugged.registry.list() == []
        await service.install(ADMIN, PluginFamily.FUNCTION, wanted())
        assert (await service.rehearse(ADMIN, PluginFamily.FUNCTION, wanted()))[1] is EnsureOutcome.UNCHANGED
        assert (await service.rehearse(ADMIN, PluginFamily.FUNCTION, wanted(glob=True)))[
            1
        ] is EnsureOutcome.CHANGED
        changed, outcome = await service.rehearse(ADMIN, PluginFamily.FUNCTION, wanted(FILTER + "#\n"))
        assert (outcome, changed.content) == (EnsureOutcome.CHANGED, FILTER + "#\n")
        found = plugged.registry.find(PluginFamily.FUNCTION, "loud")
        assert found is not None
        assert (found.content, found.is_global) == (FILTER, False)


async def test_who_may_not_install_may_not_rehearse() -> None:
    async with installing(plugin_of("loud", FILTER)) as (service, _):
        for name in ("loud", "other"):
            with pytest.raises(GatewayError) as caught:
                await service.rehearse(
                    actor_of("u-1"), PluginFamily.FUNCTION, DesiredPlugin(NewPlugin(name, FILTER + "#\n"))
                )
            assert caught.value.kind is ErrorKind.FORBIDDEN


async def test_files_are_not_installed_over(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(FILTER)
    async with installing(directory=tmp_path) as (service, _):
        same, outcome = await service.install(ADMIN, PluginFamily.FUNCTION, wanted())
        assert (outcome, same.origin) == (EnsureOutcome.UNCHANGED, PluginOrigin.FILE)
        for work in (service.install, service.rehearse):
            with pytest.raises(GatewayError, match="it comes from the file") as caught:
                await work(ADMIN, PluginFamily.FUNCTION, wanted(FILTER + "#\n"))
            assert caught.value.kind is ErrorKind.CONFLICT


def test_switching_on_paper() -> None:
    plugin = plugin_of("loud", FILTER, is_active=False, is_global=False)
    assert rehearse_switch(plugin, None, None) == plugin
    assert rehearse_switch(plugin, True, None).is_active
    assert rehearse_switch(plugin, None, True).is_global


def test_whose_source_it_is() -> None:
    check_is_stored(plugin_of("loud", FILTER))
    with pytest.raises(GatewayError, match="it comes from the gateway itself"):
        check_is_stored(plugin_of("loud", FILTER, origin=PluginOrigin.BUILTIN))
