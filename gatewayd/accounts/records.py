"""What an account is made of."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

PermissionTree = dict[str, dict[str, bool]]
"""Section name -> leaf name -> allowed, for example `{"features": {"api_keys": True}}`."""


class Role(StrEnum):
    """The role of a user (peer-compatible names)."""

    ADMIN = "admin"
    USER = "user"
    PENDING = "pending"


class CredentialKind(StrEnum):
    """How an actor proved who it is."""

    KEY = "key"
    SESSION = "session"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Email:
    """One e-mail address as an identity provider sent it (2.1)."""

    value: str
    type: str = "work"
    primary: bool = False


@dataclass(frozen=True, slots=True)
class ProviderRole:
    """A role of a person at an identity provider, as it was sent; it gives no right here."""

    value: str | None = None
    display: str | None = None
    type: str | None = None
    primary: bool = False


@dataclass(frozen=True, slots=True)
class ProviderIdentity:
    """What an identity provider says about a person, as it was sent.

    Accounts made by hand have none: their `user_name` is None, and `identities.shown` tells it from the
    account. At most one of `emails` is primary. The primary one, else the first, else the user name is,
    normalised, the e-mail address of the account.
    """

    user_name: str | None = None
    display_name: str | None = None
    formatted_name: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    emails: tuple[Email, ...] = ()
    roles: tuple[ProviderRole, ...] = ()


@dataclass(frozen=True, slots=True)
class User:
    """A person or program with an account. Timestamps are epoch seconds.

    `email` is normalised (NFKC, case-folded, stripped) and unique. `active` is False for a deactivated
    account, whose role is kept. Raising `token_version` ends every session. `oauth` and `scim` are keyed by
    provider name (2.3): `{"okta": {"sub": "..."}}` and `{"okta": {"external_id": "..."}}`. `profile` holds
    the display fields that the gateway stores and never interprets. `modified_us` is when the account last
    changed, in microseconds.
    """

    id: str
    email: str
    name: str
    role: Role
    active: bool = True
    username: str | None = None
    profile_image_url: str = "/user.png"
    token_version: int = 0
    profile: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] | None = None
    info: dict[str, Any] | None = None
    oauth: dict[str, Any] | None = None
    scim: dict[str, Any] | None = None
    identity: ProviderIdentity = ProviderIdentity()
    last_active_at: int = 0
    updated_at: int = 0
    created_at: int = 0
    modified_us: int = 0

    @property
    def is_verified(self) -> bool:
        """Whether the account is active and more than pending."""
        return self.active and self.role is not Role.PENDING

    @property
    def shown_role(self) -> Role:
        """The role that clients see: a deactivated account looks like a pending one (peer-compatible)."""
        return self.role if self.active else Role.PENDING


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of users; `permissions` is a partial tree that can only add rights (6.3).

    `scim` is keyed by provider name, as in `User`. `modified_us` is when the group or its members last
    changed, in microseconds.
    """

    id: str
    name: str
    description: str = ""
    user_id: str | None = None
    permissions: PermissionTree = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    scim: dict[str, Any] | None = None
    updated_at: int = 0
    created_at: int = 0
    modified_us: int = 0


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key (2.8). `digest` is the SHA-256 of the whole value; `prefix` is safe to show."""

    id: str
    user_id: str
    name: str
    digest: str
    prefix: str
    expires_at: int | None = None
    last_used_at: int | None = None
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class SessionClaims:
    """What a session token says: the user, its version, an id of its own and its life (epoch seconds)."""

    user_id: str
    token_version: int
    jti: str
    issued_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, with everything that access decisions need; computed once per credential and cached.

    `expires_at` is when the credential itself ends, None for never. `key_id` and `jti` tell which one it was.
    """

    user: User
    kind: CredentialKind
    group_ids: tuple[str, ...]
    permissions: PermissionTree
    key_id: str | None = None
    jti: str | None = None
    expires_at: int | None = None

    @property
    def user_id(self) -> str:
        """The id of the user who asks."""
        return self.user.id

    @property
    def key_expires_at(self) -> int | None:
        """When the API key that asks ends; None for a key without an end, and for another credential."""
        return self.expires_at if self.kind is CredentialKind.KEY else None

    @property
    def is_admin(self) -> bool:
        """Whether the user is an active administrator."""
        return self.user.active and self.user.role is Role.ADMIN

    @property
    def is_verified(self) -> bool:
        """Whether the account is active and more than pending."""
        return self.user.is_verified

    def may(self, section: str, leaf: str) -> bool:
        """Tell whether the effective permissions have the leaf, for example `("features", "api_keys")`."""
        return self.permissions.get(section, {}).get(leaf, False)


class EnsureOutcome(StrEnum):
    """What an `ensure` did."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class NewUser:
    """What a new account starts with; without a password nobody can sign in to it."""

    email: str
    name: str
    role: Role = Role.USER
    password: str | None = None
    username: str | None = None
    profile_image_url: str = "/user.png"
    active: bool = True
    profile: dict[str, Any] = field(default_factory=dict)
    oauth: dict[str, Any] | None = None
    scim: dict[str, Any] | None = None
    identity: ProviderIdentity = ProviderIdentity()


@dataclass(frozen=True, slots=True)
class UserChange:
    """What to change in an account; None leaves a field as it is.

    An empty `username` takes it away. `profile` is merged into what is there, and a None in it takes an entry
    away; `settings` and `info` are merged at their first level; `oauth`, `scim` and `identity` are replaced,
    and `{}` takes the first two away.
    """

    email: str | None = None
    name: str | None = None
    role: Role | None = None
    active: bool | None = None
    password: str | None = None
    username: str | None = None
    profile_image_url: str | None = None
    profile: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None
    info: dict[str, Any] | None = None
    oauth: dict[str, Any] | None = None
    scim: dict[str, Any] | None = None
    identity: ProviderIdentity | None = None


class MembershipSource(StrEnum):
    """Who put a user into a group: an administrator, DEFAULT_GROUP_ID at sign-up, or a provider.

    One user may be in a group by several sources at once.
    """

    MANUAL = "manual"
    DEFAULT = "default"
    SCIM = "scim"
    OAUTH = "oauth"


@dataclass(frozen=True, slots=True)
class NewGroup:
    """What a new group starts with; `user_id` is who made it."""

    name: str
    description: str = ""
    user_id: str | None = None
    permissions: PermissionTree = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    scim: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What to change in a group; None leaves a field as it is, everything else replaces it.

    An empty `scim` takes it away.
    """

    name: str | None = None
    description: str | None = None
    permissions: PermissionTree | None = None
    data: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    scim: dict[str, Any] | None = None
