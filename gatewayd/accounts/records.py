"""Records of users, groups, keys, sessions and actors."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

PermissionTree = dict[str, dict[str, bool]]
"""Section name -> leaf name -> allowed, for example `{"features": {"api_keys": True}}`."""


class Role(StrEnum):
    """The role of a user, with the names of Open WebUI."""

    ADMIN = "admin"
    USER = "user"
    PENDING = "pending"


class CredentialKind(StrEnum):
    """The kind of credential of an actor."""

    KEY = "key"
    SESSION = "session"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Email:
    """One e-mail address as an identity provider sent it (RFC 7643, 4.1.2)."""

    value: str
    type: str = "work"
    primary: bool = False


@dataclass(frozen=True, slots=True)
class ProviderRole:
    """A role of a person at an identity provider, as it was sent; it grants no right in the gateway."""

    value: str | None = None
    display: str | None = None
    type: str | None = None
    primary: bool = False


@dataclass(frozen=True, slots=True)
class ProviderIdentity:
    """Data of an identity provider about a person, as it was sent.

    Accounts that no provider made have none: their `user_name` is None, and `display_identity` derives one
    from the account. At most one of `emails` is primary. The e-mail address of the account is the normalised
    primary address, else the first one, else the user name.
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
    account, which keeps its role. An increment of `token_version` ends every session. `oauth` and `scim` are
    keyed by provider name: `{"okta": {"sub": "..."}}` and `{"okta": {"external_id": "..."}}`. `profile` holds
    display fields that the gateway stores and never interprets. `modified_us` is the time of the last change,
    in microseconds.
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
        """Whether the account is active and not pending."""
        return self.active and self.role is not Role.PENDING

    @property
    def shown_role(self) -> Role:
        """The role that clients see: Open WebUI knows no deactivated accounts, so they appear as pending."""
        return self.role if self.active else Role.PENDING


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of users; `permissions` is a partial tree that can only add rights.

    `scim` is keyed by provider name, as in `User`. `modified_us` is the time of the last change of the group
    or its members, in microseconds.
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
    """An API key. `digest` is the SHA-256 of the whole value; `prefix` is safe to display."""

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
    """Claims of a session token: user, token version, token id, issue and expiry times (epoch seconds)."""

    user_id: str
    token_version: int
    jti: str
    issued_at: int
    expires_at: int


class SignInMethod(StrEnum):
    """How a session began."""

    PASSWORD = "password"  # noqa: S105 - the name of a method
    OAUTH = "oauth"
    LDAP = "ldap"
    HEADER = "header"
    INVITATION = "invitation"
    LINK = "link"
    SIGNUP = "signup"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class SessionOrigin:
    """Origin of a new session.

    `provider` is the name of the identity provider, and `provider_session` its id of the session, the claim
    `sid`. `user_agent` and `address` are those of the client.
    """

    method: SignInMethod
    provider: str = ""
    provider_session: str = ""
    user_agent: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as its owner sees it; `id` is the claim `jti` of its token. Timestamps are epoch seconds.

    `confirmed_at` is the time of the last confirmation by a password, 0 for none.
    """

    id: str
    user_id: str
    token_version: int
    created_at: int
    expires_at: int
    last_seen_at: int
    origin: SessionOrigin
    confirmed_at: int = 0


@dataclass(frozen=True, slots=True)
class Actor:
    """The authenticated caller with all data for access decisions; computed once per credential and cached.

    `expires_at` is the expiry of the credential, None for none. `key_id` or `jti` identifies the credential.
    The members behind `key_prefix` follow from the user; they are read several times for each request.
    """

    user: User
    kind: CredentialKind
    group_ids: tuple[str, ...]
    permissions: PermissionTree
    key_id: str | None = None
    jti: str | None = None
    expires_at: int | None = None
    key_prefix: str = ""
    """The shown beginning of the API key; empty for another credential."""
    user_id: str = field(init=False)
    """The id of the user."""
    is_admin: bool = field(init=False)
    """Whether the user is an active administrator."""
    is_verified: bool = field(init=False)
    """Whether the account is active and not pending."""

    def __post_init__(self) -> None:
        user = self.user
        object.__setattr__(self, "user_id", user.id)
        object.__setattr__(self, "is_admin", user.active and user.role is Role.ADMIN)
        object.__setattr__(self, "is_verified", user.is_verified)

    @property
    def key_expires_at(self) -> int | None:
        """Expiry of the API key; None for a key without expiry and for another credential."""
        return self.expires_at if self.kind is CredentialKind.KEY else None

    def may(self, section: str, leaf: str) -> bool:
        """Tell whether the effective permissions grant a leaf, for example `("features", "api_keys")`."""
        return self.permissions.get(section, {}).get(leaf, False)


class EnsureOutcome(StrEnum):
    """Outcome of an `ensure`."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class NewUser:
    """Data of a new account; an account without a password has no sign-in."""

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
    """Changes of an account; a field of None stays unchanged.

    An empty `username` removes it. `profile` is merged, and a None in it removes an entry; `settings` and
    `info` are merged at their first level; `oauth`, `scim` and `identity` are replaced, and `{}` removes
    `oauth` or `scim`.
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
    """Source of a membership: an administrator, DEFAULT_GROUP_ID at sign-up, or an identity provider.

    A user may be in a group by several sources at once.
    """

    MANUAL = "manual"
    DEFAULT = "default"
    SCIM = "scim"
    OAUTH = "oauth"


@dataclass(frozen=True, slots=True)
class NewGroup:
    """Data of a new group; `user_id` is its creator."""

    name: str
    description: str = ""
    user_id: str | None = None
    permissions: PermissionTree = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    scim: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Changes of a group; a field of None stays unchanged, any other value replaces it.

    An empty `scim` removes it.
    """

    name: str | None = None
    description: str | None = None
    permissions: PermissionTree | None = None
    data: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    scim: dict[str, Any] | None = None
