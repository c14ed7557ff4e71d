"""One's own API keys: `/api/v1/auths/api_key` as existing scripts use it, and `/api/v1/auths/api_keys`."""

from collections.abc import Sequence

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from gatewayd.accounts.keys import Keys
from gatewayd.accounts.records import ApiKey
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import note_change
from gatewayd.http.body import json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.accounts.serializers import render_key
from gatewayd.http.public.accounts.session_replies import NO_STORE
from gatewayd.http.replies import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import TRUE, answers

PREFIX = "/api/v1/auths"


class KeyBody(BaseModel):
    """A key to make; without a name it gets one, `expires_at` is in epoch seconds."""

    model_config = ConfigDict(extra="ignore")

    name: str | None = None
    expires_at: int | None = None


class KeyRoutes:
    """Lets accounts make, list and end their keys."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def routes(self) -> Sequence[Route]:
        """Return the rows of 1.2 about keys, then the ones for several named keys."""
        account = RouteAccess.ACCOUNT
        single, several = f"{PREFIX}/api_key", f"{PREFIX}/api_keys"
        return [
            Route("POST", single, self.create, account, "Make an API key", request=KeyBody, tag="keys"),
            Route("GET", single, self.show, account, "Show the API key", tag="keys", statuses=()),
            Route("DELETE", single, self.remove_all, account, "End API keys", tag="keys"),
            Route("GET", several, self.list, account, "List the API keys", tag="keys"),
            Route("POST", several, self.create, account, "Make an API key", request=KeyBody, tag="keys"),
            Route("DELETE", f"{several}/{{id}}", self.remove, account, "End an API key", tag="keys"),
        ]

    @answers(accounts.created_key)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"name"?, "expires_at"?}` -> `{"api_key": "sk-...", "id", "name", "prefix", ...}`, once.

        A key that a key makes ends with it. 403 says what is missing (5.2), 409 that the name is taken.
        """
        form = await read_model(request, KeyBody)
        who = actor(request)
        key, value = await self._keys.issue(who.user, form.name, form.expires_at, until=who.key_expires_at)
        note_change(request, key.name, {"id": key.id, "expires_at": key.expires_at})
        return _created(key, value)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer 404 always: a value is shown once and cannot be read again (2.8); 403 as for creation."""
        await self._keys.check(actor(request).user, "show")
        raise GatewayError(
            ErrorKind.NOT_FOUND,
            "cannot show an API key: its value is shown once, when it is made; GET /api/v1/auths/api_keys"
            " lists the keys",
            code="api_key_not_readable",
        )

    @answers(TRUE, query={"id": "Id of the one key to end."})
    async def remove_all(self, request: web.Request) -> web.StreamResponse:
        """End every key, or the one named by the query parameter `id`; answer true. 403 as for creation."""
        who = actor(request)
        await self._keys.check(who.user, "delete")
        wanted = request.query.get("id")
        if wanted is None:
            await self._keys.revoke_all(who.user_id)
        else:
            await self._keys.revoke(wanted, who.user_id)
        note_change(request, wanted or "every key")
        return json_reply(data=True)

    @answers(accounts.keys)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"keys": [...], "total", "missing": [sentence]}`; `missing` says why keys do not work."""
        who = actor(request)
        keys = await self._keys.list(who.user_id)
        missing = await self._keys.why(who.user)
        return json_reply(
            {"keys": [render_key(key) for key in keys], "total": len(keys), "missing": list(missing)}
        )

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """End one of one's own keys, whether keys are allowed or not, and answer true; 404 for another."""
        await self._keys.revoke(request.match_info["id"], actor(request).user_id)
        note_change(request, request.match_info["id"])
        return json_reply(data=True)


def _created(key: ApiKey, value: str) -> web.Response:
    return json_reply({"api_key": value, **render_key(key)}, headers=NO_STORE)
