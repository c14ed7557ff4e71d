import asyncio
import importlib
import subprocess
import sys

import pytest

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui import manifest
from gatewayd.plugins.open_webui.finder import InstalledModules, install
from gatewayd.plugins.open_webui.modules.completions import scope_of
from tests.fakes.plugins.host import make_scope
from tests.fakes.plugins.plugin_threads import in_thread


@pytest.mark.parametrize("module", manifest.MODULES, ids=lambda module: module.name)
async def test_every_module_has_the_names_of_the_catalogue(
    installed: InstalledModules, module: manifest.CompatModule
) -> None:
    made = await in_thread(importlib.import_module, module.name)
    assert made.__name__ == module.name
    names = {name for name in vars(made) if not name.startswith("__")}
    assert names == set(module.names)
    assert hasattr(made, "__getattr__") == module.settings


async def test_modules_are_made_once_and_when_imported(installed: InstalledModules) -> None:
    assert "open_webui" not in sys.modules
    first = importlib.import_module("open_webui.models.users")
    assert importlib.import_module("open_webui.models.users") is first
    assert "open_webui.models.files" not in sys.modules
    assert sys.modules["open_webui.models"].users is first


async def test_what_is_not_there_is_not_found(installed: InstalledModules) -> None:
    for name in ("open_webui.socket.main", "open_webui.models.auths", "open_webui.models.users.inner"):
        with pytest.raises(ModuleNotFoundError, match="open_webui"):
            importlib.import_module(name)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("open_webui_other")


async def test_old_names(installed: InstalledModules) -> None:
    old = importlib.import_module("open_webui.apps.webui.models.users")
    assert old.UserModel is importlib.import_module("open_webui.models.users").UserModel


async def test_closing_takes_everything_away(host: PluginHost) -> None:
    names = install(host, asyncio.get_running_loop())
    importlib.import_module("open_webui.constants")
    names.close()
    assert not [name for name in sys.modules if name.partition(".")[0] == "open_webui"]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("open_webui.constants")


async def test_main_has_the_application(installed: InstalledModules) -> None:
    assert importlib.import_module("open_webui.main").app is installed.app


async def test_requests_of_calls_have_the_application(installed: InstalledModules) -> None:
    scope = make_scope("ada")
    request = installed.make_request(scope)
    assert request.app is installed.app
    assert scope_of(request) is scope


@pytest.mark.process
def test_installing_loads_neither_the_web_library_nor_the_names() -> None:
    code = """
import sys
import gatewayd.plugins.open_webui.finder, gatewayd.plugins.runtime.requests
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"starlette", "fastapi", "httpx"}, loaded
assert "gatewayd.plugins.open_webui.modules.uploads" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
