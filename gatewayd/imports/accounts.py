"""Users with their passwords and keys, and groups."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.keys import SHOWN_PREFIX_CHARACTERS
from gatewayd.accounts.passwords import is_known_hash
from gatewayd.accounts.permissions import known_leaves
from gatewayd.accounts.records import ApiKey, Group, PermissionTree, Role, User
from gatewayd.accounts.serializers import PROFILE_FIELDS
from gatewayd.accounts.texts import (
    MAX_NAME,
    clean,
    clean_object,
    clean_person,
    clean_picture,
    is_plain,
    normalise_email,
    strip_direction_marks,
)
from gatewayd.errors import GatewayError, invalid
from gatewayd.imports.rows import ForeignRow, try_read
from gatewayd.plugins.records import PluginFamily

MAX_ID_CHARACTERS: Final = 64
MAX_KEY_CHARACTERS: Final = 4096
MAX_DESCRIPTION_CHARACTERS: Final = 10_000
KEY_NAME: Final = "Open WebUI"
DEFAULT_PICTURE: Final = "/user.png"
OWN_PICTURE: Final = re.compile(r"/api/v1/users/[^/]+/profile/image")
"""The address of a picture that Open WebUI serves itself."""

FAMILIES: Final = {"functions": PluginFamily.FUNCTION, "tools": PluginFamily.TOOL}


@dataclass(frozen=True, slots=True)
class ForeignValves:
    """What a user set in a plugin: an object, or a text if Open WebUI encrypted it."""

    family: PluginFamily
    plugin_id: str
    values: Any


@dataclass(frozen=True, slots=True)
class ForeignUser:
    """A user, with what differs from the account there."""

    user: User
    password_hash: str | None
    valves: tuple[ForeignValves, ...]
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignGroup:
    """A group and the ids there of its members, which older versions keep in the row of the group."""

    group: Group
    member_ids: tuple[str, ...]
    changes: tuple[str, ...]


def check_id(value: str) -> str:
    """Return an id of a record that its record here can have, too; raise invalid_request."""
    if not value or len(value) > MAX_ID_CHARACTERS or not is_plain(value):
        raise invalid(f"cannot use its id: expected 1 to {MAX_ID_CHARACTERS} plain characters", param="id")
    return value


def read_user(row: ForeignRow, auth: ForeignRow | None, now: int) -> ForeignUser:
    """Return an account; raise invalid_request without a usable id or e-mail address.

    Its identities, settings and info are left out if they cannot be used.
    """
    changes: list[str] = []
    email = normalise_email(row.text("email"))
    settings = row.optional("settings", changes)
    valves = _take_valves(settings)
    created_at = row.moment("created_at", now)
    updated_at = row.moment("updated_at", created_at)
    user = User(
        id=check_id(row.text("id")),
        email=email,
        name=_name(row.text("name"), email, changes),
        role=_role(row.text("role"), changes),
        active=auth is None or auth.flag("active", default=True),
        username=_username(row.text("username"), changes),
        profile_image_url=_picture(row.text("profile_image_url"), changes),
        profile={name: row.text(name) for name in PROFILE_FIELDS if row.text(name)},
        settings=_object(settings, "settings", changes),
        info=_object(row.optional("info", changes), "info", changes),
        oauth=_identities(row.optional("oauth", changes), "sub") or _legacy_subject(row.text("oauth_sub")),
        scim=_identities(row.optional("scim", changes), "external_id"),
        last_active_at=row.moment("last_active_at", created_at),
        updated_at=updated_at,
        created_at=created_at,
        modified_us=updated_at * 1_000_000,
    )
    return ForeignUser(user, _password_hash(auth, changes), valves, tuple(changes))


def read_keys(row: ForeignRow, rows: Sequence[ForeignRow], user_id: str, now: int) -> Sequence[ApiKey]:
    """Return the API keys of a user: rows of their table, or the column of older versions."""
    found = []
    for each in rows:
        value = each.text("key")
        if 0 < len(value) <= MAX_KEY_CHARACTERS:
            expires_at = each.moment("expires_at") or None
            last_used_at = each.moment("last_used_at") or None
            made_at = each.moment("created_at", now)
            found.append(_key(value, user_id, made_at, expires_at=expires_at, last_used_at=last_used_at))
    value = row.text("api_key")
    if 0 < len(value) <= MAX_KEY_CHARACTERS:
        found.append(_key(value, user_id, row.moment("updated_at", now)))
    return list({each.digest: each for each in found}.values())


def read_group(row: ForeignRow, now: int) -> ForeignGroup:
    """Return a group; raise invalid_request without a usable id or name.

    Permissions that this gateway has not, or that grant nothing, are left out.
    """
    changes: list[str] = []
    if row.text("parent_group_id"):
        changes.append("it is below another group there, and groups here have no parents")
    created_at = row.moment("created_at", now)
    group = Group(
        id=check_id(row.text("id")),
        name=clean(row.text("name"), "name", longest=MAX_NAME),
        description=row.text("description")[:MAX_DESCRIPTION_CHARACTERS],
        permissions=_permissions(row.optional("permissions", changes), changes),
        data=_object(row.optional("data", changes), "data", changes) or {},
        meta=_object(row.optional("meta", changes), "meta", changes) or {},
        updated_at=row.moment("updated_at", created_at),
        created_at=created_at,
        modified_us=row.moment("updated_at", created_at) * 1_000_000,
    )
    members = try_read(lambda: row.json("user_ids"), changes, None)
    known = [each for each in members if isinstance(each, str)] if isinstance(members, list) else []
    return ForeignGroup(group, tuple(dict.fromkeys(known)), tuple(changes))


def _key(
    value: str,
    user_id: str,
    created_at: int,
    *,
    expires_at: int | None = None,
    last_used_at: int | None = None,
) -> ApiKey:
    return ApiKey(
        id=ids.new_id(),
        user_id=user_id,
        name=KEY_NAME,
        digest=ids.digest(value),
        prefix=value[: min(SHOWN_PREFIX_CHARACTERS, len(value) // 4)],
        expires_at=expires_at,
        last_used_at=last_used_at,
        created_at=created_at,
    )


def _name(text: str, email: str, changes: list[str]) -> str:
    try:
        return clean_person(strip_direction_marks(text)[:MAX_NAME])
    except GatewayError as error:
        changes.append(f"{error.message}; the name is that of its address")
        return email.partition("@")[0][:MAX_NAME]


def _username(text: str, changes: list[str]) -> str | None:
    name: str | None = try_read(lambda: clean(text, "username"), changes, None) if text.strip() else None
    return name


def _role(text: str, changes: list[str]) -> Role:
    if text in set(Role):
        return Role(text)
    changes.append(f"its role {text[:MAX_ID_CHARACTERS]!r} is unknown, it is pending")
    return Role.PENDING


def _picture(text: str, changes: list[str]) -> str:
    if not text or OWN_PICTURE.fullmatch(text):
        return DEFAULT_PICTURE
    picture: str = try_read(lambda: clean_picture(text), changes, DEFAULT_PICTURE)
    return picture


def _object(value: dict[str, Any], name: str, changes: list[str]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = try_read(lambda: clean_object(value, name), changes, None)
    return found or None


def _identities(value: Mapping[str, Any], member: str) -> dict[str, Any] | None:
    """Return the providers of a user whose entry has a text for a member."""
    return {
        provider: entry
        for provider, entry in value.items()
        if isinstance(entry, dict) and isinstance(entry.get(member), str) and entry[member]
    } or None


def _legacy_subject(text: str) -> dict[str, Any] | None:
    provider, sign, subject = text.partition("@")
    return {provider: {"sub": subject}} if provider and sign and subject else None


def _password_hash(auth: ForeignRow | None, changes: list[str]) -> str | None:
    if auth is None or not auth.text("password"):
        changes.append("it has no password")
        return None
    if auth.text("mfa") not in {"", "null", "{}"}:
        changes.append("its second factor is not taken over: the password alone signs in")
    if not is_known_hash(auth.text("password")):
        changes.append("the hash of its password is unknown: it has no password")
        return None
    return auth.text("password")


def _permissions(tree: Mapping[str, Any], changes: list[str]) -> PermissionTree:
    found: PermissionTree = try_read(lambda: known_leaves(tree), changes, {})
    granted = {
        section: {leaf: True for leaf, value in leaves.items() if value} for section, leaves in found.items()
    }
    return {section: leaves for section, leaves in granted.items() if leaves}


def _take_valves(settings: dict[str, Any]) -> tuple[ForeignValves, ...]:
    """Take the valves of plugins out of the settings of a user."""
    found = []
    for name, family in FAMILIES.items():
        section = settings.pop(name, None)
        valves = section.get("valves") if isinstance(section, dict) else None
        for plugin_id, values in (valves if isinstance(valves, dict) else {}).items():
            found.append(ForeignValves(family, plugin_id, values))
    return tuple(found)
