"""Import hook that makes the `open_webui` modules on their first import."""

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
    """Finder and loader of `open_webui` and the modules of the manifest."""

    def __init__(self, bridge: HostBridge, app: PluginApp) -> None:
        self._bridge = bridge
        self._app = app

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of the manifest; None for any other."""
        del path, target
        if not _is_ours(fullname):
            return None
        name = manifest.current_name(fullname)
        packaged = manifest.is_package(name)
        if not packaged and name not in manifest.MODULES_BY_NAME:
            return None
        return ModuleSpec(fullname, self, origin="gatewayd", is_package=packaged)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None, so that Python makes the module object."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module with its names."""
        name = manifest.current_name(module.__name__)
        if manifest.is_package(name):
            return
        location, _, function = manifest.MODULES_BY_NAME[name].home.partition(":")
        make = getattr(importlib.import_module(location), function)
        made: dict[str, Any] = make(self._bridge, self._app) if name == MAIN else make(self._bridge)
        vars(module).update(made)


class InstalledModules:
    """The installed import hook; `app` is the object of `__request__.app`."""

    def __init__(self, host: PluginHost, loop: asyncio.AbstractEventLoop) -> None:
        bridge = HostBridge(host, loop)
        self.app = PluginApp(bridge)
        self._finder = CompatFinder(bridge, self.app)
        sys.meta_path.insert(0, self._finder)

    def make_request(self, scope: CallScope) -> Any:
        """Return the `__request__` of a call; not_configured when starlette is not installed."""
        return make_request(scope.facts, self.app, scope)

    def close(self) -> None:
        """Remove the import hook and all modules that it made."""
        sys.meta_path.remove(self._finder)
        for name in [name for name in sys.modules if _is_ours(name)]:
            del sys.modules[name]


def install(host: PluginHost, loop: asyncio.AbstractEventLoop) -> InstalledModules:
    """Make `open_webui` importable; the methods of the host run on `loop`, the loop of the daemon.

    Called once, after the stores are open. It imports no `open_webui` module.
    """
    return InstalledModules(host, loop)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == manifest.PACKAGE
