"""Which modules and names of `open_webui` there are: the table that the finder and the documentation read."""

from dataclasses import dataclass
from typing import Final

PACKAGE: Final = "open_webui"


@dataclass(frozen=True, slots=True)
class Module:
    """One module: `home` is where its names are made (`module:function`), `names` are all of them.

    `settings` says that further upper-case names are settings of the gateway. `note` is for the
    documentation.
    """

    name: str
    home: str
    names: tuple[str, ...]
    settings: bool = False
    note: str = ""


def _module(name: str, home: str, names: str, *, settings: bool = False, note: str = "") -> Module:
    return Module(f"{PACKAGE}.{name}", f"gatewayd.plugins.names.{home}", tuple(names.split()), settings, note)


MODULES: Final[tuple[Module, ...]] = (
    _module("models.users", "users:make_users", "Users UserModel User UserResponse UserSettings UsersTable"),
    _module(
        "models.files", "files:make_files", "Files FileForm FileModel FileModelResponse FileMetadataResponse"
    ),
    _module(
        "models.chats",
        "chats:make_chats",
        "Chats ChatModel Chat ChatResponse ChatForm ChatTitleIdResponse",
    ),
    _module("models.models", "models:make_models", "Models ModelModel Model ModelParams ModelMeta ModelForm"),
    _module(
        "utils.chat",
        "completions:make_chat",
        "generate_chat_completion generate_chat_completions chat_completion",
    ),
    _module("storage.provider", "storage:make_storage", "Storage"),
    _module("constants", "constants:make_constants", "TASKS ERROR_MESSAGES"),
    _module(
        "env",
        "settings:make_env",
        "VERSION SRC_LOG_LEVELS GLOBAL_LOG_LEVEL AIOHTTP_CLIENT_TIMEOUT AIOHTTP_CLIENT_SESSION_SSL "
        "BYPASS_MODEL_ACCESS_CONTROL DATA_DIR DEVICE_TYPE ENV WEBUI_AUTH WEBUI_NAME WEBUI_SECRET_KEY log",
        settings=True,
        note="WEBUI_SECRET_KEY is derived from the secret of the gateway.",
    ),
    _module(
        "config",
        "settings:make_config",
        "DATA_DIR UPLOAD_DIR CACHE_DIR PersistentConfig",
        settings=True,
        note="The directories are those of plugins.",
    ),
    _module(
        "main",
        "app:make_main",
        "app generate_chat_completion generate_chat_completions chat_completion",
    ),
    _module("models.groups", "users:make_groups", "Groups GroupModel GroupResponse"),
    _module("models.config", "settings:make_config_table", "Config"),
    _module("routers.models", "models:make_model_routes", "get_models get_model_by_id"),
)

BY_NAME: Final = {module.name: module for module in MODULES}

PACKAGES: Final = frozenset(
    module.name[:end] for module in MODULES for end in range(len(module.name)) if module.name[end] == "."
)
"""The packages above the modules, which have no names of their own."""

OLD_PREFIX: Final = f"{PACKAGE}.apps.webui."
"""What stood before `models` and `routers` in old releases."""


def current_name(name: str) -> str:
    """Return the name of today for a module that an old release had below `apps.webui`."""
    return f"{PACKAGE}.{name[len(OLD_PREFIX) :]}" if name.startswith(OLD_PREFIX) else name


def is_package(name: str) -> bool:
    """Tell whether a full name is a package."""
    return name in PACKAGES or name in (OLD_PREFIX[:-1], f"{PACKAGE}.apps")
