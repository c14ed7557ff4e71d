"""Default permissions of the role user: one setting for each leaf of the permission tree."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import create_model
from pydantic_settings import BaseSettings

from gatewayd.settings.fields import PERMISSIONS, reload, setting
from gatewayd.settings.types import Switch


class PermissionLeaf(NamedTuple):
    """One permission: its position in the tree, its default, and the suffix of its setting."""

    section: str
    leaf: str
    default: bool
    suffix: str

    @property
    def name(self) -> str:
        """The name of the setting, in lower case."""
        return f"user_permissions_{self.suffix}"


def _workspace() -> list[PermissionLeaf]:
    kinds = ("models", "knowledge", "prompts", "tools", "skills")
    moves = [(kind, move) for kind in kinds if kind != "knowledge" for move in ("import", "export")]
    return [
        *(PermissionLeaf("workspace", kind, False, f"workspace_{kind}_access") for kind in kinds),
        *(
            PermissionLeaf("workspace", f"{kind}_{move}", False, f"workspace_{kind}_{move}")
            for kind, move in moves
        ),
        *(PermissionLeaf("sharing", kind, False, f"workspace_{kind}_allow_sharing") for kind in kinds),
        *(
            PermissionLeaf("sharing", f"public_{kind}", False, f"workspace_{kind}_allow_public_sharing")
            for kind in kinds
        ),
    ]


def _named(section: str, *names: str, default: bool) -> list[PermissionLeaf]:
    return [PermissionLeaf(section, name, default, f"{section}_{name}") for name in names]


PERMISSION_LEAVES: Final = (
    *_workspace(),
    PermissionLeaf("sharing", "notes", False, "notes_allow_sharing"),
    PermissionLeaf("sharing", "public_notes", False, "notes_allow_public_sharing"),
    PermissionLeaf("sharing", "folders", False, "folders_allow_sharing"),
    PermissionLeaf("sharing", "public_chats", False, "chat_allow_public_sharing"),
    PermissionLeaf("sharing", "open_chats", False, "chat_allow_open_sharing"),
    PermissionLeaf("sharing", "public_calendars", False, "calendar_allow_public_sharing"),
    *_named("access_grants", "allow_users", "allow_groups", default=True),
    *_named("chat", "controls", "valves", "system_prompt", "params", default=True),
    *_named("chat", "file_upload", "web_upload", "delete", "delete_message", default=True),
    *_named("chat", "continue_response", "regenerate_response", "rate_response", "edit", default=True),
    *_named("chat", "share", "export", "import", "stt", "tts", "call", default=True),
    *_named("chat", "multiple_models", "temporary", default=True),
    *_named("chat", "temporary_enforced", default=False),
    *_named("features", "api_keys", default=False),
    *_named("features", "notes", "folders", "channels", default=True),
    *_named("features", "direct_tool_servers", default=False),
    *_named("features", "web_search", "image_generation", "code_interpreter", "memories", default=True),
    *_named("features", "automations", default=False),
    *_named("features", "calendar", default=True),
    PermissionLeaf("features", "webhooks", False, "features_user_webhooks"),
    *_named("settings", "interface", default=True),
)

CHECKED_PERMISSIONS: Final = frozenset(
    {
        *(("workspace", leaf) for leaf in ("knowledge", "tools", "tools_import", "tools_export")),
        *(("sharing", leaf) for leaf in ("public_knowledge", "public_tools")),
        *(("access_grants", leaf) for leaf in ("allow_users", "allow_groups")),
        *(("chat", leaf) for leaf in ("file_upload", "delete", "delete_message", "edit")),
        *(("chat", leaf) for leaf in ("share", "export", "import", "stt", "tts")),
        ("features", "api_keys"),
        ("features", "folders"),
        ("features", "image_generation"),
        ("settings", "interface"),
    }
)
"""Section and name of the permissions that the gateway enforces; it only reports the others to clients."""


def _description(leaf: PermissionLeaf) -> str:
    what = f"Whether accounts with role user have the permission {leaf.section}.{leaf.leaf} by default"
    return (
        f"{what}."
        if (leaf.section, leaf.leaf) in CHECKED_PERMISSIONS
        else f"{what}; the gateway reports it to clients and does not enforce it."
    )


def _fields() -> dict[str, Any]:
    return {
        leaf.name: (
            Switch,
            setting(reload(PERMISSIONS), leaf.default, _description(leaf)),
        )
        for leaf in PERMISSION_LEAVES
    }


if TYPE_CHECKING:
    PermissionFields = BaseSettings
else:
    PermissionFields = create_model("PermissionFields", __base__=BaseSettings, **_fields())
