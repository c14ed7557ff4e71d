"""Makes the modules of `open_webui` when they are imported for the first time."""

import asyncio
import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui import manifest
from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.modules.app import PluginApp
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.requests import make_request

MAIN: Final = f"{manifest.PACKAGE}.main"


class CompatFinder(MetaPathFinder, Loader):
    """Finds `open_webui` and what is below it: what the catalogue has, as modules of the import system."""

    def __init__(self, gate: HostBridge, app: PluginApp) -> None:
        self._gate = gate
        self._app = app

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to make a module of the catalogue, None for any other."""
        del path, target
        if not _is_ours(fullname):
            return None
        name = manifest.current_name(fullname)
        packaged = manifest.is_package(name)
        if not packaged and name not in manifest.MODULES_BY_NAME:
            return None
        return ModuleSpec(fullname, self, origin="gatewayd", is_package=packaged)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the making of the module object to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give a module its names."""
        name = manifest.current_name(module.__name__)
        if manifest.is_package(name):
            return
        home, _, function = manifest.MODULES_BY_NAME[name].home.partition(":")
        make = getattr(importlib.import_module(home), function)
        made: dict[str, Any] = make(self._gate, self._app) if name == MAIN else make(self._gate)
        vars(module).update(made)


class InstalledModules:
    """The names in use; `app` is what `__request__.app` is."""

    def __init__(self, host: PluginHost, loop: asyncio.AbstractEventLoop) -> None:
        gate = HostBridge(host, loop)
        self.app = PluginApp(gate)
        self._finder = CompatFinder(gate, self.app)
        sys.meta_path.insert(0, self._finder)

    def make_request(self, scope: CallScope) -> Any:
        """Return the `__request__` of a call; not_configured when starlette is not installed."""
        return make_request(scope.facts, self.app, scope)

    def close(self) -> None:
        """Take the names away, and every module that was made of them."""
        sys.meta_path.remove(self._finder)
        for name in [name for name in sys.modules if _is_ours(name)]:
            del sys.modules[name]


def install(host: PluginHost, loop: asyncio.AbstractEventLoop) -> InstalledModules:
    """Make `open_webui` importable; `loop` is the daemon's, in whose context the host's methods run.

    Called once, where the stores are open. Nothing is imported yet.
    """
    return InstalledModules(host, loop)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == manifest.PACKAGE
