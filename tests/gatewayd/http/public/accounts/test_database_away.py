"""What forms of sign-in and administration are told while the database is away, and when to come again."""

from typing import Any

import pytest

from gatewayd.catalog.providers.records import StoredProviders
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.accounts.auths import AuthRoutes
from gatewayd.http.public.accounts.invitations import InvitationRoutes
from gatewayd.http.public.accounts.session_replies import CookieOptions, SessionReplies
from gatewayd.http.public.administration.provider_forms import ProviderFormRoutes
from tests.fakes.accounts.oauth_site import serving_oauth
from tests.fakes.accounts.services import Accounts, serving_accounts
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.managed import FakeTester, MemoryProviderStore, managed

AUTHS = "/api/v1/auths"
FORMS = {
    f"{AUTHS}/signin": {"password": "secret"},
    f"{AUTHS}/signup": {"name": "New", "email": "new@example.com", "password": "a good long secret"},
    f"{AUTHS}/invitations": {"email": "guest@example.com"},
    f"{AUTHS}/invitations/accept": {"name": "Guest", "password": "a good long secret"},
    "/openai/config/update": {"OPENAI_API_BASE_URLS": ["https://acme.test/v1"], "OPENAI_API_KEYS": ["k"]},
}


class NoStates:
    """The state of no source."""

    async def list_all(self) -> tuple[object, ...]:
        return ()

    def source_states(self) -> tuple[dict[str, object], ...]:
        return ()


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_is_told_and_works_when_the_database_is_back(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = Accounts()
    await accounts.runtime.set({"ENABLE_SIGNUP": True}, by="test")
    replies = SessionReplies(accounts.sessions, accounts.rules, accounts.runtime, CookieOptions())
    invitations = InvitationRoutes(accounts.invitations, accounts.sign_in_links, replies, lambda: "")
    store = MemoryProviderStore(StoredProviders((), {}, 1))
    providers = await managed(store, FakeTester())
    rows = [
        *AuthRoutes(accounts.users, accounts.sign_in, accounts.sign_up, replies, _nowhere).routes(),
        *invitations.routes(),
        *ProviderFormRoutes(providers, NoStates()).routes(),
    ]
    async with serving_accounts(accounts, rows) as site:
        form: dict[str, Any] = {"email": site.user.email, **FORMS[path]}
        if path.endswith("accept"):
            form["email"] = "guest@example.com"
            made = await site.post_ok(f"{AUTHS}/invitations", site.admin, {"email": form["email"]})
            form["token"] = made["token"]
        token = await accounts.session(site.admin)
        accounts.memory.is_away = True
        with monkeypatch.context() as patched:
            patched.setattr(store, "save", _fail)
            reply = await site.client.post(path, json=form, headers=bearer(token))
        body = await reply.json()
        assert (reply.status, reply.headers["Retry-After"]) == (503, "2")
        assert body["error"]["code"] == "unavailable"
        assert body["detail"].endswith("the database cannot be reached")
        accounts.memory.is_away = False
        reply = await site.client.post(path, json=form, headers=bearer(token))
        assert reply.status == 200, await reply.text()


async def _nowhere(session_id: str, site: str) -> str:
    return ""


async def _fail(*_: Any, **__: Any) -> None:
    raise GatewayError(
        ErrorKind.UNAVAILABLE, "cannot change it: the database cannot be reached", retry_after=2
    )


async def test_a_sign_in_at_a_provider_comes_back_to_the_page() -> None:
    async with serving_oauth() as site:
        site.accounts.memory.is_away = True
        assert await site.sign_in() == "/auth?error=unavailable"
        assert site.people() == 0
        site.accounts.memory.is_away = False
        assert await site.sign_in() == "/"
