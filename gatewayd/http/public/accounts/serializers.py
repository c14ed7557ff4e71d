"""Serializers of accounts, groups and keys in the format of Open WebUI."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.accounts.records import ApiKey, Group, User
from gatewayd.accounts.serializers import render_user
from gatewayd.errors import invalid

PAGE_SIZE: Final = 30
MAX_PAGE_NUMBER: Final = 1_000_000
# Seconds that an account counts as active after its last request.
ACTIVE_SECONDS: Final = 180
USERS_QUERY: Final = {
    "query": "Part of the name or the e-mail address.",
    "order_by": "Member to sort by, created_at by default.",
    "direction": "asc (the default) or desc.",
    "page": "Number of the page, from 1; a page has 30 accounts.",
}


def render_whole_user(user: User) -> dict[str, Any]:
    """Return a whole account. A deactivated account has `active` false and the role pending."""
    return {**render_user(user), "active": user.active}


def render_user_info(user: User, now: int, groups: Sequence[Group] = ()) -> dict[str, Any]:
    """Return the fields of an account that other accounts may see."""
    return {
        "id": user.id,
        "name": user.name,
        "email": user.email,
        "role": user.shown_role.value,
        "bio": user.profile.get("bio"),
        "groups": [render_group_name(group) for group in groups],
        "is_active": is_active(user, now),
        "status_emoji": user.profile.get("status_emoji"),
        "status_message": user.profile.get("status_message"),
        "status_expires_at": user.profile.get("status_expires_at"),
    }


def render_account(user: User) -> dict[str, Any]:
    """Return the short account of sign-in and profile replies."""
    return {
        "id": user.id,
        "email": user.email,
        "name": user.name,
        "role": user.shown_role.value,
        "profile_image_url": user.profile_image_url,
    }


def render_group_name(group: Group) -> dict[str, Any]:
    """Return id and name of a group, as in account pages."""
    return {"id": group.id, "name": group.name}


def render_key(key: ApiKey) -> dict[str, Any]:
    """Return a key without its value and digest."""
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "expires_at": key.expires_at,
        "last_used_at": key.last_used_at,
        "created_at": key.created_at,
    }


def is_active(user: User, now: int) -> bool:
    """Return whether the account sent a request within the last three minutes."""
    # A future time was recorded before the clock was set back.
    return user.active and abs(now - user.last_active_at) < ACTIVE_SECONDS


def parse_user_listing(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `Users.list` from the query parameters of a list route.

    They are `query`, `order_by`, `direction` (asc, desc) and `page` (from 1, of 30 accounts). Raises
    invalid_request for a bad value.
    """
    direction = query.get("direction", "asc")
    if direction not in {"asc", "desc"}:
        raise invalid("cannot accept direction: expected asc or desc", param="direction")
    page = query.get("page", "1")
    if not (page.isascii() and page.isdigit() and 1 <= int(page[:9]) <= MAX_PAGE_NUMBER and len(page) < 9):
        raise invalid(f"cannot accept page: expected a number from 1 to {MAX_PAGE_NUMBER}", param="page")
    return {
        "query": query.get("query", ""),
        "order_by": query.get("order_by", "created_at"),
        "descending": direction == "desc",
        "offset": (int(page) - 1) * PAGE_SIZE,
        "limit": PAGE_SIZE,
    }
