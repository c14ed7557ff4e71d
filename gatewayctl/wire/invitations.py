"""Invitations and sign-in links on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written
from gatewayctl.wire.users import RoleName


class Invitation(Reply):
    """An invitation that was not used; `groups` are names."""

    id: str
    email: str
    role: str
    groups: list[str] = Field(default_factory=list)
    created_by: str
    created_at: str | None = None
    expires_at: str | None = None


class InvitationList(Reply):
    """Invitations, oldest first."""

    invitations: list[Invitation]


class InvitationWritten(Written, Invitation):
    """An invitation after a write; `address` is given once, when it is created."""

    address: str | None = None


class NewInvitation(Request):
    """An invitation of a person; `groups` are ids or names, `expires_in` is in seconds."""

    email: str
    role: RoleName | None = None
    groups: list[str] = Field(default_factory=list)
    expires_in: int | None = None


class NewSignInLink(Request):
    """A sign-in link of a user; `expires_in` is in seconds."""

    expires_in: int | None = None


class SignInAddress(Reply):
    """The address of a sign-in link, given once."""

    user: str
    address: str
    expires_at: str | None = None
