"""Declaration of a setting: its category, default, description, aliases, and whether a reload applies it."""

from typing import Any, Final, NamedTuple

from pydantic import Field

SERVER: Final = "Server"
STORAGE: Final = "Storage"
CLUSTER: Final = "Cluster"
ACCOUNTS: Final = "Accounts"
SIGN_IN_PROVIDERS: Final = "Sign-in by providers"
KEYS: Final = "API keys"
PERMISSIONS: Final = "Default permissions"
PROVISIONING: Final = "Provisioning"
ACCESS: Final = "Model access"
PROVIDERS: Final = "Model providers"
BUILT_IN_MODEL: Final = "Built-in model"
DOCUMENTS: Final = "Documents"
EMBEDDING: Final = "Embedding"
RETRIEVAL: Final = "Retrieval"
PLUGINS: Final = "Plugins"
TOOL_SERVERS: Final = "Tool servers"
EVENTS: Final = "Events"
CHATS: Final = "Chats"
PAGE: Final = "Page"
LIMITS: Final = "Limits and time-outs"
RETENTION: Final = "Retention"
MONITORING: Final = "Monitoring"
LOGGING: Final = "Logging"

CATEGORIES: Final = (
    SERVER,
    STORAGE,
    CLUSTER,
    ACCOUNTS,
    SIGN_IN_PROVIDERS,
    KEYS,
    PERMISSIONS,
    PROVISIONING,
    ACCESS,
    PROVIDERS,
    BUILT_IN_MODEL,
    DOCUMENTS,
    EMBEDDING,
    RETRIEVAL,
    PLUGINS,
    TOOL_SERVERS,
    EVENTS,
    CHATS,
    PAGE,
    LIMITS,
    RETENTION,
    MONITORING,
    LOGGING,
)
"""The order of the sample file and the manual page."""


class SettingPlace(NamedTuple):
    """Category of a setting, and whether a reload applies a changed value."""

    category: str
    reloadable: bool


def restart(category: str) -> SettingPlace:
    """Return the place of a setting that is read once, at start."""
    return SettingPlace(category, reloadable=False)


def reload(category: str) -> SettingPlace:
    """Return the place of a setting that a reload applies."""
    return SettingPlace(category, reloadable=True)


def setting(place: SettingPlace, default: Any, description: str, *aliases: str, **bounds: Any) -> Any:
    """Declare a setting.

    `description` is one sentence. `aliases` are further lower-case names, read if the setting's own name is
    absent. `bounds` are pydantic's (`ge`, `gt`, `le`, `min_length`, `max_length`).
    """
    extra: dict[str, Any] = {
        "category": place.category,
        "reloadable": place.reloadable,
        "aliases": list(aliases),
    }
    return Field(default, description=description, json_schema_extra=extra, validate_default=True, **bounds)
