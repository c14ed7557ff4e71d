"""The sign-in routes over the account services in memory, and browsers that use them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiohttp import ClientResponse

from gatewayd.accounts.identity.providers import WELL_KNOWN, ProviderOptions
from gatewayd.accounts.identity.records import IdentityRules
from gatewayd.accounts.identity.token_exchange import TokenExchange
from gatewayd.accounts.records import Role, User
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.public.accounts.identities import IdentityRoutes
from gatewayd.http.public.accounts.oauth import OAuthRoutes, OAuthServices
from gatewayd.http.public.accounts.session_replies import CookieOptions, SessionReplies
from gatewayd.http.routes import Route
from gatewayd.upstream.identity.client import IdentityProviderClient
from tests.fakes.accounts.services import NOON, Accounts
from tests.fakes.http.public_app import Client, serving
from tests.fakes.providers.hostile_oidc import CLIENT, SECRET, HostileProvider, hostile_provider

FROM_OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
FROM_ELSEWHERE = {"Sec-Fetch-Site": "cross-site"}


@dataclass
class Browser:
    """A browser with its cookies; redirects are returned, not followed."""

    client: Client
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> ClientResponse:
        # The client has one store of cookies, each browser its own.
        self.client.session.cookie_jar.clear()
        sent = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = await self.client.get(
            path, headers={"Cookie": sent, **(headers or {})}, allow_redirects=False
        )
        for name, morsel in reply.cookies.items():
            if morsel["max-age"] == "0" or not morsel.value:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.value
        return reply

    async def begin(self, provider: str = "evil", query: str = "", **headers: str) -> dict[str, str]:
        """Go to a provider; return the parameters that it gets."""
        reply = await self.get(f"/oauth/{provider}/login{query}", headers)
        assert reply.status == 302, await reply.text()
        return parameters(reply)

    async def finish(self, provider: str = "evil", **params: str) -> str:
        """Come back from a provider; return where the gateway sends the browser."""
        query = "&".join(f"{name}={value}" for name, value in params.items())
        reply = await self.get(f"/oauth/{provider}/callback?{query}", FROM_ELSEWHERE)
        assert reply.status == 302, await reply.text()
        return reply.headers["Location"]

    @property
    def attempts(self) -> int:
        return sum("oauth-" in name for name in self.cookies)


@dataclass
class OAuthSite:
    """A served gateway and two providers."""

    accounts: Accounts
    client: Client
    evil: HostileProvider
    good: HostileProvider
    admin: User

    def browser(self) -> Browser:
        return Browser(self.client)

    def allow(self, **rules: Any) -> None:
        """Change the rules of both providers."""
        self.change(rules=replace(self.accounts.login.get("evil").rules, **rules))

    def change(self, **fields: Any) -> None:
        """Change the options of both providers."""
        self.accounts.login.configure([replace(each, **fields) for each in self.accounts.login.providers])

    async def sign_in(
        self, browser: Browser | None = None, *, query: str = "", grant: Any = None, **claims: Any
    ) -> str:
        """Sign in at the hostile provider; return where the browser is sent to."""
        browser = browser or self.browser()
        asked = await browser.begin(query=query)
        self.evil.time = self.accounts.time
        claims = self.evil.claims(**{"nonce": asked["nonce"], **claims})
        self.evil.grant("c-1", claims, asked["code_challenge"], **(grant or {}))
        return await browser.finish(state=asked["state"], code="c-1")

    def people(self) -> int:
        return len(self.accounts.memory.tables.users) - 1


@asynccontextmanager
async def serving_oauth() -> AsyncIterator[OAuthSite]:
    async with AsyncExitStack() as stack:
        evil = await stack.enter_async_context(hostile_provider(NOON))
        good = await stack.enter_async_context(hostile_provider(NOON, "good"))
        accounts = Accounts(providers=[_options(evil), _options(good)])
        admin = await accounts.add_user("admin", Role.ADMIN, password="secret")
        await accounts.runtime.set({"DEFAULT_USER_ROLE": "user"}, by="test")
        shut_out = AccessRevocation()
        accounts.changes.subscribe(shut_out.on_change)
        client = await stack.enter_async_context(
            serving(oauth_rows(accounts), authenticator=accounts.authenticator, shut_out=shut_out)
        )
        yield OAuthSite(accounts, client, evil, good, admin)


def oauth_rows(accounts: Accounts) -> list[Route]:
    replies = SessionReplies(accounts.sessions, accounts.rules, accounts.runtime, CookieOptions())
    directory, transport = accounts.provider_directory, IdentityProviderClient()
    services = OAuthServices(
        login=accounts.login,
        logout=accounts.provider_logout,
        exchange=TokenExchange(accounts.login, directory, transport, accounts.clock),
        external=accounts.external,
        links=accounts.identity_links,
        sessions=accounts.sessions,
        site_url=lambda: accounts.runtime.text("WEBUI_URL"),
        accepts_logout=lambda: True,
    )
    links = IdentityRoutes(accounts.identity_links, accounts.sessions, accounts.sign_in)
    return [*OAuthRoutes(services, replies).routes(), *links.routes()]


def parameters(reply: ClientResponse) -> dict[str, str]:
    """Return the parameters of a redirect."""
    query = parse_qs(urlsplit(reply.headers["Location"]).query)
    return {name: values[0] for name, values in query.items()}


def _options(provider: HostileProvider) -> ProviderOptions:
    return ProviderOptions(
        name=provider.name,
        client_id=CLIENT,
        client_secret=SECRET,
        discovery_url=provider.issuer + WELL_KNOWN,
        issuer=provider.issuer,
        rules=IdentityRules(sign_up=True),
    )
