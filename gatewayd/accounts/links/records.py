"""Records of links that work once."""

from dataclasses import dataclass
from enum import StrEnum

from gatewayd.accounts.records import Role


class LinkKind(StrEnum):
    """The kind of a link."""

    INVITATION = "invitation"
    SIGN_IN = "sign_in"


@dataclass(frozen=True, slots=True)
class OneTimeLink:
    """A link that was not used yet. `digest` is the SHA-256 of its token. Timestamps are epoch seconds.

    An invitation has the role and groups of the new account, and its e-mail address, "" if the invited person
    chooses it. A sign-in link has the `user_id` of its account. `created_by` is the id of the administrator,
    or the unix user of the operator.
    """

    id: str
    digest: str
    kind: LinkKind
    created_by: str
    created_at: int
    expires_at: int
    email: str = ""
    user_id: str = ""
    role: Role = Role.PENDING
    group_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """Data of a new invitation; an `email` of "" leaves the address to the invited person."""

    email: str = ""
    role: Role = Role.USER
    group_ids: tuple[str, ...] = ()
    lifetime_seconds: int = 7 * 86_400


@dataclass(frozen=True, slots=True)
class AcceptedInvitation:
    """What an invited person sends: the token, a name and a password, and an address if none is bound."""

    token: str
    name: str
    password: str
    email: str = ""
