"""Records of external identities, of the rules for them, and of their links to accounts."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gatewayd.accounts.records import User

MAX_SUBJECT_CHARACTERS: Final = 384
MAX_ISSUER_CHARACTERS: Final = 256
MAX_PROVIDER_CHARACTERS: Final = 128
MAX_GROUPS_PER_PERSON: Final = 2000
MAX_ROLES_PER_PERSON: Final = 200

EVERYBODY: Final = "*"
"""An element of a list of rules that stands for every value."""


class RefusalCode(StrEnum):
    """Why a sign-in was refused; the only part of a refusal that a browser sees."""

    # The state is missing, too old, used, or of another browser or provider.
    STATE = "state"
    # The answer of the provider, its token or a claim is not valid.
    PROVIDER = "provider"
    # There is no account, and the provider may not create one.
    NO_ACCOUNT = "no_account"
    # The e-mail address belongs to an account that the identity may not join.
    EMAIL_TAKEN = "email_taken"
    # The provider does not confirm the e-mail address.
    EMAIL_UNVERIFIED = "email_unverified"
    # The domain of the e-mail address is not allowed.
    DOMAIN = "domain"
    # The claim of roles is missing, or has no role that is allowed.
    ROLE_MISSING = "role_missing"
    # The account waits for an administrator.
    PENDING = "pending"
    # The account is deactivated.
    DEACTIVATED = "deactivated"
    # The gateway has no administrator yet.
    SIGNUP_CLOSED = "signup_closed"
    # The provider cannot be reached.
    UNREACHABLE = "unreachable"
    # The gateway cannot look accounts up, as its database is away.
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class ExternalIdentity:
    """A person as a provider, a directory or a proxy has authenticated them.

    `issuer` and `subject` identify the person. `provisioning_id` is the id that the same provider sends by
    SCIM, "" when it is the subject. `picture_url` is never fetched. None in `roles` or `groups` means that
    nothing is known about them, which differs from an empty tuple.
    """

    provider: str
    issuer: str
    subject: str
    provisioning_id: str = ""
    email: str = ""
    email_verified: bool = False
    name: str = ""
    picture_url: str = ""
    roles: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The ids that SCIM may know the person by: the provisioning id, then the subject."""
        return tuple(dict.fromkeys(name for name in (self.provisioning_id, self.subject) if name))


@dataclass(frozen=True, slots=True)
class RoleRules:
    """How the roles of a provider become the role of an account; only if `is_managed`.

    A person with a role of `admins` is an administrator, one with a role of `allowed` a user; others are
    refused. An administrator without a role of `admins` stays one unless `may_lower_admins`.
    """

    is_managed: bool = False
    allowed: tuple[str, ...] = ("user", "admin")
    admins: tuple[str, ...] = ("admin",)
    may_lower_admins: bool = False


@dataclass(frozen=True, slots=True)
class GroupRules:
    """How the groups of a provider become memberships with the source oauth; only if `is_managed`.

    Groups whose name or external id is in `unmanaged` get no member and lose none. With `may_create`, an
    unknown name becomes a group with the sharing `share`.
    """

    is_managed: bool = False
    may_create: bool = False
    unmanaged: tuple[str, ...] = ()
    share: str | bool = True


@dataclass(frozen=True, slots=True)
class IdentityRules:
    """What a provider may do with accounts.

    `sign_up` creates accounts. `merge_by_email` joins an identity with a verified address to the account of
    that address, unless it is an administrator. `allowed_domains` are exact domains of addresses.
    `trust_email` takes an unconfirmed address for a new account and for `allowed_domains`, never to join an
    account. `joins_admins` lets `merge_by_email` join administrators too: only for a way in whose subject is
    the address. `without_email` creates accounts without an address.
    """

    sign_up: bool = False
    merge_by_email: bool = False
    joins_admins: bool = False
    allowed_domains: tuple[str, ...] = (EVERYBODY,)
    trust_email: bool = False
    without_email: bool = False
    roles: RoleRules = field(default_factory=RoleRules)
    groups: GroupRules = field(default_factory=GroupRules)


@dataclass(frozen=True, slots=True)
class LinkedIdentity:
    """A link of an account to a person at a provider; times in epoch seconds."""

    user_id: str
    provider: str
    issuer: str
    subject: str
    provisioning_id: str = ""
    email: str = ""
    linked_at: int = 0
    used_at: int = 0


@dataclass(frozen=True, slots=True)
class ProviderTokens:
    """The latest tokens of a link, "" for none. They are encrypted when stored.

    `expires_at` is that of the access token (epoch seconds), 0 if the provider does not tell.
    """

    id_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    access_token: str = field(default="", repr=False)
    expires_at: int = 0


class ResolveOutcome(StrEnum):
    """How an identity came to its account."""

    KNOWN = "known"
    LINKED = "linked"
    CREATED = "created"


@dataclass(frozen=True, slots=True)
class ResolvedAccount:
    """The account of an identity, how it was found, and what the claims changed, for the audit."""

    user: User
    outcome: ResolveOutcome
    changes: tuple[str, ...] = ()
