"""Invitations: an administrator invites a person, who chooses the name and the password of the account."""

import logging
from collections.abc import Sequence
from typing import Final

from gatewayd import ids
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.links.records import AcceptedInvitation, LinkKind, NewInvitation, OneTimeLink
from gatewayd.accounts.links.tokens import LinkTokens, invalid_link_error, new_token
from gatewayd.accounts.records import NewUser, Role, User
from gatewayd.accounts.texts import email_key, normalise_email
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError, invalid

log = logging.getLogger(__name__)

MAX_LIFETIME_SECONDS: Final = 90 * 86_400
MAX_GROUPS: Final = 100
OPERATOR_PREFIX: Final = "control:"
"""Start of `created_by` of an invitation by the control socket."""


class Invitations:
    """Creates, lists, revokes and accepts invitations. An invitation works once and expires."""

    def __init__(self, tokens: LinkTokens, users: Users, groups: Groups) -> None:
        self._tokens = tokens
        self._users = users
        self._groups = groups

    async def create(self, new: NewInvitation, by: str) -> tuple[OneTimeLink, str]:
        """Return a new invitation and its token, which is not stored; `by` is its creator.

        Raises invalid_request for a bad address or lifetime, not_found for an unknown group, conflict for an
        address that has an account.
        """
        email = normalise_email(new.email) if new.email else ""
        if not 0 < new.lifetime_seconds <= MAX_LIFETIME_SECONDS:
            raise invalid(
                f"cannot accept expires_in: expected 1 to {MAX_LIFETIME_SECONDS} seconds", param="expires_in"
            )
        if len(new.group_ids) > MAX_GROUPS:
            raise invalid(f"cannot accept group_ids: more than {MAX_GROUPS} groups", param="group_ids")
        for group_id in new.group_ids:
            await self._groups.get(group_id)
        if email and await self._users.find_by_email(email) is not None:
            raise GatewayError(
                ErrorKind.CONFLICT, f"cannot invite {email!r}: the address has an account", param="email"
            )
        token, now = new_token(), self._tokens.now()
        link = OneTimeLink(
            id=ids.new_id(),
            digest=ids.digest(token),
            kind=LinkKind.INVITATION,
            created_by=by,
            created_at=now,
            expires_at=now + new.lifetime_seconds,
            email=email,
            role=new.role,
            group_ids=tuple(dict.fromkeys(new.group_ids)),
        )
        await self._tokens.add(link, token)
        return link, token

    async def list(self) -> Sequence[OneTimeLink]:
        """Return the invitations that were not used yet, oldest first."""
        return await self._tokens.list(LinkKind.INVITATION)

    async def find_by_token(self, token: str) -> OneTimeLink:
        """Return an invitation, which stays unused; raise invalid_request for a token that does not work."""
        return await self._find(token)

    async def revoke(self, link_id: str) -> OneTimeLink:
        """Delete an unused invitation and return it; raise not_found without it."""
        return await self._tokens.revoke(LinkKind.INVITATION, link_id)

    async def accept(self, accepted: AcceptedInvitation) -> tuple[User, OneTimeLink]:
        """Create the account of an invitation, use the invitation up, and return both.

        Nothing changes on an error: invalid_request for a token that does not work, for an address other than
        the bound one and for a bad field; conflict for an address that has an account.
        """
        link = await self._find(accepted.token)
        email = _chosen_email(link, accepted.email)

        async def finish(user: User) -> None:
            await self._tokens.use(link)
            await self._join(user, link.group_ids)

        new = NewUser(email, accepted.name, role=link.role, password=accepted.password)
        try:
            return await self._users.create(new, finish), link
        except GatewayError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
            raise GatewayError(
                ErrorKind.CONFLICT,
                "cannot accept the invitation: the e-mail address has an account; sign in",
                param="email",
            ) from error

    async def _find(self, token: str) -> OneTimeLink:
        """Return a valid invitation: one of an administrator ends with their role."""
        link = await self._tokens.find(LinkKind.INVITATION, token)
        if not link.created_by.startswith(OPERATOR_PREFIX):
            creator = await self._users.find(link.created_by)
            if creator is None or not creator.active or creator.role is not Role.ADMIN:
                raise invalid_link_error()
        return link

    async def _join(self, user: User, group_ids: Sequence[str]) -> None:
        for group_id in group_ids:
            if await self._groups.find(group_id) is None:
                log.warning("cannot find a group of an invitation", extra={"group": group_id})
                continue
            await self._groups.add_members(group_id, [user.id])


def _chosen_email(link: OneTimeLink, sent: str) -> str:
    if link.email and sent and email_key(sent) != link.email:
        raise invalid("cannot accept email: the invitation is for another address", param="email")
    if not (link.email or sent):
        raise invalid("cannot accept the invitation: it needs an e-mail address", param="email")
    return link.email or sent
