"""Routes of API keys: `/api/v1/auths/api_key` of Open WebUI, `api_keys` beside it, those of any account."""

from collections.abc import Sequence
from functools import partial

from aiohttp import web

from gatewayd.accounts.keys import Keys
from gatewayd.accounts.records import ApiKey, User
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import note_change
from gatewayd.http.body import RequestBody, json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.idempotency import IdempotentWrites
from gatewayd.http.public.accounts.serializers import render_key
from gatewayd.http.public.accounts.session_replies import NO_STORE
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import TRUE, answers

PREFIX = "/api/v1/auths"
USER_PATH = "/api/v1/users/{id}/api_keys"


class KeyBody(RequestBody):
    """A new key; `expires_at` is in epoch seconds. Without a name the key gets a default one."""

    name: str | None = None
    expires_at: int | None = None


class KeyRoutes:
    """Routes of the API keys of the caller, and of other accounts for administrators."""

    def __init__(self, keys: Keys, users: Users, writes: IdempotentWrites | None = None) -> None:
        self._keys = keys
        self._users = users
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows for the one key, for several named keys, and for those of an account."""
        account, admin = RouteAccess.ACCOUNT, RouteAccess.ADMIN
        single, several = f"{PREFIX}/api_key", f"{PREFIX}/api_keys"
        return [
            Route("POST", single, self.create, account, "Create an API key", request=KeyBody, tag="keys"),
            Route(
                "GET",
                single,
                self.show,
                account,
                "Show the API key (always refused)",
                tag="keys",
                statuses=(),
            ),
            Route("DELETE", single, self.remove_all, account, "Revoke API keys", tag="keys"),
            Route("GET", several, self.list, account, "List the API keys", tag="keys"),
            Route("POST", several, self.create, account, "Create an API key", request=KeyBody, tag="keys"),
            Route("DELETE", f"{several}/{{id}}", self.remove, account, "Revoke an API key", tag="keys"),
            Route("GET", USER_PATH, self.list_of_user, admin, "List the API keys of an account", tag="users"),
            Route(
                "DELETE",
                f"{USER_PATH}/{{key_id}}",
                self.remove_of_user,
                admin,
                "Revoke an API key of an account",
                tag="users",
            ),
        ]

    @answers(accounts.created_key)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"name"?, "expires_at"?}` -> `{"api_key": "sk-...", "id", "name", "prefix", ...}`, once.

        A key that a request with a key creates expires with that key. 403 names the missing permission, 409
        is for a name in use. A repeated Idempotency-Key gets the first reply again.
        """
        form = await read_model(request, KeyBody)
        if self._writes is None:
            return await self._issue(request, form)
        content = form.model_dump_json().encode()
        return await self._writes.run(request, "API key", content, partial(self._issue, request, form))

    async def _issue(self, request: web.Request, form: KeyBody) -> web.Response:
        caller = actor(request)
        key, value = await self._keys.issue(
            caller.user, form.name, form.expires_at, until=caller.key_expires_at
        )
        note_change(request, key.name, {"id": key.id, "expires_at": key.expires_at})
        return _created(key, value)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer 404 always, as a value is shown only at its creation; 403 as for creation."""
        await self._keys.check(actor(request).user, "show")
        raise GatewayError(
            ErrorKind.NOT_FOUND,
            "cannot show an API key: its value is shown once, at its creation; GET /api/v1/auths/api_keys"
            " lists the keys",
            code="api_key_not_readable",
        )

    @answers(TRUE, query={"id": "Id of the one key to revoke."})
    async def remove_all(self, request: web.Request) -> web.StreamResponse:
        """Revoke every key, or the key of the query parameter `id`; answer true. 403 as for creation."""
        caller = actor(request)
        await self._keys.check(caller.user, "delete")
        wanted = request.query.get("id")
        if wanted is None:
            await self._keys.revoke_all(caller.user_id)
        else:
            await self._keys.revoke(wanted, caller.user_id)
        note_change(request, wanted or "every key")
        return json_reply(data=True)

    @answers(accounts.keys)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"keys": [...], "total", "missing": [sentence]}`; `missing` lists the reasons why keys are
        refused."""
        return await self._listing(actor(request).user)

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Revoke one of the caller's keys, even when keys are not permitted, and answer true; 404 for
        others."""
        await self._keys.revoke(request.match_info["id"], actor(request).user_id)
        note_change(request, request.match_info["id"])
        return json_reply(data=True)

    @answers(accounts.keys)
    async def list_of_user(self, request: web.Request) -> web.StreamResponse:
        """Answer the keys of an account as it sees them itself; nobody can read the value of a key."""
        return await self._listing(await self._users.get(request.match_info["id"]))

    @answers(TRUE)
    async def remove_of_user(self, request: web.Request) -> web.StreamResponse:
        """Revoke a key of an account at once, and answer true; 404 for a key of another account."""
        user = await self._users.get(request.match_info["id"])
        key = await self._keys.get(request.match_info["key_id"])
        await self._keys.revoke(key.id, user.id)
        note_change(request, user.email, {"key": key.name, "id": key.id})
        return json_reply(data=True)

    async def _listing(self, user: User) -> web.StreamResponse:
        keys, missing = await self._keys.list(user.id), await self._keys.why(user)
        return json_reply(
            {"keys": [render_key(key) for key in keys], "total": len(keys), "missing": list(missing)}
        )


def _created(key: ApiKey, value: str) -> web.Response:
    return json_reply({"api_key": value, **render_key(key)}, headers=NO_STORE)
