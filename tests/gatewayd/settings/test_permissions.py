import pytest

from gatewayd.accounts.permissions import BUILTIN
from gatewayd.settings import Settings, definitions
from gatewayd.settings.permissions import LEAVES


def test_the_defaults_are_the_built_in_tree_of_the_accounts() -> None:
    tree: dict[str, dict[str, bool]] = {}
    for leaf in LEAVES:
        tree.setdefault(leaf.section, {})[leaf.leaf] = getattr(Settings(), leaf.name)
    assert tree == BUILTIN


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
    [name] = [each.name for each in LEAVES if f"{each.section}.{each.leaf}" == leaf]
    assert variable in definitions()[name].variables
