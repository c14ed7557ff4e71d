"""The administration of accounts, groups, permissions and general settings in a real browser."""

import re
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.fakes.daemons.chat_site import Person
from tests.page.browser import find_violations
from tests.page.conftest import NewContext, NewTab
from tests.page.site import AUTHS, PASSWORD, Site

GROUPS, USERS = "/api/v1/groups", "/api/v1/users"
DEFAULTS = f"{USERS}/default/permissions"
ATTACK = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script><a href="javascript:hit=1">go</a>'
CONFIG = f"{AUTHS}/admin/config"


@pytest.fixture
def person(site: Site) -> Person:
    """Return an account of its own for a test."""
    number = len(site.ok("GET", f"{USERS}/all")["users"])
    return site.add(f"member{number}@example.com")


def row(page: Page, email: str) -> Locator:
    return page.get_by_role("row", name=email)


def choose(page: Page, email: str, verb: str) -> None:
    """Choose a verb of the menu of an account."""
    row(page, email).get_by_role("button", name="Actions for").click()
    page.get_by_role("menuitem", name=verb, exact=True).click()


def add_to(site: Site, group: Any, person: Person) -> None:
    site.ok("POST", f"{GROUPS}/id/{group['id']}/users/add", {"user_ids": [person.id]})


def test_accounts_are_found_sorted_and_changed(site: Site, page: Page, person: Person) -> None:
    page.goto("/admin")
    page.get_by_label("Search by name or e-mail address").fill(person.email)
    expect(page.get_by_text("1 account", exact=True)).to_be_visible()
    choose(page, person.email, "Edit")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Zoë <i>Z</i>")
    dialog.get_by_label("E-mail address").fill("admin@example.com")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("E-mail address")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("E-mail address").fill(f"zoe-{person.email}")
    dialog.get_by_label("Role").select_option("admin")
    dialog.get_by_role("button", name="Save").click()
    expect(row(page, f"zoe-{person.email}")).to_contain_text("Administrator")
    expect(row(page, f"zoe-{person.email}")).to_contain_text("Zoë <i>Z</i>")
    page.get_by_label("Search by name or e-mail address").fill("")
    name = page.get_by_role("columnheader", name="Name")
    name.get_by_role("button").click()
    expect(name).to_have_attribute("aria-sort", "ascending")
    first = page.locator("tbody tr").first
    expect(first).not_to_contain_text("Zoë")
    name.get_by_role("button").click()
    expect(first).to_contain_text("Zoë")
    site.ok("DELETE", f"{USERS}/{person.id}")


def test_an_account_is_deactivated_and_deleted(
    site: Site, page: Page, person: Person, tabs: NewTab, axe: str
) -> None:
    theirs = tabs(person.email)
    theirs.goto("/settings/account")
    theirs.get_by_role("heading", name="Sessions").wait_for()
    site.ok("POST", f"{AUTHS}/api_keys", {"name": "laptop <b>"}, person)
    page.goto("/admin/users")
    page.get_by_label("Search by name or e-mail address").fill(person.email)
    expect(page.get_by_text("1 account", exact=True)).to_be_visible()
    choose(page, person.email, "Sessions")
    expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_count(2)
    assert find_violations(page, axe) == []
    page.get_by_role("dialog").get_by_role("button", name="End all sessions").click()
    expect(page.get_by_role("dialog").get_by_text("No sessions.")).to_be_visible()
    expect(theirs).to_have_url(re.compile("/auth"))
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    choose(page, person.email, "API Keys")
    keys = page.get_by_role("dialog", name="API keys of")
    expect(keys).to_contain_text("laptop <b>")
    assert find_violations(page, axe) == []
    keys.get_by_role("button", name="Revoke laptop <b>").click()
    page.get_by_role("button", name="Revoke key").click()
    expect(keys.get_by_text("No API keys yet.")).to_be_visible()
    keys.get_by_role("button", name="Close").click()
    choose(page, person.email, "Set password")
    page.get_by_role("dialog").get_by_label("New password").fill("another good secret")
    page.get_by_role("dialog").get_by_role("button", name="Set password").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    form = {"email": person.email, "password": "another good secret"}
    assert site.daemon.call("POST", f"{AUTHS}/signin", form)[0] == 200
    choose(page, person.email, "Deactivate")
    question = page.get_by_role("dialog")
    expect(question).to_contain_text(f"The sessions of {person.email} end at once")
    question.get_by_role("button", name="Deactivate").click()
    expect(row(page, person.email)).to_contain_text("Deactivated")
    assert site.daemon.call("POST", f"{AUTHS}/signin", form)[0] != 200
    choose(page, person.email, "Activate")
    expect(row(page, person.email)).to_contain_text("User")
    choose(page, person.email, "Delete account")
    expect(page.get_by_role("dialog")).to_contain_text("API keys, sessions, memberships and chats")
    page.get_by_role("dialog").get_by_role("button", name="Delete account").click()
    expect(page.get_by_text("No account matches.")).to_be_visible()
    assert site.call("GET", f"{USERS}/{person.id}")[0] == 404


def test_several_accounts_are_changed_at_once(site: Site, page: Page) -> None:
    people = [site.add(f"several{number}@example.com") for number in range(2)]
    group = site.ok("POST", f"{GROUPS}/create", {"name": "Together"})
    page.goto("/admin/users")
    page.get_by_label("Search by name or e-mail address").fill("several")
    expect(page.get_by_text("2 accounts", exact=True)).to_be_visible()
    page.get_by_role("checkbox", name="Select all").check()
    chosen = page.get_by_role("region", name="Selected accounts")
    expect(chosen.get_by_text("2 accounts selected")).to_be_visible()
    chosen.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Add to Together").click()
    expect(page.locator("tbody").get_by_text("Together")).to_have_count(2)
    expect(chosen).to_have_count(0)
    page.get_by_role("checkbox", name="Select all").check()
    chosen.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Deactivate").click()
    page.get_by_role("dialog", name="Deactivate 2 accounts?").get_by_role("button", name="Deactivate").click()
    expect(page.locator("tbody").get_by_text("Deactivated")).to_have_count(2)
    assert [site.call("GET", f"{AUTHS}/", who=person)[0] for person in people] == [401, 401]
    site.ok("DELETE", f"{GROUPS}/id/{group['id']}/delete")


def test_an_account_is_created_and_another_invited(site: Site, page: Page) -> None:
    page.goto("/admin/users")
    page.get_by_role("button", name="Create account").click()
    dialog = page.get_by_role("dialog", name="Create account")
    dialog.get_by_label("Name").fill("Created")
    dialog.get_by_label("E-mail address").fill("created@example.com")
    dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    dialog.get_by_role("button", name="Create account").click()
    expect(row(page, "created@example.com")).to_be_visible()
    page.get_by_role("button", name="Invite", exact=True).click()
    dialog = page.get_by_role("dialog", name="Invite")
    dialog.get_by_label("E-mail address").fill("guest@example.com")
    dialog.get_by_role("button", name="Invite").click()
    link = page.get_by_test_id("invitation-link").inner_text()
    assert link.startswith(f"{site.url}/auth#invitation=")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(row(page, "guest@example.com")).to_be_visible()
    page.get_by_role("button", name="Revoke the invitation of guest@example.com").click()
    expect(row(page, "guest@example.com")).to_have_count(0)
    token = {"token": link.partition("=")[2]}
    assert site.daemon.call("POST", f"{AUTHS}/invitations/show", token)[0] == 400


def test_a_grant_of_a_group_counts_at_once(site: Site, page: Page, person: Person, axe: str) -> None:
    def create() -> int:
        return site.call("POST", "/api/v1/knowledge/create", {"name": "Mine", "description": ""}, person)[0]

    assert create() != 200
    page.goto("/admin/groups")
    page.get_by_role("button", name="Create group").click()
    page.get_by_role("dialog").get_by_label("Name").fill("Writers")
    page.get_by_role("dialog").get_by_role("button", name="Create group").click()
    expect(page.get_by_role("heading", name="Writers", level=1)).to_be_visible()
    page.get_by_role("button", name="Add members").click()
    page.get_by_label("Search accounts by name or e-mail address").fill(person.email)
    page.get_by_role("button", name=re.compile("^Add Member")).click()
    expect(row(page, person.email)).to_contain_text("Administrator")
    page.get_by_role("tab", name="Permissions").click()
    page.get_by_label("Search permissions").fill("workspace.knowledge")
    box = page.get_by_role("checkbox", name="Collections")
    expect(page.get_by_text("Not allowed")).to_be_visible()
    box.check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Permissions saved. They apply at once.")).to_be_visible()
    assert create() == 200
    page.get_by_label("Search permissions").fill("chat.edit")
    inherited = page.get_by_role("checkbox", name="Edit messages")
    assert inherited.evaluate("(box) => [box.checked, box.indeterminate]") == [False, True]
    expect(page.get_by_text("Allowed by default")).to_be_visible()
    assert find_violations(page, axe) == []
    page.get_by_role("tab", name="Members").click()
    row(page, person.email).get_by_role("checkbox").check()
    page.get_by_role("button", name="Remove 1 member").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No members yet.")).to_be_visible()
    assert create() != 200
    page.get_by_role("tab", name="General").click()
    page.get_by_role("button", name="Delete group").click()
    page.get_by_role("dialog", name="Delete Writers?").get_by_role("button", name="Delete group").click()
    expect(page).to_have_url("/admin/groups")


def test_members_of_a_provider_are_told_apart(site: Site, page: Page, person: Person) -> None:
    group = site.ok("POST", f"{GROUPS}/create", {"name": "Provided <b>"})
    add_to(site, group, person)
    site.daemon.run_ctl("group", "link", group["id"], "--provider", "entra", "--external-id", "g-1")
    page.goto(f"/admin/groups/{group['id']}")
    expect(page.get_by_role("heading", name="Provided <b>", level=1)).to_be_visible()
    expect(page.get_by_text("entra: g-1")).to_be_visible()
    expect(page.get_by_text("Administrator: 1")).to_be_visible()
    site.ok("DELETE", f"{GROUPS}/id/{group['id']}/delete")


def test_default_permissions_apply_to_users(site: Site, page: Page, user_page: Page) -> None:
    before = site.ok("GET", DEFAULTS)
    page.goto("/admin/permissions")
    page.get_by_label("Search permissions").fill("api_keys")
    box = page.get_by_role("checkbox", name="API Keys")
    box.uncheck()
    expect(page.get_by_text("There are changes that are not saved.")).to_be_visible()
    page.get_by_role("button", name="Discard").click()
    expect(box).to_be_checked()
    box.uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Permissions saved. They apply at once.")).to_be_visible()
    user_page.goto("/settings/account")
    expect(user_page.get_by_text("You cannot create API keys:")).to_be_visible()
    box.check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    assert site.ok("GET", DEFAULTS) == before


def test_keys_reach_the_allowed_endpoints_alone(site: Site, page: Page, person: Person) -> None:
    key = site.ok("POST", f"{AUTHS}/api_keys", {"name": "restricted"}, person)["api_key"]
    bearer = {"Authorization": f"Bearer {key}"}
    names = ["ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS", "API_KEYS_ALLOWED_ENDPOINTS"]
    page.goto("/admin/general")
    expect(page.get_by_text("From environment ENABLE_API_KEYS.")).to_be_visible()
    try:
        page.get_by_role("switch", name="API Key Endpoint Restrictions").check()
        page.get_by_role("button", name="/api/models").click()
        allowed = page.get_by_role("textbox", name="Allowed Endpoints")
        expect(allowed).to_have_value("/api/models")
        assert site.daemon.call("GET", "/api/models", None, bearer)[0] == 200
        assert site.daemon.call("GET", "/api/v1/files/", None, bearer)[0] == 403
        allowed.fill("/api/models, files")
        page.get_by_role("heading", name="General").click()
        expect(page.get_by_text("endpoint 'files' matches nothing")).to_be_visible()
        page.get_by_role("button", name="Return to it: Allowed Endpoints").click()
        expect(allowed).to_have_value("")
        page.get_by_role("button", name="Return to it: API Key Endpoint Restrictions").click()
        expect(allowed).to_have_count(0)
    finally:
        site.ok("POST", f"{CONFIG}/reset", {"names": names})
    assert site.daemon.call("GET", "/api/v1/files/", None, bearer)[0] == 200


def test_a_wrong_value_stays_and_a_fixed_one_is_locked(site: Site, page: Page) -> None:
    rows = site.ok("GET", f"{CONFIG}/origins")
    fixed = {"origin": "/etc/gatewayd/gatewayd.toml", "fixed": True}
    rows = [{**one, **fixed} if one["name"] in {"ENABLE_SIGNUP", "WEBUI_URL"} else one for one in rows]
    page.route(f"**{CONFIG}/origins", lambda route: route.fulfill(json=rows))
    page.goto("/admin/general")
    expect(page.get_by_text("Set by /etc/gatewayd/gatewayd.toml; change it there.")).to_have_count(2)
    expect(page.get_by_role("switch", name="Allow sign-up")).to_be_disabled()
    expect(page.get_by_label("Public address")).not_to_be_editable()
    lifetime = page.get_by_label("Lifetime of a session")
    lifetime.fill("soon")
    lifetime.press("Enter")
    expect(lifetime).to_have_attribute("aria-invalid", "true")
    expect(lifetime).to_have_value("soon")


def test_foreign_texts_are_texts(site: Site, page: Page, contexts: NewContext) -> None:
    person = site.add("hostile@example.com")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for picture in ("https://outside.invalid/x.png", f"data:image/svg+xml,{quote(ATTACK)}"):
        form = {"name": ATTACK[:255], "profile_image_url": picture}
        if site.call("POST", f"{AUTHS}/update/profile", form, person)[0] == 200:
            page.goto("/admin/users")
            expect(row(page, "hostile@example.com")).to_contain_text(ATTACK[:40])
            expect(page.locator("tbody img")).to_have_count(0)
    group = site.ok("POST", f"{GROUPS}/create", {"name": ATTACK, "description": ATTACK})
    add_to(site, group, person)
    site.ok("POST", f"{AUTHS}/api_keys", {"name": ATTACK[:120]}, person)
    headers = {"User-Agent": ATTACK}
    status, session = site.daemon.call(
        "POST", f"{AUTHS}/signin", {"email": "hostile@example.com", "password": PASSWORD}, headers
    )
    assert status == 200
    for path in ("/admin/groups", f"/admin/groups/{group['id']}", "/admin/users"):
        page.goto(path)
        expect(page.get_by_text(ATTACK[:30]).first).to_be_visible()
    choose(page, "hostile@example.com", "Sessions")
    expect(page.get_by_role("dialog").get_by_text(ATTACK[:30]).first).to_be_visible()
    theirs = contexts(None)
    theirs.add_cookies([{"name": "token", "value": session["token"], "url": site.url}])
    own = theirs.new_page()
    own.goto("/settings/account")
    own.get_by_role("button", name="Revoke").first.click()
    expect(own.get_by_role("dialog")).to_contain_text(ATTACK[:30])
    assert page.evaluate("() => window.hit") is None
    assert own.evaluate("() => window.hit") is None
    assert [url for url in asked if not url.startswith((site.url, "data:"))] == []
    site.ok("DELETE", f"{GROUPS}/id/{group['id']}/delete")


def test_users_are_refused(site: Site, user_page: Page) -> None:
    asked: list[str] = []
    user_page.on(
        "request", lambda request: asked.append(request.url) if "/api/v1/users" in request.url else None
    )
    for path in ("/admin", "/admin/users", "/admin/groups/x", "/admin/permissions", "/admin/general"):
        user_page.goto(path)
        expect(
            user_page.get_by_role("heading", name=re.compile("^You may not do this.")).first
        ).to_be_visible()
    assert asked == []
    for path in (
        f"{USERS}/",
        f"{CONFIG}/origins",
        DEFAULTS,
        f"{AUTHS}/invitations",
        f"{GROUPS}/id/x/members",
    ):
        assert site.call("GET", path, who=site.user)[0] == 403
