"""The settings of one's own account in a real browser."""

import base64
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.fakes.daemons.chat_site import Person
from tests.page.browser import PHONE, Noise, find_violations
from tests.page.conftest import NewTab
from tests.page.site import ADMIN, AUTHS, PASSWORD, Site

NEW_PASSWORD = "staple battery horse"
PICTURE = """() => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [900, 600];
  canvas.getContext("2d").fillRect(0, 0, 300, 300);
  return canvas.toDataURL("image/png").split(",")[1];
}"""


@pytest.fixture
def owner(site: Site) -> Person:
    """Return an account of its own for a test."""
    number = len(site.ok("GET", "/api/v1/users/all")["users"])
    return site.add(f"person{number}@example.com")


@pytest.fixture
def tab(tabs: NewTab, owner: Person) -> Page:
    """Return a tab of that account on its settings."""
    page = tabs(owner.email)
    page.goto("/settings/account")
    page.get_by_role("heading", name="API Keys").wait_for()
    return page


def section(page: Page, name: str) -> Locator:
    return page.locator("section", has=page.get_by_role("heading", name=name, exact=True))


def test_a_key_is_shown_once_used_and_revoked(site: Site, tab: Page, axe: str) -> None:
    keys = section(tab, "API Keys")
    keys.get_by_label("Name", exact=True).fill("laptop")
    keys.get_by_label("Expires").select_option("90")
    keys.get_by_role("button", name="Create key").click()
    value = tab.get_by_test_id("new-key").inner_text()
    bearer = {"Authorization": f"Bearer {value}"}
    assert site.daemon.call("GET", "/api/models", None, bearer)[0] == 200
    lines = keys.locator("pre").inner_text().splitlines()
    assert lines[0] == f"export GATEWAY_KEY='{value}'"
    assert lines[1] == f'curl -H "Authorization: Bearer $GATEWAY_KEY" {site.url}/api/models'
    expect(keys.get_by_role("row", name="laptop")).to_contain_text("in 3 months")
    tab.set_viewport_size(PHONE["viewport"])  # type: ignore[arg-type]
    assert tab.evaluate("() => document.querySelector('main').scrollWidth") <= 393
    tab.set_viewport_size({"width": 1280, "height": 720})
    assert find_violations(tab, axe) == []
    keys.get_by_role("button", name="I have kept the key").click()
    assert value not in tab.content()
    tab.reload()
    keys.get_by_role("button", name="Revoke laptop").click()
    assert value not in tab.content()
    question = tab.get_by_role("dialog", name="Revoke laptop?")
    question.get_by_role("button", name="Revoke key").click()
    expect(keys.get_by_text("No API keys yet.")).to_be_visible()
    assert site.daemon.call("GET", "/api/models", None, bearer)[0] == 401


def test_a_key_by_the_keyboard_alone(tab: Page) -> None:
    keys = section(tab, "API Keys")
    name = keys.get_by_label("Name", exact=True)
    name.wait_for()
    for _ in range(40):
        tab.keyboard.press("Tab")
        if name.evaluate("(field) => field === document.activeElement"):
            break
    tab.keyboard.type("by keys")
    tab.keyboard.press("Tab")
    tab.keyboard.press("End")
    expect(keys.get_by_label("Expires")).to_have_value("")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    expect(tab.get_by_test_id("new-key")).to_be_visible()
    expect(keys.get_by_role("row", name="by keys")).to_contain_text("Never")


def test_a_refused_key_keeps_what_was_typed(site: Site, owner: Person, tab: Page) -> None:
    site.ok("POST", f"{AUTHS}/api_keys", {"name": "taken"}, owner)
    keys = section(tab, "API Keys")
    keys.get_by_label("Name", exact=True).fill("taken")
    keys.get_by_label("Expires").select_option("date")
    keys.get_by_label("Last day").fill("2020-01-01")
    keys.get_by_role("button", name="Create key").click()
    expect(keys.get_by_label("Last day")).to_have_attribute("aria-invalid", "true")
    expect(keys.get_by_text("it is not in the future")).to_be_visible()
    keys.get_by_label("Last day").fill("2090-01-01")
    keys.get_by_role("button", name="Create key").click()
    expect(keys.get_by_label("Name", exact=True)).to_have_value("taken")
    expect(keys.get_by_text("taken").last).to_be_visible()


def test_an_account_without_the_permission_reads_why(site: Site, page: Page) -> None:
    page.goto("/settings/account")
    keys = section(page, "API Keys")
    expect(keys.get_by_text("You cannot create API keys:")).to_be_visible()
    expect(keys.get_by_role("button", name="Create key")).to_have_count(0)
    group = site.ok(
        "POST", "/api/v1/groups/create", {"name": "keys", "permissions": {"features": {"api_keys": True}}}
    )
    site.ok("POST", f"/api/v1/groups/id/{group['id']}/users/add", {"user_ids": [site.admin.id]})
    page.reload()
    expect(keys.get_by_role("button", name="Create key")).to_be_visible()
    site.ok("DELETE", f"/api/v1/groups/id/{group['id']}/delete")


def test_name_and_picture(site: Site, owner: Person, tab: Page) -> None:
    profile = section(tab, "Profile")
    profile.get_by_label("Name").fill("Ada <b>Lovelace</b>")
    picture = tab.evaluate(PICTURE)
    chooser = profile.locator("input[type=file]")
    chooser.set_input_files(
        {"name": "x.svg", "mimeType": "image/png", "buffer": b"<svg xmlns='http://www.w3.org/2000/svg'/>"}
    )
    expect(profile.get_by_role("alert")).to_have_text("This file is no picture that the browser can read.")
    chooser.set_input_files({"name": "x.png", "mimeType": "image/png", "buffer": base64.b64decode(picture)})
    expect(profile.locator("img.avatar")).to_be_visible()
    profile.get_by_role("button", name="Save the profile").click()
    expect(tab.get_by_role("button", name="Ada <b>Lovelace</b>")).to_be_visible()
    shown = site.ok("GET", f"{AUTHS}/", who=owner)
    assert shown["name"] == "Ada <b>Lovelace</b>"
    assert shown["profile_image_url"].startswith("data:image/png;base64,")
    assert len(shown["profile_image_url"]) < 200_000
    profile.get_by_role("button", name="Remove the picture").click()
    profile.get_by_role("button", name="Save the profile").click()
    expect(profile.locator("img.avatar")).to_have_count(0)


def test_a_new_password_ends_the_other_sessions(site: Site, owner: Person, tabs: NewTab, tab: Page) -> None:
    other = tabs(owner.email)
    other.goto("/settings/account")
    other.get_by_role("heading", name="Sessions").wait_for()
    form = section(tab, "Password")
    form.get_by_label("Present password").fill("wrong one")
    form.get_by_label("New password").fill(NEW_PASSWORD)
    form.get_by_role("button", name="Change the password").click()
    expect(form.get_by_label("Present password")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Present password").fill(PASSWORD)
    form.get_by_label("New password").fill("password1")
    form.get_by_role("button", name="Change the password").click()
    expect(form.get_by_text("This password is easy to guess:")).to_be_visible()
    form.get_by_label("New password").fill(NEW_PASSWORD)
    form.get_by_role("button", name="Change the password").click()
    expect(tab.get_by_text("Password changed. All other sessions have ended.")).to_be_visible()
    expect(tab).to_have_url("/settings/account")
    expect(form.get_by_label("Present password")).to_have_value("")
    expect(other).to_have_url(re.compile("/auth"))
    assert site.call("GET", f"{AUTHS}/", who=owner)[0] == 401
    tab.reload()
    expect(tab.get_by_role("heading", name="Sessions")).to_be_visible()


def test_events_come_after_a_new_password(tab: Page, noise: Noise) -> None:
    noise.expect("401")
    form = section(tab, "Password")
    form.get_by_label("Present password").fill(PASSWORD)
    form.get_by_label("New password").fill(NEW_PASSWORD)

    def answer(route: Route) -> None:
        with tab.expect_response(lambda reply: reply.url.endswith("/api/v1/events") and reply.status == 401):
            pass
        route.continue_()

    tab.route(f"**{AUTHS}/signin", answer)
    with tab.expect_response(lambda reply: reply.url.endswith("/api/v1/events") and reply.status == 200):
        form.get_by_role("button", name="Change the password").click()
    expect(tab.get_by_text("Password changed. All other sessions have ended.")).to_be_visible()


def test_sessions_are_listed_and_ended(site: Site, owner: Person, tabs: NewTab, tab: Page) -> None:
    other = tabs(owner.email, user_agent="Mozilla/5.0 (X11; Linux) Firefox/140.0")
    other.goto("/auth")
    other.evaluate("() => fetch('/api/v1/auths/signout', {method: 'POST'})")
    other.goto("/auth?redirect=/settings/account")
    other.get_by_label("E-mail address").fill(owner.email)
    other.get_by_label("Password", exact=True).fill(PASSWORD)
    other.get_by_role("button", name="Sign in", exact=True).click()
    expect(section(other, "Sessions").get_by_text("Firefox on Linux").first).to_be_visible()
    tab.reload()
    sessions = section(tab, "Sessions")
    expect(sessions.get_by_text("This browser")).to_have_count(1)
    sessions.get_by_role("button", name="End the session of Firefox on Linux").click()
    expect(sessions.get_by_text("Firefox on Linux")).to_have_count(0)
    expect(other).to_have_url(re.compile("/auth"))
    sessions.get_by_role("button", name="End all other sessions").click()
    expect(sessions.get_by_role("listitem")).to_have_count(1)
    assert site.call("GET", f"{AUTHS}/", who=owner)[0] == 401


def test_providers_are_unlinked_after_a_confirmation(tab: Page) -> None:
    asked: list[Any] = []
    row = {
        "provider": "company",
        "label": "Company",
        "linked_at": 1_700_000_000,
        "subject_hint": "…42",
        "email": "",
    }

    def identities(route: Route) -> None:
        route.fulfill(json=[{**row, "linked": len(asked) < 3}])

    def unlink(route: Route) -> None:
        asked.append("unlink")
        error = {"message": "confirm", "code": "confirmation_needed"}
        if len(asked) == 1:
            route.fulfill(status=403, json={"detail": "confirm", "error": error})
        else:
            route.fulfill(json=True)

    def confirm(route: Route) -> None:
        if route.request.method == "GET":
            route.fulfill(json={"is_fresh": False, "has_password": True})
            return
        asked.append(route.request.post_data_json)
        route.fulfill(json=True)

    tab.route(f"**{AUTHS}/identities", identities)
    tab.route(f"**{AUTHS}/identities/company", unlink)
    tab.route(f"**{AUTHS}/confirm", confirm)
    tab.reload()
    providers = section(tab, "Identity providers")
    providers.get_by_role("button", name="Unlink Company").click()
    tab.get_by_role("dialog").get_by_role("button", name="Unlink").click()
    ask = tab.get_by_role("dialog", name="Confirm that it is you")
    ask.locator("input").fill(PASSWORD)
    ask.get_by_role("button", name="Confirm").click()
    expect(providers.get_by_text("Linked")).to_have_count(0)
    assert asked == ["unlink", {"password": PASSWORD}, "unlink"]


def test_an_account_of_a_provider_has_no_password_to_change(tab: Page) -> None:
    row = {
        "provider": "company",
        "label": "Company",
        "linked": False,
        "linked_at": None,
        "subject_hint": "",
        "email": "",
    }
    offered = {"providers": {"company": "Company"}, "auto_redirect": False}
    gone: list[str] = []
    tab.route("**/api/config", lambda route: route.fulfill(json={**route.fetch().json(), "oauth": offered}))
    tab.route(f"**{AUTHS}/identities", lambda route: route.fulfill(json=[row]))
    tab.route(
        f"**{AUTHS}/confirm", lambda route: route.fulfill(json={"is_fresh": False, "has_password": False})
    )
    tab.route("**/oauth/**", lambda route: gone.append(route.request.url))
    tab.reload()
    expect(
        tab.get_by_text("The account has no password: you sign in by an identity provider.")
    ).to_be_visible()
    expect(tab.get_by_label("Present password")).to_have_count(0)
    tab.get_by_role("button", name="Link Company").click()
    question = tab.get_by_role("dialog", name="Confirm that it is you")
    expect(question).to_contain_text("Sign out and sign in again")
    question.get_by_role("button", name="Cancel").click()
    expect(question).to_have_count(0)
    assert gone == []


def test_language_and_colours_stay(tabs: NewTab, axe: str) -> None:
    page = tabs(**PHONE)
    page.goto("/settings/interface")
    page.get_by_label("Colours").select_option("dark")
    page.get_by_label("Language").select_option("ar")
    expect(page.get_by_role("heading", level=1)).to_have_text("الواجهة")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("الواجهة")
    shown = page.evaluate("() => [document.documentElement.dir, document.documentElement.dataset.theme]")
    assert shown == ["rtl", "dark"]
    for path in ("/settings/account", "/admin/users", "/admin/general"):
        page.goto(path)
        page.get_by_role("heading", level=1).wait_for()
        expect(page.locator(".skeleton")).to_have_count(0)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 393, path
        assert find_violations(page, axe) == []


def test_notices_of_the_browser_need_its_permission(tabs: NewTab) -> None:
    page = tabs(ADMIN)
    page.goto("/settings/interface")
    switch = page.get_by_role("switch", name="Tell me when an answer is ready")
    page.evaluate("() => { Notification.requestPermission = async () => 'denied'; }")
    switch.click()
    expect(page.get_by_text("The browser does not permit it.")).to_be_visible()
    expect(switch).not_to_be_checked()
    page.context.grant_permissions(["notifications"])
    page.reload()
    switch.click()
    expect(switch).to_be_checked()
    page.evaluate(
        """() => {
          window.told = [];
          window.Notification = class {
            static permission = "granted";
            constructor(...given) { window.told.push(given); }
          };
          Object.defineProperty(document, "hidden", {value: true});
          return import("#app/core/title").then(({ hasNews }) => { hasNews.value = true; });
        }"""
    )
    told = page.evaluate("() => window.told")
    assert told == [["Example Gateway", {"body": "An answer is ready.", "tag": "gatewayd"}]]


def test_the_settings_of_somebody_else_are_refused(site: Site, owner: Person) -> None:
    sessions = site.ok("GET", f"{AUTHS}/sessions")
    assert site.call("DELETE", f"{AUTHS}/sessions/{sessions[0]['id']}", who=owner)[0] == 404
    assert site.call("GET", f"/api/v1/users/{site.admin.id}/sessions", who=owner)[0] == 403
