"""Routes of invitations and of sign-in links."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web
from pydantic import Field

from gatewayd.accounts.links.invitations import Invitations
from gatewayd.accounts.links.records import AcceptedInvitation, NewInvitation, OneTimeLink
from gatewayd.accounts.links.sign_in_links import SignInLinks
from gatewayd.accounts.records import Role, SessionOrigin, SignInMethod
from gatewayd.errors import GatewayError
from gatewayd.http.audit import audit_session, note_change
from gatewayd.http.body import RequestBody, json_reply, read_model
from gatewayd.http.context import actor, base_url
from gatewayd.http.public.accounts.session_replies import NO_STORE, SessionReplies
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import TRUE, answers, listed

PREFIX = "/api/v1/auths"
INVITATIONS = f"{PREFIX}/invitations"


class InvitationBody(RequestBody):
    """A new invitation.

    Without `email` the invited person chooses the address. `expires_in` is in seconds, 7 days by default.
    """

    email: str | None = None
    role: Role = Role.USER
    group_ids: list[str] = Field(default_factory=list)
    expires_in: int | None = None


class AcceptBody(RequestBody):
    """The token of an invitation, and the name and password of the new account."""

    token: str
    name: str
    password: str
    email: str | None = None


class LinkBody(RequestBody):
    """The token of a sign-in link or of an invitation."""

    token: str


class InvitationRoutes:
    """Routes of invitations and of sign-in links; `site_url` returns the address of the page, or ""."""

    def __init__(
        self,
        invitations: Invitations,
        links: SignInLinks,
        replies: SessionReplies,
        site_url: Callable[[], str] = str,
    ) -> None:
        self._invitations = invitations
        self._links = links
        self._replies = replies
        self._site_url = site_url

    def routes(self) -> Sequence[Route]:
        """Return the rows; fixed paths precede those with an id."""
        admin, public = RouteAccess.ADMIN, RouteAccess.PUBLIC
        return [
            Route("GET", INVITATIONS, self.list, admin, "List the invitations", tag="invitations"),
            Route(
                "POST",
                INVITATIONS,
                self.create,
                admin,
                "Invite a person",
                request=InvitationBody,
                tag="invitations",
            ),
            Route(
                "POST",
                f"{INVITATIONS}/accept",
                self.accept,
                public,
                "Accept an invitation",
                request=AcceptBody,
                tag="invitations",
            ),
            Route(
                "POST",
                f"{INVITATIONS}/show",
                self.show,
                public,
                "Show an invitation by its token",
                request=LinkBody,
                tag="invitations",
                asks=True,
            ),
            Route(
                "DELETE",
                f"{INVITATIONS}/{{id}}",
                self.revoke,
                admin,
                "Revoke an invitation",
                tag="invitations",
            ),
            Route(
                "POST",
                f"{PREFIX}/link",
                self.link,
                public,
                "Sign in with a link",
                request=LinkBody,
                tag="invitations",
            ),
        ]

    @answers(listed(accounts.invitation))
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer the invitations that were not used, oldest first; `email` is "" for one of any address."""
        return json_reply([render_invitation(link) for link in await self._invitations.list()])

    @answers(accounts.created_invitation)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"email"?, "role"?, "group_ids"?, "expires_in"?}` -> the invitation with `token` and `url`, once.

        404 for an unknown group, 409 for an address that has an account.
        """
        form = await read_model(request, InvitationBody)
        chosen: dict[str, Any] = {} if form.expires_in is None else {"lifetime_seconds": form.expires_in}
        new = NewInvitation(form.email or "", form.role, tuple(form.group_ids), **chosen)
        link, token = await self._invitations.create(new, actor(request).user_id)
        note_change(request, link.email or link.id, audited_invitation(link))
        url = link_address(self._site_url() or base_url(request), "invitation", token)
        return json_reply({**render_invitation(link), "token": token, "url": url}, headers=NO_STORE)

    @answers(TRUE)
    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Revoke an invitation that was not used, and answer true; 404 without it."""
        link = await self._invitations.revoke(request.match_info["id"])
        note_change(request, link.email or link.id, {"id": link.id})
        return json_reply(data=True)

    @answers(accounts.session)
    async def accept(self, request: web.Request) -> web.StreamResponse:
        """`{"token", "name", "password", "email"?}` -> Session and cookie of the new account.

        `email` is needed for an invitation of any address. 400 with the code `invalid_link` for a token that
        was used, was revoked or has expired; 409 for an address that has an account.
        """
        form = await read_model(request, AcceptBody)
        accepted = AcceptedInvitation(form.token, form.name, form.password, form.email or "")
        try:
            user, link = await self._invitations.accept(accepted)
        except GatewayError as error:
            audit_session(request, "invitation refused", form.email or "", refused=error.message)
            raise
        audit_session(request, "invitation accepted", user.email, role=user.role, invitation=link.id)
        return await self._replies.open(request, user, SessionOrigin(SignInMethod.INVITATION))

    @answers(accounts.shown_invitation)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """`{"token"}` -> `{"email", "expires_at"}`; `email` is "" for an invitation of any address.

        The invitation stays unused. 400 with the code `invalid_link` for a token that does not work.
        """
        form = await read_model(request, LinkBody)
        link = await self._invitations.find_by_token(form.token)
        return json_reply({"email": link.email, "expires_at": link.expires_at}, headers=NO_STORE)

    @answers(accounts.session)
    async def link(self, request: web.Request) -> web.StreamResponse:
        """`{"token"}` -> Session and cookie; 400 with the code `invalid_link` for a token that was used or
        has expired, 403 for a deactivated account."""
        form = await read_model(request, LinkBody)
        try:
            user = await self._links.use(form.token)
        except GatewayError as error:
            audit_session(request, "sign-in refused", "", refused=error.message, method="link")
            raise
        audit_session(request, "sign-in", user.email, method="link")
        return await self._replies.open(request, user, SessionOrigin(SignInMethod.LINK))


def render_invitation(link: OneTimeLink) -> dict[str, Any]:
    """Return an invitation as JSON, without its token."""
    return {
        "id": link.id,
        "email": link.email,
        "role": link.role.value,
        "group_ids": list(link.group_ids),
        "created_by": link.created_by,
        "created_at": link.created_at,
        "expires_at": link.expires_at,
    }


def audited_invitation(link: OneTimeLink) -> Mapping[str, Any]:
    """Return the fields of an invitation for the audit log."""
    return {
        "id": link.id,
        "role": link.role.value,
        "group_ids": list(link.group_ids),
        "expires_at": link.expires_at,
    }


def link_address(site_url: str, name: str, token: str) -> str:
    """Return the address of a link: the token is in the fragment, which is sent to no server."""
    return f"{site_url.rstrip('/')}/auth#{name}={token}"
