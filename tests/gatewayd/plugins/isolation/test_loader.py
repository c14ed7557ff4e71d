from pathlib import Path

import pytest

from gatewayd.plugins.isolation.loader import IsolationChoice, IsolationMode
from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.instance import PluginInstance
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.source.requirements import InstallationOptions, RequirementsInstaller
from tests.fakes.plugins.isolated import Isolating
from tests.fakes.plugins.memory import make_registry, plugin_of

PLAIN = "class Pipe:\n    def pipe(self, body): return 'here'\n"
ASKING = f'"""\nisolation: process\n"""\n{PLAIN}'


@pytest.mark.parametrize(
    ("mode", "plugin_id", "content", "expected"),
    [
        ("thread", "p", PLAIN, "thread"),
        ("thread", "other", PLAIN, "process"),
        ("process", "p", PLAIN, "process"),
        ("process", "other", PLAIN, "thread"),
        ("thread", "p", ASKING, "process"),
        ("process", "other", ASKING, "process"),
        ("process", "p", ASKING.replace("process", "Thread"), "process"),
    ],
)
def test_settings_and_header_choose(mode: str, plugin_id: str, content: str, expected: str) -> None:
    choice = IsolationChoice(IsolationMode(mode), frozenset({"other"}))
    assert choice.of(plugin_of(plugin_id, content)) is IsolationMode(expected)


def test_a_header_that_names_no_mode_is_refused() -> None:
    with pytest.raises(PluginError, match="asks for isolation 'jail'; the modes are thread and process"):
        IsolationChoice().of(plugin_of("p", ASKING.replace("process", "jail")))


@pytest.mark.process
async def test_a_header_asks_for_a_process(isolating: Isolating) -> None:
    isolating.mode = IsolationMode.THREAD
    plugins = plugin_of("asking", ASKING), plugin_of("plain", PLAIN)
    async with make_registry(*plugins, isolation=isolating) as plugged:
        assert isinstance(await plugged.registry.loaded(PluginFamily.FUNCTION, "asking"), IsolatedPlugin)
        assert isinstance(await plugged.registry.loaded(PluginFamily.FUNCTION, "plain"), PluginInstance)


@pytest.mark.process
async def test_there_are_no_more_processes_than_permitted(isolating: Isolating) -> None:
    isolating.most = 1
    plugins = plugin_of("one", PLAIN), plugin_of("two", PLAIN, is_active=False)
    async with make_registry(*plugins, isolation=isolating) as plugged:
        await plugged.registry.loaded(PluginFamily.FUNCTION, "one")
        # The place of its former source is that of the new one.
        changed = await plugged.registry.probe(plugin_of("one", PLAIN + "    new = 1\n"))
        await changed.end(5.0)
        with pytest.raises(PluginError, match="1 plugins have processes already, the maximum set by plugin_"):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "two")


@pytest.mark.process
async def test_why_packages_are_not_installed_is_told(
    isolating: Isolating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> str:
        return "its packages cannot be installed: no index"

    monkeypatch.setattr(RequirementsInstaller, "_install", fail)
    content = '"""\nrequirements: gatewayd_absent\n"""\nimport gatewayd_absent\n' + PLAIN
    installation = InstallationOptions(tmp_path, is_enabled=True)
    async with make_registry(
        plugin_of("p", content), isolation=isolating, installation=installation
    ) as plugged:
        with pytest.raises(
            PluginError, match="'gatewayd_absent'; its packages cannot be installed: no index"
        ):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
