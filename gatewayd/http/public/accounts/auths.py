"""Routes of `/api/v1/auths`: sign-in, sign-up, sign-out, and the account of the caller."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from gatewayd.accounts.records import NewUser, Role, SessionOrigin, SignInMethod, UserChange
from gatewayd.accounts.sign_in import SignIn, SignInClient
from gatewayd.accounts.sign_up import SignUp
from gatewayd.accounts.users import Users
from gatewayd.errors import GatewayError
from gatewayd.http.audit import audit_session, note_change
from gatewayd.http.body import RequestBody, json_reply, read_model
from gatewayd.http.context import CREDENTIAL, actor, base_url, client_address, credential, find_actor
from gatewayd.http.origins import refuse_parts
from gatewayd.http.public.accounts.header_sign_in import HeaderSignIn
from gatewayd.http.public.accounts.serializers import render_account
from gatewayd.http.public.accounts.session_replies import DEVICE_COOKIE, NO_STORE, SessionReplies
from gatewayd.http.reply_schemas import accounts, service
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import TRUE, answers

PREFIX = "/api/v1/auths"
_row = RouteGroup(PREFIX, "auths").row
SignOutAddress = Callable[[str, str], Awaitable[str]]
"""Takes the id of a session and the address of the gateway; returns where the browser goes, or ""."""

# Fields of the account in the session reply, beside those of the Session.
OWN_PROFILE = ("bio", "gender", "date_of_birth", "status_emoji", "status_message", "status_expires_at")


class SignInBody(RequestBody):
    """E-mail address and password of an account."""

    email: str
    password: str


class SignUpBody(RequestBody):
    """A sign-up: a new account of the caller."""

    name: str
    email: str
    password: str
    profile_image_url: str = "/user.png"


class AddBody(SignUpBody):
    """A new account, created by an administrator."""

    role: Role = Role.PENDING


class ProfileBody(RequestBody):
    """Profile of the caller's account. Absent fields keep their values, null clears them."""

    name: str | None = None
    profile_image_url: str | None = None
    bio: str | None = None
    gender: str | None = None
    date_of_birth: str | None = None


class PasswordBody(RequestBody):
    """The current password and the new one."""

    password: str
    new_password: str


class TimezoneBody(RequestBody):
    """Name of a time zone."""

    timezone: str


class AuthRoutes:
    """Routes of sessions and of the caller's own account."""

    def __init__(
        self,
        users: Users,
        sign_in: SignIn,
        sign_up: SignUp,
        replies: SessionReplies,
        sign_out: SignOutAddress,
        by_header: HeaderSignIn | None = None,
    ) -> None:
        self._users = users
        self._sign_in = sign_in
        self._sign_up = sign_up
        self._replies = replies
        self._sign_out = sign_out
        self._by_header = by_header

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            _row("GET", "/", self.show, RouteAccess.ACCOUNT, "Show the session"),
            _row("POST", "/signin", self.signin, RouteAccess.PUBLIC, "Sign in", SignInBody),
            _row("POST", "/signup", self.signup, RouteAccess.PUBLIC, "Sign up", SignUpBody),
            _row("POST", "/signout", self.signout, RouteAccess.OPTIONAL, "Sign out"),
            replace(
                _row("GET", "/signout", self.signout, RouteAccess.OPTIONAL, "Sign out"),
                guarded=True,
                writes=True,
            ),
            _row("POST", "/add", self.add, RouteAccess.ADMIN, "Create an account", AddBody),
            _row(
                "POST",
                "/update/profile",
                self.update_profile,
                RouteAccess.VERIFIED,
                "Change the profile",
                ProfileBody,
            ),
            _row(
                "POST",
                "/update/password",
                self.update_password,
                RouteAccess.ACCOUNT,
                "Change the password",
                PasswordBody,
            ),
            _row(
                "POST",
                "/update/timezone",
                self.update_timezone,
                RouteAccess.ACCOUNT,
                "Set the time zone",
                TimezoneBody,
            ),
        ]

    @answers(accounts.own_session)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the Session with fields of the profile; `token` is the key itself for a request with a
        key."""
        caller = actor(request)
        profile = {name: caller.user.profile.get(name) for name in OWN_PROFILE}
        return self._replies.show(request, caller, credential(request), profile)

    @answers(accounts.session)
    async def signin(self, request: web.Request) -> web.StreamResponse:
        """`{"email", "password"}` -> Session and cookie; 400 for a wrong password or address, 429 after too
        many attempts.

        The body does not count if a trusted proxy names the person: then 403 with a code if the person may
        not have an account, 400 for a bad header.
        """
        named = None if self._by_header is None else await self._by_header.sign_in(request)
        if named is not None:
            return await self._replies.open(request, named, SessionOrigin(SignInMethod.HEADER))
        form = await read_model(request, SignInBody)
        client = SignInClient(client_address(request), request.cookies.get(DEVICE_COOKIE, ""))
        try:
            user = await self._sign_in.sign_in(form.email, form.password, client)
        except GatewayError as error:
            audit_session(request, "sign-in refused", form.email, refused=error.message)
            raise
        audit_session(request, "sign-in", user.email)
        reply = await self._replies.open(request, user, SessionOrigin(SignInMethod.PASSWORD))
        self._replies.set_device_cookie(request, reply, self._sign_in.issue_device_cookie(user))
        return reply

    @answers(accounts.session)
    async def signup(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "email", "password"}` -> Session and cookie.

        403 when sign-up is off or there is no administrator yet, 409 when the address cannot be used, 429
        after too many attempts.
        """
        form = await read_model(request, SignUpBody)
        new = NewUser(form.email, form.name, password=form.password, profile_image_url=form.profile_image_url)
        try:
            user = await self._sign_up.sign_up(new, client_address(request))
        except GatewayError as error:
            audit_session(request, "sign-up refused", form.email, refused=error.message)
            raise
        audit_session(request, "sign-up", user.email, role=user.role)
        return await self._replies.open(request, user, SessionOrigin(SignInMethod.SIGNUP))

    @answers(service.signed_out)
    async def signout(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"status": true}`; the session is revoked and its cookie deleted.

        `redirect_url` is where the browser should go, for example to the sign-out of the identity provider.
        403 for a picture or another part of a page.
        """
        refuse_parts(request)
        caller = find_actor(request)
        url = ""
        if caller is not None and caller.jti is not None:
            url = await self._sign_out(caller.jti, base_url(request))
            audit_session(request, "sign-out", caller.user.email)
        more = {"redirect_url": url} if url else {}
        return await self._replies.close(request, caller, request.get(CREDENTIAL, ""), more)

    @answers(accounts.added_account)
    async def add(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "email", "password", "role"}` -> the account and a token for it; 409 for an address in
        use."""
        form = await read_model(request, AddBody)
        user = await self._users.create(
            NewUser(
                form.email,
                form.name,
                role=form.role,
                password=form.password,
                profile_image_url=form.profile_image_url,
            )
        )
        note_change(request, user.email, {"name": user.name, "role": user.role})
        origin = SessionOrigin(SignInMethod.ADMIN)
        token = await self._replies.issue(request, user, origin, actor(request).expires_at)
        shown = {"token": token, "token_type": "Bearer"}
        return json_reply({**shown, **render_account(user)}, headers=NO_STORE)

    @answers(accounts.account)
    async def update_profile(self, request: web.Request) -> web.StreamResponse:
        """`{"name", "profile_image_url", "bio"?, "gender"?, "date_of_birth"?}` -> short account."""
        form = await read_model(request, ProfileBody)
        profile: dict[str, Any] = form.model_dump(
            include={"bio", "gender", "date_of_birth"} & form.model_fields_set
        )
        change = UserChange(name=form.name, profile_image_url=form.profile_image_url, profile=profile)
        caller = actor(request)
        return json_reply(render_account(await self._users.change(caller.user_id, change, caller)))

    @answers(TRUE)
    async def update_password(self, request: web.Request) -> web.StreamResponse:
        """`{"password", "new_password"}` -> true; 400 for a wrong password, 403 for a request with a key, 429
        after too many attempts.

        Every session of the account ends; its API keys stay.
        """
        form = await read_model(request, PasswordBody)
        caller = actor(request)
        await self._sign_in.confirm(caller, form.password)
        await self._users.set_password(caller.user_id, form.new_password, field="new_password")
        note_change(request, caller.user.email, {"password_is_set": True})
        return json_reply(data=True)

    @answers(service.status)
    async def update_timezone(self, request: web.Request) -> web.StreamResponse:
        """`{"timezone"}` -> `{"status": true}`."""
        form = await read_model(request, TimezoneBody)
        caller = actor(request)
        await self._users.change(caller.user_id, UserChange(profile={"timezone": form.timezone}), caller)
        return json_reply({"status": True})
