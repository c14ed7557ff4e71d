"""Implementation of `HostSettings`: settings by upper-case name without secrets, and the derived secret."""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.plugins.interfaces import Record

DERIVATION_INFO: Final = b"gatewayd plugins"

_SECRET: Final = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL")
_WITH_USER: Final = re.compile(r"://[^/\s]*@")

_OMITTED: Final = object()


class SettingsForPlugins:
    """A `plugins.interfaces.HostSettings`: the configuration in force, overridden by run-time settings.

    `configured` returns the settings by name. Only plain values are returned: secrets have a type of their
    own and are omitted, as are texts whose name suggests a secret and URLs with user information.
    """

    def __init__(self, configured: Callable[[], Mapping[str, Any]], runtime: RuntimeSettings) -> None:
        self._configured = configured
        self._runtime = runtime

    async def get(self, name: str) -> Any:
        """Return a setting; None when it does not exist."""
        return (await self.all()).get(name)

    async def all(self) -> Record:
        """Return every setting that is not a secret."""
        values = {name.upper(): value for name, value in self._configured().items()}
        values |= {each.name: each.value for each in self._runtime.list()}
        visible = {name: _plain(name, value) for name, value in values.items()}
        return {name: value for name, value in visible.items() if value is not _OMITTED}


def _plain(name: str, value: Any) -> Any:
    """Return the value for plugins; _OMITTED for a secret or a value that is not plain."""
    match value:
        case None | bool():
            return value
        case int() | float():
            # Sizes are a subclass of int.
            return int(value) if isinstance(value, int) else value
        case _ if _SECRET.search(name):
            return _OMITTED
        case str() | Path():
            text = str(value)
            return _OMITTED if _WITH_USER.search(text) else text
        case tuple() | list() | frozenset() | set():
            visible = [_plain(name, each) for each in value]
            return _OMITTED if any(each is _OMITTED for each in visible) else visible
        case _:
            return _OMITTED


def derive_secret(secret_key: str) -> str:
    """Return the secret of plugins: 64 hexadecimal digits derived by HKDF with SHA-256 (RFC 5869, 2).

    The secret of the gateway cannot be computed from it. Empty for an empty `secret_key`, which plugins
    understand as: do not encrypt.
    """
    if not secret_key:
        return ""
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), secret_key.encode(), "sha256")
    return hmac.digest(extracted, DERIVATION_INFO + b"\x01", "sha256").hex()
