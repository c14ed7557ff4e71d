"""Sign-in in a real browser by the certified provider for Node, and by a proxy that names the person."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.clients.identity.provider import SECRET, running_provider
from tests.clients.node import NodeMissingError
from tests.conftest import missing
from tests.page.browser import Noise, new_context
from tests.page.site import Site, opened_site

pytestmark = pytest.mark.real("node")

Enter = Callable[..., BrowserContext]
PROXY = "X-Company-Email"


def claims(name: str) -> dict[str, object]:
    return {"email": f"{name}@example.org", "email_verified": True, "name": f"{name.title()} <b>"}


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a gateway that knows the provider, which has two people, and a trusted proxy."""
    try:
        with running_provider() as provider:
            settings = {
                "OPENID_PROVIDER_URL": provider.url,
                "OAUTH_PROVIDER_NAME": "Company",
                "OAUTH_CLIENT_ID": "gateway",
                "OAUTH_CLIENT_SECRET": SECRET,
                "OAUTH_SCOPES": "openid email profile offline_access",
                "OAUTH_AUTHORIZE_PARAMS": '{"prompt": "consent"}',
                "ENABLE_OAUTH_SIGNUP": "true",
                "DEFAULT_USER_ROLE": "user",
                "WEBUI_AUTH_TRUSTED_EMAIL_HEADER": PROXY,
                "TRUSTED_HEADER_NETWORKS": "127.0.0.1/32",
            }
            with opened_site(tmp_path_factory.mktemp("o"), plugins={}, **settings) as opened:
                provider.serve(opened.url, {name: claims(name) for name in ("ann", "bob")})
                yield opened
    except NodeMissingError as error:
        missing("node", str(error))


@pytest.fixture
def enter(browser: Browser, joined: Site, noise: Noise) -> Iterator[Enter]:
    """Return a function that opens a context at that gateway."""
    opened = []

    def make(email: str | None = None, **options: object) -> BrowserContext:
        context = new_context(browser, noise, base_url=joined.url, **options)
        opened.append(context)
        if email is not None:
            joined.sign_in(context, email)
        return context

    yield make
    for context in opened:
        context.close()


def agree(page: Page, name: str) -> None:
    """Sign in at the provider, and agree."""
    page.locator("input[name=login]").fill(name)
    page.locator("input[name=password]").fill("any")
    page.locator("form button").click()
    page.get_by_role("button", name="Continue").click()


def providers(page: Page) -> Locator:
    return page.locator("section", has=page.get_by_role("heading", name="Identity providers"))


def test_a_person_of_the_provider_signs_in_and_needs_no_password(enter: Enter) -> None:
    page = enter().new_page()
    page.goto("/settings/account")
    page.get_by_role("link", name="Continue with Company").click()
    agree(page, "ann")
    expect(page).to_have_url("/settings/account")
    expect(page.get_by_role("button", name="Ann <b>")).to_be_visible()
    expect(providers(page).get_by_text("Linked")).to_be_visible()
    expect(page.get_by_text("The account has no password")).to_be_visible()
    providers(page).get_by_role("button", name="Unlink Company").click()
    page.get_by_role("dialog").get_by_role("button", name="Unlink").click()
    expect(providers(page).get_by_role("alert")).to_contain_text("Set a password first")


def test_an_account_is_linked_and_unlinked(enter: Enter, joined: Site) -> None:
    joined.add("local@example.com")
    page = enter("local@example.com").new_page()
    page.goto("/settings/account")
    providers(page).get_by_role("button", name="Link Company").click()
    agree(page, "bob")
    expect(page).to_have_url("/settings/account")
    expect(providers(page)).to_contain_text("bob@example.org")
    stranger = enter().new_page()
    stranger.goto("/auth?redirect=/documents")
    stranger.get_by_role("link", name="Continue with Company").click()
    agree(stranger, "bob")
    expect(stranger).to_have_url("/documents")
    expect(stranger.get_by_role("button", name="Local")).to_be_visible()
    providers(page).get_by_role("button", name="Unlink Company").click()
    page.get_by_role("dialog").get_by_role("button", name="Unlink").click()
    expect(providers(page).get_by_role("button", name="Link Company")).to_be_visible()


def test_the_proxy_says_who_this_is(enter: Enter, joined: Site) -> None:
    joined.add("proxied@example.com")
    page = enter(extra_http_headers={PROXY: "proxied@example.com"}).new_page()
    page.goto("/documents")
    expect(page).to_have_url("/documents")
    expect(page.get_by_role("button", name="Proxied")).to_be_visible()
    joined.add("second@example.com")
    page.context.set_extra_http_headers({PROXY: "second@example.com"})
    page.get_by_role("complementary").get_by_role("button", name="Search chats").wait_for()
    page.evaluate("() => import('#app/core/session').then(({ loadSession }) => loadSession())")
    expect(page.get_by_role("button", name="Second")).to_be_visible()
    other = enter().new_page()
    other.goto("/auth")
    other.get_by_role("button", name="Sign in through the proxy").wait_for()
    expect(other.get_by_role("main").get_by_role("alert")).to_have_count(0)
    other.get_by_role("button", name="Sign in through the proxy").click()
    expect(other.get_by_role("main").get_by_role("alert")).to_contain_text(
        "The proxy does not say who you are."
    )
