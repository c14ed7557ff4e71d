"""An identity provider that does what a test tells it, on loopback: everything it signs can be wrong."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

KEYS = {"rsa": RSAKey.generate_key(2048), "other": RSAKey.generate_key(2048), "ec": ECKey.generate_key()}
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
CLIENT, SECRET = "gateway", "s3cr:et/ü"


@dataclass
class Grant:
    """What a code gives."""

    claims: dict[str, Any]
    challenge: str
    header: dict[str, Any] = field(default_factory=dict)
    signing: str = "rsa"
    token: str | None = None


@dataclass
class HostileProvider:
    """A provider whose documents and tokens a test changes before a sign-in.

    `requests` are the paths that were asked for.
    """

    name: str = "evil"
    issuer: str = ""
    time: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    published: list[str] = field(default_factory=lambda: ["rsa"])
    userinfo: dict[str, Any] = field(default_factory=dict)
    introspection: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, Any] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    grants: dict[str, Grant] = field(default_factory=dict)
    failing: dict[str, int] = field(default_factory=dict)
    refreshes: list[dict[str, str]] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    emails: list[dict[str, Any]] = field(default_factory=list)

    def claims(self, nonce: str = "", **changes: Any) -> dict[str, Any]:
        """Return good claims of an id token, with changes; a change to None removes a claim."""
        claims = {
            "iss": self.issuer,
            "sub": "s-1",
            "aud": CLIENT,
            "exp": self.time + 300,
            "iat": self.time,
            "nonce": nonce,
            "sid": "sid-1",
            "email": "ann@example.org",
            "email_verified": True,
            "name": "Ann",
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def logout_claims(self, **changes: Any) -> dict[str, Any]:
        """Return good claims of a logout token, with changes."""
        claims = self.claims(events={LOGOUT_EVENT: {}}, jti="jti-1", nonce=None)
        for name in ("email", "email_verified", "name"):
            del claims[name]
        claims |= changes
        return {name: value for name, value in claims.items() if value is not None}

    def sign(self, claims: dict[str, Any], header: dict[str, Any] | None = None, signing: str = "rsa") -> str:
        """Return a signed token; `signing` is a key, "none", or "public" for HS256 with the public key."""
        algorithm = {"ec": "ES256", "none": "none", "public": "HS256"}.get(signing, "RS256")
        full = {"alg": algorithm, "kid": signing, "typ": "JWT", **(header or {})}
        full = {name: value for name, value in full.items() if value is not None}
        begin = f"{_encoded(orjson.dumps(full))}.{_encoded(json.dumps(claims).encode())}"
        if signing == "none":
            return f"{begin}."
        if signing == "public":
            secret = KEYS["rsa"].as_pem(private=False)
            return f"{begin}.{_encoded(hmac.new(secret, begin.encode(), 'sha256').digest())}"
        registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
        if "crit" not in full:
            return jws.serialize_compact(full, json.dumps(claims).encode(), KEYS[signing], registry=registry)
        signed = jws.serialize_compact({"alg": algorithm}, b"{}", KEYS[signing], registry=registry)
        return f"{begin}.{signed.split('.')[2]}"

    def grant(self, code: str, claims: dict[str, Any], challenge: str, **more: Any) -> None:
        self.grants[code] = Grant(claims, challenge, **more)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._noted])
        app.router.add_get("/.well-known/openid-configuration", self._describe)
        app.router.add_get("/jwks", self._keys)
        app.router.add_post("/token", self._token)
        app.router.add_get("/me", self._me)
        app.router.add_get("/me/emails", self._emails)
        app.router.add_post("/introspect", self._introspect)
        app.router.add_post("/revoke", self._revoke)
        return app

    @web.middleware
    async def _noted(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(request.path)
        if request.path in self.failing:
            return web.Response(status=self.failing[request.path])
        found: web.StreamResponse = await handler(request)
        return found

    async def _describe(self, request: web.Request) -> web.Response:
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/me",
            "introspection_endpoint": f"{self.issuer}/introspect",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "end_session_endpoint": f"{self.issuer}/logout",
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
            **self.metadata,
        }
        return web.json_response({name: value for name, value in document.items() if value is not None})

    async def _keys(self, request: web.Request) -> web.Response:
        keys = [{**KEYS[name].as_dict(private=False), "kid": name, "use": "sig"} for name in self.published]
        return web.json_response({"keys": keys})

    async def _token(self, request: web.Request) -> web.Response:
        """Give the tokens of a code, once, to the client that has the verifier of its challenge."""
        sent = (await request.read()).decode()
        if request.content_type == "application/json":
            return self._answer_json(orjson.loads(sent))
        form = {name: values[0] for name, values in parse_qs(sent).items()}
        basic = base64.b64encode(b"gateway:s3cr%3Aet%2F%C3%BC").decode()
        if form["grant_type"] == "refresh_token":
            return self._refresh(form, is_client=request.headers.get("Authorization") == f"Basic {basic}")
        grant = self.grants.pop(form.get("code", ""), None)
        challenge = _encoded(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if request.headers.get("Authorization") != f"Basic {basic}" or grant is None:
            return web.json_response({"error": "invalid_client"}, status=401)
        if challenge != grant.challenge:
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = grant.token or self.sign(grant.claims, grant.header, grant.signing)
        answer = {"access_token": "at-1", "token_type": "Bearer", "id_token": token, **self.tokens}
        return web.json_response({name: value for name, value in answer.items() if value is not None})

    def _answer_json(self, sent: dict[str, str]) -> web.Response:
        """Answer as Feishu does, which checks its secret in the body."""
        grant = self.grants.pop(sent.get("code", ""), None)
        challenge = _encoded(hashlib.sha256(sent.get("code_verifier", "").encode()).digest())
        if (sent["client_id"], sent["client_secret"]) != (CLIENT, SECRET) or grant is None:
            return web.json_response({"code": 20002, "msg": "bad"})
        assert challenge == grant.challenge
        return web.json_response({"code": 0, "access_token": "at-1", "token_type": "Bearer", **self.tokens})

    def _refresh(self, form: dict[str, str], *, is_client: bool) -> web.Response:
        """Give the tokens of a refresh token that was given before and not used since."""
        self.refreshes.append(form)
        if not is_client or form["refresh_token"] != self.tokens.get("refresh_token"):
            return web.json_response({"error": "invalid_grant"}, status=400)
        number = len(self.refreshes) + 1
        self.tokens["refresh_token"] = f"rt-{number}"
        answer = {"access_token": f"at-{number}", "token_type": "Bearer", "expires_in": 300, **self.tokens}
        return web.json_response({"id_token": "not.checked.yet", **answer})

    async def _me(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization", "")[:7] != "Bearer ":
            return web.json_response({"error": "invalid_token"}, status=401)
        return web.json_response(self.userinfo)

    async def _emails(self, request: web.Request) -> web.Response:
        return web.json_response(self.emails)

    async def _revoke(self, request: web.Request) -> web.Response:
        self.revoked += parse_qs((await request.read()).decode())["token"]
        return web.Response()

    async def _introspect(self, request: web.Request) -> web.Response:
        return web.json_response(self.introspection)


@asynccontextmanager
async def hostile_provider(time: int, name: str = "evil") -> AsyncIterator[HostileProvider]:
    provider = HostileProvider(name, time=time)
    async with TestServer(provider.application()) as server:
        provider.issuer = str(server.make_url("")).rstrip("/")
        yield provider


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
