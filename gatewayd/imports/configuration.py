"""Settings of Open WebUI, by their dotted names: rows of newer versions, one JSON object of older ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gatewayd.accounts.permissions import known_leaves
from gatewayd.accounts.records import PermissionTree
from gatewayd.catalog.providers.forms import named, read_provider
from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily
from gatewayd.errors import GatewayError
from gatewayd.imports.rows import ForeignRow, try_read
from gatewayd.plugins.servers.config import read_connection
from gatewayd.plugins.servers.records import ToolServer

RUNTIME: Final[Mapping[str, Sequence[str]]] = {
    "SHOW_ADMIN_DETAILS": ("auth.admin.show",),
    "ADMIN_EMAIL": ("auth.admin.email",),
    "WEBUI_URL": ("webui.url",),
    "ENABLE_SIGNUP": ("ui.enable_signup",),
    "ENABLE_API_KEYS": ("auth.enable_api_keys", "auth.api_key.enable"),
    "ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS": ("auth.api_key.endpoint_restrictions",),
    "API_KEYS_ALLOWED_ENDPOINTS": ("auth.api_key.allowed_endpoints",),
    "DEFAULT_USER_ROLE": ("ui.default_user_role",),
    "DEFAULT_GROUP_ID": ("ui.default_group_id",),
    "JWT_EXPIRES_IN": ("auth.jwt_expiry",),
    "PENDING_USER_OVERLAY_TITLE": ("ui.pending_user_overlay_title",),
    "PENDING_USER_OVERLAY_CONTENT": ("ui.pending_user_overlay_content",),
    "RESPONSE_WATERMARK": ("ui.watermark",),
}
"""The dotted names of each setting that the gateway has, too; the first one that is there counts."""

PERMISSIONS: Final = "user.permissions"
SERVERS: Final = "tool_server.connections"
FAMILY_NAMES: Final = ("enable", "api_base_urls", "base_urls", "api_keys", "api_configs")
WHOLE: Final = frozenset({PERMISSIONS, SERVERS, "openai.api_configs", "ollama.api_configs"})
"""Names whose value is an object or list that is one setting."""


@dataclass(frozen=True, slots=True)
class UnusableEntry:
    """An entry of a list of settings that cannot be used here."""

    name: str
    reason: str


class ForeignSettings:
    """The settings, each of which is taken once; `rest` tells what nobody took."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._taken: set[str] = set()

    def runtime(self) -> Mapping[str, Any]:
        """Return the values of settings that may change at run time, by their names here."""
        found = {}
        for name, paths in RUNTIME.items():
            for path in (*paths, name):
                value = self._take(path)
                if value is not None and name not in found:
                    found[name] = value
        return found

    def permissions(self) -> PermissionTree | None:
        """Return the default permissions, None if none are there; raise invalid_request for unusable ones."""
        tree = self._take(PERMISSIONS)
        return None if tree is None else known_leaves(tree)

    def providers(self, family: ProviderFamily) -> Sequence[ManagedProvider | UnusableEntry]:
        """Return the providers of a family with new empty ids, and those that cannot be used."""
        values = {name: self._take(f"{family.value}.{name}") for name in FAMILY_NAMES}
        urls = values["api_base_urls"] if family is ProviderFamily.OPENAI else values["base_urls"]
        keys, configs = values["api_keys"], values["api_configs"]
        keys = keys if isinstance(keys, list) else []
        configs = configs if isinstance(configs, dict) else {}
        is_enabled = values["enable"] is not False
        found: list[ManagedProvider | UnusableEntry] = []
        for index, url in enumerate(urls if isinstance(urls, list) else []):
            key = keys[index] if index < len(keys) and isinstance(keys[index], str) else ""
            options = configs.get(str(index), configs.get(url)) or {}
            found.append(_provider(family, url, key, options, is_enabled=is_enabled))
        return found

    def tool_servers(self) -> Sequence[ToolServer | UnusableEntry]:
        """Return the tool servers, and those that cannot be used."""
        entries = self._take(SERVERS)
        found: list[ToolServer | UnusableEntry] = []
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            try:
                found.append(read_connection(entry, str(index)))
            except GatewayError as error:
                url = entry.get("url") if isinstance(entry, dict) else None
                found.append(UnusableEntry(str(url or index), error.message))
        return found

    def rest(self) -> Mapping[str, int]:
        """Return the number of settings that have no equivalent here, by the first part of their names."""
        left = [name for name, value in self._values.items() if name not in self._taken and _is_set(value)]
        return dict(sorted(Counter(name.partition(".")[0] for name in left).items()))

    def _take(self, path: str) -> Any:
        self._taken.add(path)
        return self._values.get(path)


def read_settings(rows: Iterable[ForeignRow], changes: list[str]) -> ForeignSettings:
    """Return the settings of the rows of the table; an unreadable value is noted."""
    values: dict[str, Any] = {}
    for row in rows:
        if row.has("data"):
            # The last of the older rows is the one in force.
            values = dict(_flat(row.optional("data", changes), ""))
        else:
            values[row.text("key")] = try_read(partial(row.json, "value"), changes, None)
    return ForeignSettings(values)


def _flat(value: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, member in value.items():
        path = f"{prefix}{name}"
        if isinstance(member, dict) and path not in WHOLE and name != "USER_PERMISSIONS":
            yield from _flat(member, f"{path}.")
        else:
            yield path, member


def _is_set(value: Any) -> bool:
    return value not in (None, "", [], {})


def _provider(
    family: ProviderFamily, url: Any, key: str, options: Any, *, is_enabled: bool
) -> ManagedProvider | UnusableEntry:
    name = str(url)
    if not is_enabled:
        return UnusableEntry(name, f"providers of {family.value} are switched off there")
    if not isinstance(url, str) or not isinstance(options, dict):
        return UnusableEntry(name, "its address or its options are of another type")
    try:
        # The lists have null for an option that is not set.
        given = {option: value for option, value in options.items() if value is not None}
        return named(read_provider(family, url, key if family is ProviderFamily.OPENAI else None, given))
    except GatewayError as error:
        return UnusableEntry(name, error.message)
