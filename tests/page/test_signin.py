"""Ways into the gateway in a real browser."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from gatewayd.accounts.identity.records import RefusalCode
from tests.page.browser import PHONE, find_violations
from tests.page.conftest import NewTab
from tests.page.scripts import PAGE
from tests.page.site import AUTHS, PASSWORD, USER, Site

GO = "(path) => import('#app/core/router').then(({ navigate }) => navigate(path))"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def stranger(tabs: NewTab) -> Page:
    """Return a tab of nobody."""
    return tabs(None)


def fill(page: Page, email: str, password: str = PASSWORD) -> None:
    page.get_by_label("E-mail address").fill(email)
    page.get_by_role("textbox", name="Password", exact=True).fill(password)


def submit(page: Page, email: str, password: str = PASSWORD) -> None:
    fill(page, email, password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def alert(page: Page) -> Locator:
    """Return what a view refuses; notices have their own place."""
    return page.get_by_role("main").get_by_role("alert")


def configure(page: Page, change: Callable[[Any], object]) -> None:
    """Change what the page reads of /api/config."""

    def answer(route: Route) -> None:
        body = route.fetch().json()
        change(body)
        route.fulfill(json=body)

    page.route("**/api/config", answer)


def with_providers(auto: bool = False, **providers: str) -> Callable[[Any], None]:
    return lambda body: body.update(oauth={"providers": providers, "auto_redirect": auto})


def with_features(**features: bool) -> Callable[[Any], None]:
    return lambda body: body["features"].update(features)


def refuse(page: Page, address: str, status: int, headers: Mapping[str, str], **error: str) -> None:
    body = {"detail": error["message"], "error": error}
    page.route(address, lambda route: route.fulfill(status=status, headers=dict(headers), json=body))


def test_sign_in_leads_back_and_sign_out_leads_here(stranger: Page) -> None:
    stranger.goto("/settings/account")
    expect(stranger.get_by_role("heading", name="Sign in to Example Gateway", level=1)).to_be_visible()
    submit(stranger, USER, "wrong horse battery")
    expect(alert(stranger)).to_have_text("The e-mail address or the password is wrong.")
    expect(stranger.get_by_label("E-mail address")).to_have_value(USER)
    submit(stranger, USER)
    expect(stranger).to_have_url("/settings/account")
    stranger.evaluate("() => import('#app/core/session').then(({ signOut }) => signOut())")
    expect(stranger).to_have_url(re.compile("/auth"))
    assert [cookie for cookie in stranger.context.cookies() if cookie["name"] == "token"] == []


def test_the_way_back_stays_on_this_page(stranger: Page) -> None:
    stranger.goto("/auth?redirect=//evil.example")
    submit(stranger, USER)
    expect(stranger).to_have_url("/")
    evil = [
        "//evil.example",
        "/\\evil.example",
        "https:evil.example",
        "/\t/evil.example",
        "/auth",
        "evil",
        "",
    ]
    kept = ["/documents?a=%2F%2Fb", "/c/1"]
    read = "(paths) => import('#app/signin/addresses').then(({ returnPath }) => paths.map(returnPath))"
    assert stranger.evaluate(read, [*evil, *kept]) == ["/"] * len(evil) + kept


def test_too_many_tries_say_when_to_come_back(stranger: Page) -> None:
    refuse(stranger, f"**{AUTHS}/signin", 429, {"Retry-After": "180"}, message="cannot sign in now")
    stranger.goto("/auth")
    submit(stranger, USER)
    expect(alert(stranger)).to_have_text(re.compile(r"^Too many tries. Try again in [23] minutes\.$"))


def test_keys_are_enough(stranger: Page) -> None:
    stranger.goto("/auth")
    stranger.get_by_label("E-mail address").wait_for()
    stranger.keyboard.press("Tab")
    stranger.keyboard.press("Tab")
    stranger.keyboard.type(USER)
    stranger.keyboard.press("Tab")
    stranger.keyboard.type(PASSWORD)
    stranger.keyboard.press("Tab")
    expect(stranger.get_by_role("button", name="Show the password")).to_be_focused()
    stranger.keyboard.press("Space")
    expect(stranger.get_by_role("textbox", name="Password", exact=True)).to_have_attribute("type", "text")
    stranger.keyboard.press("Shift+Tab")
    stranger.keyboard.press("Enter")
    expect(stranger).to_have_url("/")


def test_enter_of_an_input_method_sends_nothing(stranger: Page) -> None:
    sent: list[str] = []
    stranger.on(
        "request",
        lambda request: sent.append(request.url) if request.url.endswith(f"{AUTHS}/signin") else None,
    )
    stranger.goto("/auth")
    fill(stranger, USER)
    stranger.get_by_label("E-mail address").evaluate(
        """(field) => field.dispatchEvent(new KeyboardEvent("keydown",
        {key: "Enter", keyCode: 229, bubbles: true, cancelable: true})) && field.form.requestSubmit()"""
    )
    assert sent == []


def test_sign_up_waits_for_an_administrator(stranger: Page, site: Site) -> None:
    site.ok("POST", f"{AUTHS}/admin/config", {"ENABLE_SIGNUP": True, "PENDING_USER_OVERLAY_TITLE": "Soon"})
    try:
        stranger.goto("/auth?redirect=/documents")
        stranger.get_by_role("button", name="Sign up").click()
        stranger.get_by_label("Name", exact=True).fill(HOSTILE)
        stranger.get_by_label("E-mail address").fill("newcomer@example.com")
        stranger.get_by_label("New password").fill("12345678")
        stranger.get_by_role("button", name="Sign up").click()
        weak = stranger.get_by_label("New password")
        expect(weak).to_have_attribute("aria-invalid", "true")
        expect(stranger.get_by_text("This password is easy to guess:")).to_be_visible()
        weak.fill(PASSWORD)
        stranger.get_by_role("button", name="Sign up").click()
        expect(stranger.get_by_role("heading", name="Soon")).to_be_visible()
        expect(stranger.get_by_role("link", name="admin@example.com")).to_be_visible()
        stranger.goto("/documents")
        expect(stranger.get_by_role("heading", name="Soon")).to_be_visible()
        (made,) = site.ok("GET", "/api/v1/users/?query=newcomer")["users"]
        site.ok("POST", "/api/v1/users/update/role", {"id": made["id"], "role": "user"})
    finally:
        site.ok("POST", f"{AUTHS}/admin/config/reset", {"names": ["PENDING_USER_OVERLAY_TITLE"]})
        site.ok("POST", f"{AUTHS}/admin/config", {"ENABLE_SIGNUP": False})
    stranger.get_by_role("button", name="Check again").click()
    expect(stranger.get_by_role("heading", name="Sign in to Example Gateway")).to_be_visible()
    expect(stranger.get_by_role("button", name="Sign up")).to_have_count(0)
    submit(stranger, "newcomer@example.com")
    expect(stranger).to_have_url("/documents")


def test_every_refusal_of_a_provider_has_words() -> None:
    for language in ("en", "de", "ar"):
        words = json.loads((PAGE / "languages" / f"{language}.json").read_text())
        assert {code.value for code in RefusalCode} < set(words["signin"]["refusals"])


def test_a_refusal_is_said_in_words(stranger: Page) -> None:
    configure(stranger, with_providers(auto=True, company="Company"))
    stranger.goto("/auth?error=role_missing")
    expect(alert(stranger)).to_contain_text("The identity provider gives you no role for this gateway.")
    expect(stranger.get_by_role("link", name="Continue with Company")).to_be_visible()
    for code in (HOSTILE, "constructor"):
        stranger.evaluate(GO, f"/auth?error={quote(code)}")
        expect(alert(stranger)).to_have_text(re.compile("^The sign-in was refused."))


def test_providers_are_links_and_the_only_one_is_entered_at_once(stranger: Page) -> None:
    gone: list[str] = []

    def leave(route: Route) -> None:
        gone.append(route.request.url.partition("/oauth/")[2])
        route.fulfill(status=200, content_type="text/html", body="<h1>Provider</h1>")

    stranger.route("**/oauth/**", leave)
    configure(stranger, with_providers(company="Company & Co", other="Other"))
    stranger.goto("/auth?redirect=/documents")
    link = stranger.get_by_role("link", name="Continue with Company & Co")
    expect(link).to_have_attribute("href", "/oauth/company/login?redirect=%2Fdocuments")
    expect(stranger.get_by_role("textbox", name="Password", exact=True)).to_be_visible()
    stranger.unroute("**/api/config")
    configure(stranger, with_providers(auto=True, company="Company"))
    stranger.goto("/auth?form=true")
    expect(stranger.get_by_role("textbox", name="Password", exact=True)).to_be_visible()
    assert gone == []
    stranger.goto("/documents")
    expect(stranger.get_by_role("heading", name="Provider")).to_be_visible()
    assert gone == ["company/login?redirect=%2Fdocuments"]


def test_who_signs_out_stays_out(tabs: NewTab, site: Site) -> None:
    page = tabs(site.add("leaver@example.com").email)
    configure(page, with_providers(auto=True, company="Company"))
    page.route("**/oauth/**", lambda route: route.abort())
    page.goto("/settings/account")
    page.get_by_role("heading", name="Sessions").wait_for()
    page.evaluate("() => import('#app/core/session').then(({ signOut }) => signOut())")
    expect(page.get_by_role("link", name="Continue with Company")).to_be_visible()


def test_nothing_stays_for_who_comes_after(tabs: NewTab, site: Site) -> None:
    page = tabs(site.add("before@example.com").email)
    page.goto("/settings/account")
    page.get_by_role("heading", name="Sessions").wait_for()
    page.evaluate(
        """async () => {
          const { promptDialog } = await import("#app/core/dialogs");
          const { toast } = await import("#app/core/toasts");
          window.answer = promptDialog({ title: "Rename the secret", value: "secret" });
          toast("success", "secret archived", { action: { label: "Undo", run: () => {} } });
        }"""
    )
    page.get_by_role("dialog").wait_for()
    page.evaluate("() => import('#app/core/session').then(({ signOut }) => signOut())")
    page.get_by_label("E-mail address").wait_for()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("secret")).to_have_count(0)
    assert page.evaluate("() => window.answer") is None
    page.evaluate("() => { window.isOld = true; }")
    submit(page, USER)
    expect(page).to_have_url("/")
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_function("() => !window.isOld")


def test_the_header_of_a_proxy_is_tried_once(stranger: Page) -> None:
    tried: list[Any] = []

    def answer(route: Route) -> None:
        tried.append(route.request.post_data_json)
        route.fulfill(
            status=400, json={"detail": "no", "error": {"message": "no", "code": "invalid_credentials"}}
        )

    stranger.route(f"**{AUTHS}/signin", answer)
    configure(stranger, with_features(auth_trusted_header=True, enable_login_form=False))
    stranger.goto("/auth")
    expect(stranger.get_by_role("button", name="Sign in through the proxy")).to_be_enabled()
    expect(stranger.get_by_role("textbox", name="Password", exact=True)).to_have_count(0)
    stranger.wait_for_timeout(100)
    expect(alert(stranger)).to_have_count(0)
    assert tried == [{"email": "", "password": ""}]
    stranger.get_by_role("button", name="Sign in through the proxy").click()
    expect(alert(stranger)).to_be_visible()
    assert len(tried) == 2


def test_the_directory_has_its_own_form(stranger: Page) -> None:
    sent: list[Any] = []

    def answer(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(
            status=400, json={"detail": "no", "error": {"message": "no", "code": "invalid_credentials"}}
        )

    stranger.route(f"**{AUTHS}/ldap", answer)
    configure(stranger, with_features(enable_ldap=True))
    stranger.goto("/auth")
    stranger.get_by_label("User name").fill("ada")
    stranger.get_by_role("textbox", name="Password", exact=True).fill("secret words")
    stranger.get_by_role("button", name="Sign in", exact=True).click()
    expect(alert(stranger)).to_have_text("The user name or the password is wrong.")
    assert sent == [{"user": "ada", "password": "secret words"}]
    stranger.get_by_role("tab", name="Password").click()
    submit(stranger, USER)
    expect(stranger).to_have_url("/")


def test_the_first_account_is_the_administrator(stranger: Page, axe: str) -> None:
    configure(stranger, lambda body: body.update(onboarding=True))
    stranger.goto("/")
    expect(stranger.get_by_text("gatewayctl setup --email")).to_be_visible()
    assert find_violations(stranger, axe) == []
    configure(
        stranger, lambda body: (body.update(onboarding=True), body["features"].update(enable_signup=True))
    )
    stranger.get_by_role("button", name="Check again").click()
    refuse(stranger, f"**{AUTHS}/signup", 403, {}, message="cannot sign up", code="not_set_up")
    stranger.get_by_label("Name", exact=True).fill("Ada")
    stranger.get_by_label("E-mail address").fill("ada@example.com")
    stranger.get_by_label("New password").fill(PASSWORD)
    stranger.get_by_role("button", name="Create the administrator").click()
    expect(alert(stranger)).to_have_text("The gateway has no administrator yet.")


def test_an_invitation_is_accepted_once(stranger: Page, tabs: NewTab, site: Site, axe: str) -> None:
    made = site.ok("POST", f"{AUTHS}/invitations", {"email": "invited@example.com"})
    path = made["url"].removeprefix(site.url)
    stranger.goto(path)
    expect(stranger.get_by_role("heading", name="You are invited to Example Gateway")).to_be_visible()
    assert made["token"] not in stranger.url
    expect(stranger.get_by_label("E-mail address")).to_have_value("invited@example.com")
    expect(stranger.get_by_label("E-mail address")).not_to_be_editable()
    stranger.keyboard.press("Tab")
    expect(stranger.get_by_role("link", name="Skip to the content")).to_be_focused()
    stranger.keyboard.press("Enter")
    expect(stranger.get_by_role("heading", name="You are invited to Example Gateway")).to_be_visible()
    assert find_violations(stranger, axe) == []
    other = tabs("user@example.com")
    other.goto(path)
    expect(other.get_by_text("You are signed in as User (user@example.com).")).to_be_visible()
    other.get_by_role("button", name="Stay signed in as User").click()
    expect(other).to_have_url("/")
    stranger.get_by_label("Name", exact=True).fill("Invited")
    stranger.get_by_label("New password").fill(PASSWORD)
    stranger.get_by_role("button", name="Create my account").click()
    expect(stranger).to_have_url("/")
    other.goto(path)
    expect(alert(other)).to_contain_text("This link does not work")
    expect(other.get_by_role("button", name="Create my account")).to_have_count(0)


def test_a_sign_in_link_works_once_and_asks_first(tabs: NewTab, site: Site) -> None:
    site.add("linked@example.com")
    made = json.loads(site.daemon.run_ctl("-o", "json", "user", "sign-in-link", "linked@example.com").stdout)
    address = f"/auth#{made['address'].partition('#')[2]}"
    page = tabs(USER)
    page.goto("/documents")
    page.get_by_role("heading", level=1).wait_for(state="attached")
    page.goto(address)
    expect(page.get_by_text("You are signed in as User (user@example.com).")).to_be_visible()
    assert "#" not in page.url
    page.get_by_role("button", name="Sign in with the link").click()
    expect(page).to_have_url("/")
    expect(page.get_by_role("button", name="Linked")).to_be_visible()
    page.goto("/auth#link=%3Cscript%3E")
    expect(page).to_have_url("/")
    page.goto(address)
    page.get_by_role("button", name="Sign in with the link").click()
    expect(alert(page)).to_contain_text("This link does not work")


def test_right_to_left_and_phones(tabs: NewTab, axe: str) -> None:
    page = tabs(None, locale="ar", **PHONE)
    page.goto("/auth")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Example Gateway")
    assert page.evaluate("() => document.documentElement.dir") == "rtl"
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]  # type: ignore[index]
    field = page.locator("input[name=password]").bounding_box()
    eye = page.locator(".password-field .icon-button").bounding_box()
    assert field is not None
    assert eye is not None
    assert eye["x"] < field["x"] + 60
    assert find_violations(page, axe) == []
