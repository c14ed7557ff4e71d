"""The SCIM rows over the services in memory, as an identity provider reaches them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import orjson

from gatewayd.http.middleware import EdgeOptions
from gatewayd.http.public.scim.discovery import ScimDiscoveryRoutes
from gatewayd.http.public.scim.routes import ScimGroupRoutes, ScimUserRoutes
from gatewayd.http.scim_auth import ScimAuthenticator
from gatewayd.scim.records import PublicSite
from gatewayd.scim.request_log import ScimRequestLog
from gatewayd.scim.tokens.credential import ScimTokens
from tests.fakes.accounts.provisioning import Provisioning
from tests.fakes.http.public_app import Client, bearer, serving

TOKEN = "t" * 64
ROOT = "/api/v1/scim/v2"
SCIM_JSON = "application/scim+json"


@dataclass
class Reply:
    """A whole answer; `body` is None when it has none."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def error(self) -> tuple[int, str | None]:
        """The status and the error type of a refusal, which must be a whole SCIM error."""
        assert self.body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"], self.body
        assert self.body["status"] == str(self.status)
        assert self.body["detail"]
        return self.status, self.body.get("scimType")


@dataclass
class ScimSite:
    """A gateway, and a client with the SCIM token."""

    scim: Provisioning
    client: Client
    tokens: ScimTokens
    activity: ScimRequestLog
    door: ScimAuthenticator

    async def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send one request; `body` is JSON unless it is bytes already."""
        sent = {**bearer(TOKEN), **({} if body is None else {"Content-Type": SCIM_JSON}), **(headers or {})}
        content = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        data = None if content is None else BytesIO(content)
        # A header of None is one that is not sent.
        skipped = [name for name, value in sent.items() if value is None]
        kept = {name: value for name, value in sent.items() if value is not None}
        reply = await self.client.request(
            method, ROOT + path, data=data, headers=kept, skip_auto_headers=[*skipped, "Content-Type"]
        )
        answer = await reply.read()
        if answer:
            assert reply.headers["Content-Type"] == SCIM_JSON
        return Reply(reply.status, reply.headers, orjson.loads(answer) if answer else None)

    async def ok(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """Send a request that must succeed and return the body of the answer."""
        reply = await self.call(method, path, body)
        assert reply.status == status, reply.body
        return reply.body


@asynccontextmanager
async def serving_scim(
    provider: str = "okta",
    *,
    enabled: bool = True,
    options: EdgeOptions | None = None,
    address: str = "",
) -> AsyncIterator[ScimSite]:
    scim, tokens, activity = Provisioning(provider), ScimTokens(enabled, (TOKEN,)), ScimRequestLog()
    rows = [
        *ScimUserRoutes(scim.users, provider).routes(),
        *ScimGroupRoutes(scim.groups, provider).routes(),
        *ScimDiscoveryRoutes().routes(),
    ]
    door = ScimAuthenticator(tokens, activity, provider, lambda: 1_000, PublicSite(address))
    authenticator = scim.accounts.authenticator
    async with serving(rows, door=door, authenticator=authenticator, options=options) as client:
        yield ScimSite(scim, client, tokens, activity, door)
