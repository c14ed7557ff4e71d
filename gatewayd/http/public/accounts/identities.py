"""Routes of the providers of one's own account, and of the confirmation that linking one needs."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from gatewayd.accounts.identity.identity_links import IdentityLinks, ProviderLink
from gatewayd.accounts.sessions import Sessions
from gatewayd.accounts.sign_in import SignIn
from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody, json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.accounts.confirmation import check_confirmed
from gatewayd.http.public.accounts.session_replies import NO_STORE
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import TRUE, answers, listed

PREFIX = "/api/v1/auths"


class ConfirmBody(RequestBody):
    """The present password of the caller."""

    password: str


class IdentityRoutes:
    """Routes of the caller's links to providers."""

    def __init__(self, links: IdentityLinks, sessions: Sessions, sign_in: SignIn) -> None:
        self._links = links
        self._sessions = sessions
        self._sign_in = sign_in

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        own = RouteAccess.ACCOUNT
        return [
            Route(
                "GET",
                f"{PREFIX}/identities",
                self.list,
                own,
                "List the providers of the account",
                tag="auths",
            ),
            Route(
                "DELETE",
                f"{PREFIX}/identities/{{provider}}",
                self.remove,
                own,
                "Unlink a provider",
                tag="auths",
            ),
            Route(
                "GET",
                f"{PREFIX}/confirm",
                self.show_confirmation,
                own,
                "Show whether the session is confirmed",
                tag="auths",
            ),
            Route(
                "POST",
                f"{PREFIX}/confirm",
                self.confirm,
                own,
                "Confirm the session by the password",
                request=ConfirmBody,
                tag="auths",
                asks=True,
            ),
        ]

    @answers(listed(accounts.identity))
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer each configured provider, and each other one that the account is linked to.

        A link begins with `GET /oauth/{provider}/login?link=true`.
        """
        found = await self._links.list(actor(request).user_id)
        return json_reply([render_identity(each) for each in found], headers=NO_STORE)

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Unlink a provider and answer true.

        403 (code confirmation_needed) unless the session began or was confirmed at most ten minutes ago, 404
        without the link, 409 (code last_way_in) for the last way to sign in.
        """
        caller = actor(request)
        await check_confirmed(self._sessions, caller, "unlink the provider")
        removed = await self._links.remove(caller.user_id, request.match_info["provider"])
        values = {"provider": removed.link.provider, "unlinked": removed.person}
        note_change(request, caller.user.email, values)
        await self._links.revoke(removed)
        return json_reply(data=True)

    @answers(accounts.confirmation)
    async def show_confirmation(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"is_fresh", "has_password"}`.

        `is_fresh` is true for a session that began or was confirmed at most ten minutes ago. An account
        without a password can only sign in again.
        """
        caller = actor(request)
        body = {
            "is_fresh": caller.jti is not None and await self._sessions.is_fresh(caller.jti),
            "has_password": await self._sign_in.has_password(caller.user_id),
        }
        return json_reply(body, headers=NO_STORE)

    @answers(TRUE)
    async def confirm(self, request: web.Request) -> web.StreamResponse:
        """`{"password"}` -> true: the session counts as confirmed for ten minutes.

        400 for a wrong password, 403 for a request with a key, 429 after too many attempts.
        """
        form = await read_model(request, ConfirmBody)
        caller = actor(request)
        await self._sign_in.confirm(caller, form.password, what="confirm the session")
        await self._sessions.confirm(caller.jti or "")
        return json_reply(data=True)


def render_identity(found: ProviderLink) -> dict[str, Any]:
    """Return a provider with its link as JSON."""
    link = found.link
    return {
        "provider": found.provider,
        "label": found.label,
        "linked": link is not None,
        "linked_at": None if link is None else link.linked_at,
        "subject_hint": found.subject_hint,
        "email": "" if link is None else link.email,
    }
