"""Tests for gatewayd.http.public.config."""

from gatewayd.accounts.records import Role
from gatewayd.http.public.config import ClientConfig, SiteFacts
from tests.fakes.accounts.services import Accounts
from tests.fakes.providers.models import make_actor

STRANGER = {"status", "name", "version", "default_locale", "oauth", "features"}


class Count:
    """So many accounts."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def count(self) -> int:
        return self.number


class Door:
    """A sign-up."""

    def __init__(self, *, is_open: bool = True) -> None:
        self._is_open = is_open

    async def is_open(self) -> bool:
        return self._is_open


class Providers:
    """One provider."""

    def labels(self) -> dict[str, str]:
        return {"oidc": "SSO"}

    def redirects(self) -> bool:
        return False


async def test_strangers_learn_little_and_whether_to_begin() -> None:
    accounts = Accounts()
    facts = SiteFacts("ours", "1.2")
    fresh = ClientConfig(
        facts, accounts.runtime, accounts.permissions, Count(0), Door(is_open=False), Providers()
    )
    told = await fresh.describe(None)
    assert (told["onboarding"], told["features"]["enable_signup"]) == (True, False)
    config = ClientConfig(facts, accounts.runtime, accounts.permissions, Count(1), Door(), Providers())
    body = await config.describe(None)
    assert body.keys() == STRANGER
    assert (body["name"], body["version"]) == ("ours", "1.2")
    assert body["oauth"] == {"providers": {"oidc": "SSO"}, "auto_redirect": False}
    assert "enable_api_keys" not in body["features"]
    assert body["features"]["enable_signup"] is True


async def test_accounts_learn_more_and_pending_ones_do_not() -> None:
    accounts = Accounts()
    config = ClientConfig(
        SiteFacts("n", "v"), accounts.runtime, accounts.permissions, Count(1), Door(), Providers()
    )
    known = await config.describe(make_actor(role=Role.USER))
    assert known["features"]["enable_api_keys"] is accounts.runtime.flag("ENABLE_API_KEYS")
    assert known["permissions"] == accounts.permissions.defaults()
    await accounts.runtime.set({"PENDING_USER_OVERLAY_TITLE": "Soon"}, by="test")
    pending = await config.describe(make_actor(role=Role.PENDING))
    assert pending.keys() == STRANGER | {"ui"}
    assert pending["ui"]["pending_user_overlay_title"] == "Soon"


async def test_clients_learn_the_ways_to_sign_in() -> None:
    accounts = Accounts()
    ways = SiteFacts("n", "v", enable_login_form=False, ldap_label="Company", auth_trusted_header=True)
    body = await ClientConfig(
        ways, accounts.runtime, accounts.permissions, Count(1), Door(), Providers()
    ).describe(None)
    found = {
        name: body["features"][name] for name in ("enable_ldap", "auth_trusted_header", "enable_login_form")
    }
    assert found == {"enable_ldap": True, "auth_trusted_header": True, "enable_login_form": False}
    assert body["ldap"] == {"label": "Company"}
