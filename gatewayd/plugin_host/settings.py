"""Settings for plugins: by upper-case name, and none that is a secret."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.plugins.interfaces import Record

_SECRET: Final = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL")
_WITH_USER: Final = re.compile(r"://[^/\s]*@")

_OMITTED: Final = object()


class SettingsForPlugins:
    """A `plugins.interfaces.HostSettings`: what the configuration says now, under what was set at run time.

    `configured` returns the settings by name. Only plain values are shown, so that a secret, which has a
    type of its own, never is; nor are texts with a name like that of one, or addresses with a user in them.
    """

    def __init__(self, configured: Callable[[], Mapping[str, Any]], runtime: RuntimeSettings) -> None:
        self._configured = configured
        self._runtime = runtime

    async def get(self, name: str) -> Any:
        """Return a setting; None when there is none of that name."""
        return (await self.all()).get(name)

    async def all(self) -> Record:
        """Return every setting that is no secret."""
        values = {name.upper(): value for name, value in self._configured().items()}
        values |= {each.name: each.value for each in self._runtime.list()}
        shown = {name: _shown(name, value) for name, value in values.items()}
        return {name: value for name, value in shown.items() if value is not _OMITTED}


def _shown(name: str, value: Any) -> Any:
    """Return a setting as plugins see it, _OMITTED for a secret and for what is not plain."""
    match value:
        case None | bool():
            return value
        case int() | float():
            # Sizes have a type of their own.
            return int(value) if isinstance(value, int) else value
        case _ if _SECRET.search(name):
            return _OMITTED
        case str() | Path():
            text = str(value)
            return _OMITTED if _WITH_USER.search(text) else text
        case tuple() | list() | frozenset() | set():
            shown = [_shown(name, each) for each in value]
            return _OMITTED if any(each is _OMITTED for each in shown) else shown
        case _:
            return _OMITTED
