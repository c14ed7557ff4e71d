"""Implementation of `open_webui.env`, `open_webui.config` and `open_webui.models.config`: settings."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gatewayd.plugins.open_webui.awaitable_records import AnswerDict
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.placeholders import missing_name_sentence, raise_not_provided

VERSION: Final = "0.9.0"
"""Release of Open WebUI that plugins see: one whose table methods are awaited."""

CLIENT_TIMEOUT: Final = 300
"""Value of AIOHTTP_CLIENT_TIMEOUT in seconds, for HTTP requests of plugins."""

LOG_SOURCES: Final = (
    "AUDIO", "COMFYUI", "CONFIG", "DB", "IMAGES", "MAIN", "MODELS", "OLLAMA", "OPENAI", "RAG", "WEBHOOK",
    "SOCKET", "OAUTH",
)  # fmt: skip


class LogLevels(dict[str, str]):
    """Log levels by part of Open WebUI; unknown parts have the level of the gateway."""

    def __missing__(self, part: str) -> str:
        return level_name()


class PersistentConfig:
    """A setting with its `value`, which plugins cannot change."""

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
        """Raise NotProvidedError: plugins cannot change settings."""
        raise_not_provided(f"changing the setting {self.env_name}")

    def __str__(self) -> str:
        return str(self._value)


class ConfigView:
    """`app.state.config`: settings as attributes, read on each access."""

    def __init__(self, bridge: HostBridge) -> None:
        object.__setattr__(self, "_bridge", bridge)

    def __getattr__(self, name: str) -> Any:
        """Return the value of a setting; AttributeError when it does not exist."""
        return read_setting(self.__dict__["_bridge"], "app.state.config", name)

    def __setattr__(self, name: str, _value: Any) -> None:
        raise_not_provided(f"changing the setting {name}")


class ConfigTable(HostTable):
    """`Config`: settings by dotted lower-case name, such as `a.b` for `A_B`."""

    @blocking
    async def get(self, key: str, default: Any = None) -> Any:
        """Return a setting; `default` when it does not exist."""
        return (await self._host.settings.all()).get(_upper(key), default)

    @blocking
    async def get_many(self, *keys: str) -> AnswerDict[str, Any]:
        """Return the existing settings among the keys, by key."""
        settings = await self._host.settings.all()
        return AnswerDict((key, settings[_upper(key)]) for key in keys if _upper(key) in settings)

    @blocking
    async def get_all(self) -> AnswerDict[str, Any]:
        """Return every setting that is not a secret, by upper-case name."""
        return AnswerDict(await self._host.settings.all())


def read_setting(bridge: HostBridge, owner: str, name: str) -> Any:
    """Return a setting by its upper-case name; AttributeError when it does not exist."""
    if name.isupper():
        settings = bridge.wait(_all, bridge)
        if name in settings:
            return settings[name]
    raise AttributeError(missing_name_sentence(f"{owner}.{name}"))


def level_name() -> str:
    """Return the name of the log level of the gateway."""
    return logging.getLevelName(logging.getLogger("gatewayd").getEffectiveLevel())


async def _all(bridge: HostBridge) -> Mapping[str, Any]:
    return await bridge.host.settings.all()


def _upper(key: str) -> str:
    return key.replace(".", "_").upper()


def _directory(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def make_env(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.env`; other upper-case names are settings."""
    level = level_name()

    def __getattr__(name: str) -> Any:  # noqa: N807 - the module's own
        return read_setting(bridge, "open_webui.env", name)

    return {
        "VERSION": VERSION,
        "SRC_LOG_LEVELS": LogLevels(dict.fromkeys(LOG_SOURCES, level)),
        "GLOBAL_LOG_LEVEL": level,
        "AIOHTTP_CLIENT_TIMEOUT": CLIENT_TIMEOUT,
        "AIOHTTP_CLIENT_SESSION_SSL": True,
        "BYPASS_MODEL_ACCESS_CONTROL": False,
        "DATA_DIR": _directory(bridge.host.data_dir),
        "DEVICE_TYPE": "cpu",
        "ENV": "prod",
        "WEBUI_AUTH": True,
        "WEBUI_NAME": "gatewayd",
        "WEBUI_SECRET_KEY": bridge.host.secret_key,
        "log": logging.getLogger("gatewayd.plugins.env"),
        "__getattr__": __getattr__,
    }


def make_config(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.config`; other upper-case names are PersistentConfig settings."""
    directory = bridge.host.data_dir

    def __getattr__(name: str) -> Any:  # noqa: N807 - the module's own
        return PersistentConfig(name, read_setting(bridge, "open_webui.config", name))

    return {
        "DATA_DIR": _directory(directory),
        "UPLOAD_DIR": _directory(directory / "uploads"),
        "CACHE_DIR": _directory(directory / "cache"),
        "PersistentConfig": PersistentConfig,
        "__getattr__": __getattr__,
    }


def make_config_table(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.config`."""
    return {"Config": ConfigTable(bridge, "open_webui.models.config.Config")}
