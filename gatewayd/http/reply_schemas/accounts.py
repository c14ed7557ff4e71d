"""Schemas of accounts, sessions, keys, groups and permissions."""

from typing import Any

from gatewayd.http.schemas import (
    BOOLEAN,
    INTEGER,
    INTEGER_OR_NULL,
    OBJECT,
    OBJECT_OR_NULL,
    SECONDS,
    TEXT,
    TEXT_OR_NULL,
    choice,
    extended,
    listed,
    mapped,
    record,
)


def role() -> dict[str, Any]:
    """Return the schema of a role."""
    return dict(choice("admin", "user", "pending"))


def permissions() -> dict[str, Any]:
    """Return the schema of a permission tree: booleans by section and leaf."""
    return dict(mapped(mapped(BOOLEAN)))


def account() -> dict[str, Any]:
    """Return the schema of the short account of sign-in and profile replies."""
    return record(id=TEXT, email=TEXT, name=TEXT, role=role, profile_image_url=TEXT)


def session() -> dict[str, Any]:
    """Return the schema of a session with its token and account."""
    return extended(
        account,
        token=TEXT,
        token_type={"const": "Bearer"},
        expires_at={"type": ["integer", "null"], "description": "Seconds since the epoch, null for a key."},
        permissions=permissions,
    )


def own_session() -> dict[str, Any]:
    """Return the schema of the caller's session with fields of the profile."""
    return extended(
        session,
        bio=TEXT_OR_NULL,
        gender=TEXT_OR_NULL,
        date_of_birth=TEXT_OR_NULL,
        status_emoji=TEXT_OR_NULL,
        status_message=TEXT_OR_NULL,
        status_expires_at=INTEGER_OR_NULL,
    )


def listed_session() -> dict[str, Any]:
    """Return the schema of a session in a list."""
    return record(
        id=TEXT,
        created_at=SECONDS,
        last_seen_at=SECONDS,
        expires_at=SECONDS,
        user_agent=TEXT,
        address=TEXT,
        method=choice("password", "oauth", "ldap", "header", "invitation", "link", "signup", "admin"),
        provider=TEXT,
        current=BOOLEAN,
    )


def ended_sessions() -> dict[str, Any]:
    """Return the schema of the number of sessions that ended."""
    return record(ended=INTEGER)


def invitation() -> dict[str, Any]:
    """Return the schema of an invitation."""
    return record(
        id=TEXT,
        email=TEXT,
        role=role,
        group_ids=listed(TEXT),
        created_by=TEXT,
        created_at=SECONDS,
        expires_at=SECONDS,
    )


def created_invitation() -> dict[str, Any]:
    """Return the schema of an invitation with its token."""
    return extended(invitation, token=TEXT, url=TEXT)


def shown_invitation() -> dict[str, Any]:
    """Return the schema of an invitation for the person who has its token."""
    return record(email=TEXT, expires_at=SECONDS)


def identity() -> dict[str, Any]:
    """Return the schema of a provider and the link of the account to it."""
    return record(
        provider=TEXT,
        label=TEXT,
        linked=BOOLEAN,
        linked_at=INTEGER_OR_NULL,
        subject_hint=TEXT,
        email=TEXT,
    )


def confirmation() -> dict[str, Any]:
    """Return the schema of the confirmation of a session."""
    return record(is_fresh=BOOLEAN, has_password=BOOLEAN)


def added_account() -> dict[str, Any]:
    """Return the schema of an account that an administrator created, with a token for it."""
    return extended(account, token=TEXT, token_type={"const": "Bearer"})


def user() -> dict[str, Any]:
    """Return the schema of a whole account."""
    return record(
        id=TEXT,
        email=TEXT,
        username=TEXT_OR_NULL,
        role=role,
        name=TEXT,
        profile_image_url=TEXT,
        profile_banner_image_url=TEXT_OR_NULL,
        bio=TEXT_OR_NULL,
        gender=TEXT_OR_NULL,
        date_of_birth=TEXT_OR_NULL,
        timezone=TEXT_OR_NULL,
        presence_state=TEXT_OR_NULL,
        status_emoji=TEXT_OR_NULL,
        status_message=TEXT_OR_NULL,
        status_expires_at=INTEGER_OR_NULL,
        info=OBJECT_OR_NULL,
        settings=OBJECT_OR_NULL,
        oauth=OBJECT_OR_NULL,
        scim=OBJECT_OR_NULL,
        last_active_at=SECONDS,
        updated_at=SECONDS,
        created_at=SECONDS,
        active=BOOLEAN,
    )


def listed_user() -> dict[str, Any]:
    """Return the schema of an account in a list for administrators."""
    return extended(user, group_ids=listed(TEXT))


def users() -> dict[str, Any]:
    """Return the schema of a page of accounts."""
    return record(users=listed(listed_user), total=INTEGER)


def group_name() -> dict[str, Any]:
    """Return the schema of the id and name of a group."""
    return record(id=TEXT, name=TEXT)


def shown_user() -> dict[str, Any]:
    """Return the schema of one account for administrators."""
    return extended(user, groups=listed(group_name), is_active=BOOLEAN)


def user_info() -> dict[str, Any]:
    """Return the schema of the fields of an account that other accounts may see."""
    return record(
        id=TEXT,
        name=TEXT,
        email=TEXT,
        role=role,
        bio=TEXT_OR_NULL,
        groups=listed(group_name),
        is_active=BOOLEAN,
        status_emoji=TEXT_OR_NULL,
        status_message=TEXT_OR_NULL,
        status_expires_at=INTEGER_OR_NULL,
    )


def user_infos() -> dict[str, Any]:
    """Return the schema of a list of such accounts."""
    return record(users=listed(user_info), total=INTEGER)


def activity() -> dict[str, Any]:
    """Return the schema of the activity of an account."""
    return record(active=BOOLEAN)


def group_info() -> dict[str, Any]:
    """Return the schema of a group for its members."""
    return record(
        id=TEXT,
        name=TEXT,
        description=TEXT,
        user_id=TEXT_OR_NULL,
        updated_at=SECONDS,
        created_at=SECONDS,
        member_count=INTEGER,
    )


def group() -> dict[str, Any]:
    """Return the schema of a whole group."""
    return extended(group_info, permissions=permissions, data=OBJECT, meta=OBJECT)


def group_members() -> dict[str, Any]:
    """Return the schema of the members of a group with the sources that added them."""
    member = extended(user_info, active=BOOLEAN, sources=listed(TEXT))
    return record(
        members={"type": "array", "items": member},
        total=INTEGER,
        sources=mapped(INTEGER),
        external_ids=mapped(TEXT),
    )


def setting_origin() -> dict[str, Any]:
    """Return the schema of a runtime setting with its origin."""
    value = {"type": ["boolean", "string"]}
    return record(name=TEXT, value=value, origin=TEXT, configured=value, fixed=BOOLEAN, summary=TEXT)


def exported_group() -> dict[str, Any]:
    """Return the schema of a group with the ids of its members."""
    return extended(group, user_ids=listed(TEXT))


def key() -> dict[str, Any]:
    """Return the schema of an API key without its value."""
    return record(
        id=TEXT,
        name=TEXT,
        prefix=TEXT,
        expires_at=INTEGER_OR_NULL,
        last_used_at=INTEGER_OR_NULL,
        created_at=SECONDS,
    )


def created_key() -> dict[str, Any]:
    """Return the schema of a new API key with its value."""
    return extended(key, api_key=TEXT)


def keys() -> dict[str, Any]:
    """Return the schema of the caller's keys, and of the reasons why they are refused."""
    return record(keys=listed(key), total=INTEGER, missing=listed(TEXT))


def contact() -> dict[str, Any]:
    """Return the schema of the administrator's contact."""
    return record(name=TEXT, email=TEXT)


def settings() -> dict[str, Any]:
    """Return the schema of the runtime settings."""
    return record(
        SHOW_ADMIN_DETAILS=BOOLEAN,
        ADMIN_EMAIL=TEXT_OR_NULL,
        WEBUI_URL=TEXT,
        ENABLE_SIGNUP=BOOLEAN,
        ENABLE_API_KEYS=BOOLEAN,
        ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS=BOOLEAN,
        API_KEYS_ALLOWED_ENDPOINTS=TEXT,
        DEFAULT_USER_ROLE=TEXT,
        DEFAULT_GROUP_ID=TEXT,
        JWT_EXPIRES_IN=TEXT,
        PENDING_USER_OVERLAY_TITLE=TEXT,
        PENDING_USER_OVERLAY_CONTENT=TEXT,
        RESPONSE_WATERMARK=TEXT,
    )
