"""Serializers of accounts and groups for clients and plugins, with the keys of Open WebUI."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import Group, User

PROVISIONING_FIELDS: Final = frozenset({"scim", "modified_us"})
"""Fields of a group that only SCIM uses."""


PROFILE_FIELDS: Final = (
    "profile_banner_image_url",
    "bio",
    "gender",
    "date_of_birth",
    "timezone",
    "presence_state",
    "status_emoji",
    "status_message",
    "status_expires_at",
)
"""Profile fields of an account; absent ones are rendered as None."""


def render_user(user: User) -> dict[str, Any]:
    """Return all fields of an account; a deactivated account has the role pending."""
    return {
        "id": user.id,
        "email": user.email,
        "username": user.username,
        "role": user.shown_role.value,
        "name": user.name,
        "profile_image_url": user.profile_image_url,
        **{name: user.profile.get(name) for name in PROFILE_FIELDS},
        "info": user.info,
        "settings": user.settings,
        "oauth": user.oauth,
        "scim": user.scim,
        "last_active_at": user.last_active_at,
        "updated_at": user.updated_at,
        "created_at": user.created_at,
    }


async def render_groups(groups: Sequence[Group], service: Groups) -> list[dict[str, Any]]:
    """Return groups with their member counts and without the fields of SCIM."""
    counts = await service.count_members(groups)
    rows = [asdict(group) | {"member_count": counts[group.id]} for group in groups]
    return [{name: value for name, value in row.items() if name not in PROVISIONING_FIELDS} for row in rows]
