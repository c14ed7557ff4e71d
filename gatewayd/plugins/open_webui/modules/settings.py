"""`open_webui.env`, `open_webui.config` and `open_webui.models.config`: settings of the gateway."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gatewayd.plugins.open_webui.awaitable_records import AnswerDict
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.placeholders import missing_name_sentence, raise_not_provided

VERSION: Final = "0.9.0"
"""The release that plugins are told: its model methods are awaited, and everything older is there too."""

CLIENT_TIMEOUT: Final = 300
"""Seconds that plugins give HTTP requests of their own, where they ask."""

LOG_SOURCES: Final = (
    "AUDIO", "COMFYUI", "CONFIG", "DB", "IMAGES", "MAIN", "MODELS", "OLLAMA", "OPENAI", "RAG", "WEBHOOK",
    "SOCKET", "OAUTH",
)  # fmt: skip


class LogLevels(dict[str, str]):
    """Levels by the name of a part of the peer; parts that are not known have the level of the others."""

    def __missing__(self, part: str) -> str:
        return level_name()


class PersistentConfig:
    """One setting: `value`, also by `str`. Plugins cannot change it."""

    def __init__(self, env_name: str, value: Any) -> None:
        self.env_name = env_name
        self.config_path = env_name.lower()
        self._value = value

    @property
    def value(self) -> Any:
        """The value of the setting."""
        return self._value

    @value.setter
    def value(self, _value: Any) -> None:
        raise_not_provided(f"changing the setting {self.env_name}")

    def save(self) -> None:
        """Raise NotProvidedError: settings are not for plugins to change."""
        raise_not_provided(f"changing the setting {self.env_name}")

    def __str__(self) -> str:
        return str(self._value)


class ConfigView:
    """`app.state.config`: settings as attributes, asked for at each look."""

    def __init__(self, gate: HostBridge) -> None:
        object.__setattr__(self, "_gate", gate)

    def __getattr__(self, name: str) -> Any:
        """Return the value of a setting; AttributeError when there is none of that name."""
        return read_setting(self.__dict__["_gate"], "app.state.config", name)

    def __setattr__(self, name: str, _value: Any) -> None:
        raise_not_provided(f"changing the setting {name}")


class ConfigTable(HostTable):
    """`Config`: settings by their dotted names in lower case, which are the upper-case names with `_`."""

    @blocking
    async def get(self, key: str, default: Any = None) -> Any:
        """Return a setting, or the default where there is none."""
        return (await self._host.settings.all()).get(_upper(key), default)

    @blocking
    async def get_many(self, *keys: str) -> AnswerDict[str, Any]:
        """Return those settings that there are, by the keys that were given."""
        settings = await self._host.settings.all()
        return AnswerDict((key, settings[_upper(key)]) for key in keys if _upper(key) in settings)

    @blocking
    async def get_all(self) -> AnswerDict[str, Any]:
        """Return every setting that plugins may see, by upper-case name."""
        return AnswerDict(await self._host.settings.all())


def read_setting(gate: HostBridge, owner: str, name: str) -> Any:
    """Return a setting by its upper-case name; AttributeError when there is none."""
    if name.isupper():
        settings = gate.wait(_all, gate)
        if name in settings:
            return settings[name]
    raise AttributeError(missing_name_sentence(f"{owner}.{name}"))


def level_name() -> str:
    """Return the name of the level of the gateway's log."""
    return logging.getLevelName(logging.getLogger("gatewayd").getEffectiveLevel())


async def _all(gate: HostBridge) -> Mapping[str, Any]:
    return await gate.host.settings.all()


def _upper(key: str) -> str:
    return key.replace(".", "_").upper()


def _directory(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def make_env(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.env`; further upper-case names are settings."""
    level = level_name()

    def __getattr__(name: str) -> Any:  # noqa: N807 - the module's own
        return read_setting(gate, "open_webui.env", name)

    return {
        "VERSION": VERSION,
        "SRC_LOG_LEVELS": LogLevels(dict.fromkeys(LOG_SOURCES, level)),
        "GLOBAL_LOG_LEVEL": level,
        "AIOHTTP_CLIENT_TIMEOUT": CLIENT_TIMEOUT,
        "AIOHTTP_CLIENT_SESSION_SSL": True,
        "BYPASS_MODEL_ACCESS_CONTROL": False,
        "DATA_DIR": _directory(gate.host.data_dir),
        "DEVICE_TYPE": "cpu",
        "ENV": "prod",
        "WEBUI_AUTH": True,
        "WEBUI_NAME": "gatewayd",
        "WEBUI_SECRET_KEY": gate.host.secret_key,
        "log": logging.getLogger("gatewayd.plugins.env"),
        "__getattr__": __getattr__,
    }


def make_config(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.config`; further upper-case names are settings with a `value`."""
    directory = gate.host.data_dir

    def __getattr__(name: str) -> Any:  # noqa: N807 - the module's own
        return PersistentConfig(name, read_setting(gate, "open_webui.config", name))

    return {
        "DATA_DIR": _directory(directory),
        "UPLOAD_DIR": _directory(directory / "uploads"),
        "CACHE_DIR": _directory(directory / "cache"),
        "PersistentConfig": PersistentConfig,
        "__getattr__": __getattr__,
    }


def make_config_table(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.config`."""
    return {"Config": ConfigTable(gate, "open_webui.models.config.Config")}
