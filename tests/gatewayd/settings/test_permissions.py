import re
from pathlib import Path

import pytest

import gatewayd
from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS
from gatewayd.settings import Settings, definitions
from gatewayd.settings.permissions import CHECKED_PERMISSIONS, PERMISSION_LEAVES


def test_the_defaults_are_the_built_in_tree_of_the_accounts() -> None:
    tree: dict[str, dict[str, bool]] = {}
    for leaf in PERMISSION_LEAVES:
        tree.setdefault(leaf.section, {})[leaf.leaf] = getattr(Settings(), leaf.name)
    assert tree == BUILTIN_PERMISSIONS


@pytest.mark.parametrize(
    ("leaf", "variable"),
    [
        ("workspace.models", "USER_PERMISSIONS_WORKSPACE_MODELS_ACCESS"),
        ("workspace.skills_export", "USER_PERMISSIONS_WORKSPACE_SKILLS_EXPORT"),
        ("workspace.tools_import", "USER_PERMISSIONS_WORKSPACE_TOOLS_IMPORT"),
        ("sharing.knowledge", "USER_PERMISSIONS_WORKSPACE_KNOWLEDGE_ALLOW_SHARING"),
        ("sharing.public_prompts", "USER_PERMISSIONS_WORKSPACE_PROMPTS_ALLOW_PUBLIC_SHARING"),
        ("sharing.notes", "USER_PERMISSIONS_NOTES_ALLOW_SHARING"),
        ("sharing.public_notes", "USER_PERMISSIONS_NOTES_ALLOW_PUBLIC_SHARING"),
        ("sharing.folders", "USER_PERMISSIONS_FOLDERS_ALLOW_SHARING"),
        ("sharing.public_chats", "USER_PERMISSIONS_CHAT_ALLOW_PUBLIC_SHARING"),
        ("sharing.open_chats", "USER_PERMISSIONS_CHAT_ALLOW_OPEN_SHARING"),
        ("sharing.public_calendars", "USER_PERMISSIONS_CALENDAR_ALLOW_PUBLIC_SHARING"),
        ("access_grants.allow_users", "USER_PERMISSIONS_ACCESS_GRANTS_ALLOW_USERS"),
        ("chat.temporary_enforced", "USER_PERMISSIONS_CHAT_TEMPORARY_ENFORCED"),
        ("features.api_keys", "USER_PERMISSIONS_FEATURES_API_KEYS"),
        ("features.webhooks", "USER_PERMISSIONS_FEATURES_USER_WEBHOOKS"),
        ("settings.interface", "USER_PERMISSIONS_SETTINGS_INTERFACE"),
    ],
)
def test_environment_names(leaf: str, variable: str) -> None:
    [name] = [each.name for each in PERMISSION_LEAVES if f"{each.section}.{each.leaf}" == leaf]
    assert variable in definitions()[name].variables


# How the code asks for a permission: by section and name, by the name alone, or as an option.
CHECKS = (
    (r'(?:require|may)\((?:[\w()]+, )?"(\w+)", "(\w+)"\)', None),
    (r'permission=\("(\w+)", "(\w+)"\)', None),
    (r'get\("(\w+)", \{\}\)\.get\("(\w+)"', None),
    (r'require_chat\(\w+, "(\w+)"\)', "chat"),
    (r'= ?"(public_\w+)"', "sharing"),
)


def test_the_pages_say_which_permissions_are_checked() -> None:
    source = "\n".join(path.read_text() for path in Path(gatewayd.__file__).parent.rglob("*.py"))
    checked = {
        (found[1], found[2]) if section is None else (section, found[1])
        for pattern, section in CHECKS
        for found in re.finditer(pattern, source)
    }
    known = {(leaf.section, leaf.leaf) for leaf in PERMISSION_LEAVES}
    assert checked & known == CHECKED_PERMISSIONS
    for leaf in PERMISSION_LEAVES:
        is_told = "does not enforce it" in definitions()[leaf.name].description
        assert is_told is ((leaf.section, leaf.leaf) not in CHECKED_PERMISSIONS), leaf
