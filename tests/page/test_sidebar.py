"""The sidebar and the overview in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.fakes.daemons.chat_site import Person
from tests.page.browser import PHONE, find_violations
from tests.page.conftest import NewTab
from tests.page.site import PASSWORD, Site, steps

CHATS, FOLDERS = "/api/v1/chats", "/api/v1/folders"


@pytest.fixture
def owner(site: Site) -> Person:
    """Return an account of its own for a test."""
    number = len(site.ok("GET", "/api/v1/users/all")["users"])
    return site.add(f"owner{number}@example.com")


@pytest.fixture
def tab(tabs: NewTab, owner: Person) -> Page:
    return tabs(owner.email)


def chat(site: Site, who: Person, title: str, text: str = "Hello", **more: Any) -> str:
    node = {"id": "q1", "parentId": None, "childrenIds": ["a1"], "role": "user", "content": "Ask"}
    answer = {"id": "a1", "parentId": "q1", "childrenIds": [], "role": "assistant", "content": text, **more}
    history = {"messages": {"q1": node, "a1": answer}, "currentId": "a1"}
    made = site.ok("POST", f"{CHATS}/new", {"chat": {"title": title, "history": history}}, who)
    return str(made["id"])


def row(page: Page, title: str) -> Locator:
    return page.locator(".sidebar .chat-row", has=page.get_by_role("link", name=title, exact=True))


def pick(page: Page, title: str, command: str) -> None:
    """Choose a command of the menu of a chat."""
    row(page, title).get_by_role("button", name=f"Menu of {title}").click()
    page.get_by_role("menuitem", name=command, exact=True).click()


def folder_row(page: Page, name: str) -> Locator:
    return page.locator(".folder-row", has=page.get_by_role("button", name=name, exact=True))


def test_chats_by_time_and_what_can_be_done_with_one(site: Site, owner: Person, tab: Page) -> None:
    chat(site, owner, "Herons")
    old = {"chat": {"title": "Old owls"}, "created_at": 1_600_000_000, "updated_at": 1_600_000_000}
    site.ok("POST", f"{CHATS}/import", {"chats": [old]}, owner)
    tab.goto("/overview")
    lists = tab.get_by_role("navigation", name="Chats")
    expect(lists.get_by_role("heading", level=3)).to_have_text(["Today", "September 2020"])
    pick(tab, "Herons", "Rename")
    tab.get_by_role("textbox", name="Rename chat").fill("Cranes")
    tab.keyboard.press("Enter")
    expect(row(tab, "Cranes")).to_be_visible()
    pick(tab, "Cranes", "Pin")
    expect(lists.get_by_role("region", name="Pinned").get_by_role("link")).to_have_text(["Cranes"])
    pick(tab, "Cranes", "Unpin")
    expect(lists.get_by_role("region", name="Pinned")).to_have_count(0)
    pick(tab, "Cranes", "Archive")
    expect(row(tab, "Cranes")).to_have_count(0)
    tab.get_by_role("button", name="Undo").click()
    expect(row(tab, "Cranes")).to_be_visible()
    pick(tab, "Cranes", "Make a copy")
    expect(row(tab, "Clone of Cranes").get_by_role("link")).to_have_attribute("aria-current", "page")
    pick(tab, "Clone of Cranes", "Delete")
    dialog = tab.get_by_role("dialog", name="Delete chat")
    expect(dialog).to_contain_text("“Clone of Cranes” and all its messages are deleted.")
    dialog.get_by_role("button", name="Delete chat").click()
    expect(row(tab, "Clone of Cranes")).to_have_count(0)
    expect(tab).to_have_url("/")


def test_tags_and_sharing(site: Site, owner: Person, tab: Page, axe: str) -> None:
    chat_id = chat(site, owner, "Herons")
    tab.goto("/overview")
    pick(tab, "Herons", "Tags")
    dialog = tab.get_by_role("dialog", name="Tags of “Herons”")
    dialog.get_by_role("combobox", name="New tag").fill("Water <b>birds</b>")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("listitem")).to_have_text(["Water <b>birds</b>"])
    chat(site, owner, "Owls")
    tab.keyboard.press("Escape")
    expect(row(tab, "Owls")).to_be_visible()
    tab.get_by_role("button", name="Filter by tag").click()
    tab.get_by_role("dialog", name="Filter by tag").get_by_role("button", name="Water <b>birds</b>").click()
    expect(tab.locator(".sidebar .chat-row")).to_have_text(["Herons"])
    tagged = tab.get_by_role("region", name="Chats with the tag “Water <b>birds</b>”")
    expect(tagged.get_by_role("link")).to_have_count(1)
    assert find_violations(tab, axe) == []
    site.ok("POST", f"{CHATS}/{chat(site, owner, 'Cranes')}/tags", {"name": "water <b>birds</b>"}, owner)
    expect(tab.locator(".sidebar .chat-row")).to_have_text(["Cranes", "Herons"])
    tagged.get_by_role("button", name="All chats").click()
    expect(row(tab, "Owls")).to_be_visible()
    pick(tab, "Herons", "Tags")
    dialog.get_by_role("button", name="Remove the tag").click()
    expect(dialog.get_by_role("listitem")).to_have_count(0)
    tab.keyboard.press("Escape")
    pick(tab, "Herons", "Share")
    dialog = tab.get_by_role("dialog", name="Share “Herons”")
    dialog.get_by_role("button", name="Create link").click()
    link = dialog.get_by_role("textbox", name="Link").input_value()
    share_id = site.ok("GET", f"{CHATS}/{chat_id}", None, owner)["share_id"]
    assert link == f"{site.url}/s/{share_id}"
    dialog.get_by_role("button", name="Stop sharing").click()
    expect(dialog.get_by_role("textbox", name="Link")).to_have_count(0)
    assert site.call("GET", f"{CHATS}/share/{share_id}", None, owner)[0] == 404


def test_folders_by_drag_and_by_keyboard(site: Site, owner: Person, tab: Page) -> None:
    chat(site, owner, "Herons")
    tab.goto("/overview")
    for name in ("Birds", "Water"):
        tab.get_by_role("button", name="New folder", exact=True).click()
        tab.get_by_role("textbox", name="New folder").fill(name)
        tab.keyboard.press("Enter")
        expect(folder_row(tab, name)).to_be_visible()
    row(tab, "Herons").drag_to(folder_row(tab, "Birds"))
    expect(row(tab, "Herons")).to_have_count(0)
    folder_row(tab, "Birds").get_by_role("button", name="Birds", exact=True).click()
    expect(folder_row(tab, "Birds").get_by_role("link", name="Herons")).to_be_visible()
    folder_row(tab, "Water").drag_to(folder_row(tab, "Birds").locator(".folder-head"))
    expect(folder_row(tab, "Water")).to_have_attribute("data-depth", "1")
    row(tab, "Herons").drag_to(tab.get_by_role("heading", name="Chats"))
    expect(tab.get_by_role("region", name="Chats").get_by_role("link")).to_have_text(["Herons"])
    # The same by keyboard: the chat into the inner folder, and out of all.
    button = row(tab, "Herons").get_by_role("button", name="Menu of Herons")
    button.focus()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("menuitem", name="Rename")).to_be_focused()
    tab.keyboard.press("m")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("button", name="No folder")).to_be_focused()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        tab.keyboard.press(key)
    expect(folder_row(tab, "Birds").get_by_text("No chats in this folder.")).to_be_visible()
    [water] = [one for one in site.ok("GET", f"{FOLDERS}/", None, owner) if one["name"] == "Water"]
    assert [one["title"] for one in site.ok("GET", f"{CHATS}/folder/{water['id']}/list", None, owner)] == [
        "Herons"
    ]
    folder_row(tab, "Water").get_by_role("button", name="Water", exact=True).focus()
    tab.keyboard.press("F2")
    tab.get_by_role("textbox", name="Rename folder").fill("Lakes")
    tab.keyboard.press("Enter")
    expect(folder_row(tab, "Lakes")).to_be_visible()
    folder_row(tab, "Lakes").get_by_role("button", name="Lakes", exact=True).press("Delete")
    dialog = tab.get_by_role("dialog", name="Delete folder")
    expect(dialog).to_contain_text("“Lakes” holds one chat.")
    dialog.get_by_role("button", name="Delete folder").click()
    expect(row(tab, "Herons")).to_be_visible()
    expect(tab.locator(".folder-row")).to_have_count(1)


def test_two_tabs_stay_in_step(site: Site, owner: Person, tabs: NewTab) -> None:
    chat_id = chat(site, owner, "Herons")
    first, second = tabs(owner.email), tabs(owner.email)
    for page in (first, second):
        page.goto("/overview")
        expect(row(page, "Herons")).to_be_visible()
    chat(site, owner, "Owls")
    for page in (first, second):
        expect(page.locator(".chat-row > a")).to_have_text(["Owls", "Herons"])
    pick(first, "Herons", "Pin")
    expect(second.get_by_role("region", name="Pinned").get_by_role("link")).to_have_text(["Herons"])
    question = steps({"emit": {"type": "chat:title", "data": "Grey herons"}}, {"wait": "titled"})
    messages = [{"role": "user", "content": question}]
    asked = {"model": "script", "chat_id": chat_id, "id": "a1", "session_id": "s", "messages": messages}
    site.ok("POST", "/api/chat/completions", asked, owner)
    for page in (first, second):
        expect(row(page, "Grey herons").get_by_text("is being answered")).to_be_attached()
    site.go_on("titled")
    for page in (first, second):
        expect(page.get_by_text("is being answered")).to_have_count(0)
    site.ok("POST", f"{CHATS}/{chat_id}", {"chat": {"title": "Grey herons"}}, owner)
    for page in (first, second):
        expect(row(page, "Grey herons")).to_be_visible()
    site.ok("DELETE", f"{CHATS}/{chat_id}", None, owner)
    for page in (first, second):
        expect(page.locator(".chat-row > a")).to_have_text(["Owls"])


def test_the_search_shows_the_passage(site: Site, owner: Person, tab: Page) -> None:
    chat_id = chat(site, owner, "Birds", "They stand in the REEDS <img src=x onerror=alert(1)> all day.")
    chat(site, owner, "Reedy lakes", "Nothing.")
    tab.goto("/overview")
    expect(row(tab, "Birds")).to_be_visible()
    tab.keyboard.press("Control+k")
    dialog = tab.get_by_role("dialog", name="Search chats")
    dialog.get_by_role("searchbox").fill("reeds")
    expect(dialog.get_by_role("link")).to_have_count(1)
    expect(dialog.get_by_role("link")).to_contain_text("They stand in the REEDS <img src=x")
    expect(dialog.locator("mark")).to_have_text(["REEDS"])
    dialog.get_by_role("searchbox").fill("nowhere")
    expect(dialog.locator(".search-nothing")).to_be_visible()
    dialog.get_by_role("searchbox").fill("reed")
    expect(dialog.get_by_role("link")).to_have_count(2)
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(f"/c/{chat_id}\\?message=a1$"))
    expect(dialog).to_have_count(0)


def test_a_link_leads_to_an_early_message(site: Site, owner: Person, tab: Page) -> None:
    messages: dict[str, Any] = {}
    for number in range(250):
        role, parent = ("assistant", "user")[number % 2 == 0], f"m{number - 1}" if number else None
        content = f"Message {number}" + " and more" * 30
        messages[f"m{number}"] = {
            "id": f"m{number}",
            "parentId": parent,
            "role": role,
            "content": content,
            "done": True,
        }
    messages["other"] = {**messages["m5"], "id": "other", "content": "On another branch"}
    history = {"messages": messages, "currentId": "m249"}
    chat_id = site.ok("POST", f"{CHATS}/new", {"chat": {"title": "Long", "history": history}}, owner)["id"]
    transcript = tab.get_by_role("region", name="Conversation")
    tab.goto(f"/c/{chat_id}?message=m20")
    expect(transcript.get_by_text("Message 20 and more")).to_be_in_viewport()
    expect(tab.locator('[data-id="m20"]')).to_be_focused()
    expect(row(tab, "Long")).to_be_visible()
    tab.keyboard.press("Control+k")
    tab.get_by_role("searchbox", name="Search chats").fill("on another branch")
    expect(tab.get_by_role("dialog").locator("mark")).to_have_text(["On another branch"])
    tab.get_by_role("dialog").get_by_role("link", name="Long").click()
    expect(transcript.get_by_text("On another branch")).to_be_in_viewport()
    tab.goto(f"/c/{chat_id}?message=gone")
    expect(tab.get_by_text("The message is no longer in this chat.")).to_be_visible()
    expect(transcript.get_by_text("Message 249 and more")).to_be_visible()


def test_the_overview_of_favourites(site: Site, owner: Person, tab: Page) -> None:
    chat_id = chat(site, owner, "Herons", "<b>Tall</b> birds", favorite=True, model="echo")
    tab.goto("/overview")
    card = tab.get_by_role("main").get_by_role("listitem")
    expect(card).to_contain_text("<b>Tall</b> birds")
    expect(card.get_by_role("link")).to_have_attribute("href", f"/c/{chat_id}?message=a1")
    heart = card.get_by_role("button", name="Remove from favourites: Herons")
    expect(heart).to_have_attribute("aria-pressed", "true")
    heart.click()
    expect(tab.get_by_role("heading", name="No favourites yet.")).to_be_visible()
    change = {"history": {"messages": {"a1": {"favorite": True}}}}
    site.ok("POST", f"{CHATS}/{chat_id}", {"chat": change}, owner)
    expect(card).to_contain_text("birds")


def test_export_and_import(site: Site, owner: Person, tab: Page, tmp_path: Path) -> None:
    chat(site, owner, "Herons")
    tab.goto("/overview")
    with tab.expect_download() as saved:
        pick(tab, "Herons", "Export")
    assert saved.value.suggested_filename == "Herons.json"
    kept = tmp_path / "one.json"
    saved.value.save_as(kept)
    assert json.loads(kept.read_text())["title"] == "Herons"
    account = tab.get_by_role("button", name="Account:")
    account.click()
    with tab.expect_download() as saved:
        tab.get_by_role("menuitem", name="Export all chats").click()
    every = tmp_path / "all.json"
    saved.value.save_as(every)
    assert len(json.loads(every.read_text())) == 1
    bad = tmp_path / "bad.json"
    bad.write_text('{"chat": 5}')
    account.click()
    with tab.expect_file_chooser() as chooser:
        tab.get_by_role("menuitem", name="Import chats").click()
    chooser.value.set_files([bad, kept, every])
    expect(row(tab, "Herons")).to_have_count(3)
    expect(tab.get_by_role("alert")).to_contain_text("chats.0.chat")


def test_the_archive(site: Site, owner: Person, tab: Page) -> None:
    chat_id = chat(site, owner, "Herons")
    site.ok("POST", f"{CHATS}/{chat_id}/archive", None, owner)
    tab.goto("/overview")
    tab.get_by_role("button", name="Account:").click()
    tab.get_by_role("menuitem", name="Archived chats").click()
    dialog = tab.get_by_role("dialog", name="Archived chats")
    dialog.get_by_role("button", name="Restore Herons").click()
    expect(dialog.get_by_role("heading", name="No archived chats.")).to_be_visible()
    expect(row(tab, "Herons")).to_have_count(1)


def test_the_account_menu(site: Site, owner: Person, tab: Page) -> None:
    tab.goto("/overview")
    account = tab.get_by_role("button", name="Account:")
    account.click()
    expect(tab.get_by_role("menuitem", name="Administration")).to_have_count(0)
    tab.get_by_role("menuitemcheckbox", name="Dark").click()
    expect(tab.locator("html")).to_have_attribute("data-theme", "dark")
    account.click()
    tab.get_by_role("menuitem", name="Sign out").click()
    tab.wait_for_url("**/auth*")


def test_many_chats_come_in_pages_and_few_are_in_the_document(site: Site, owner: Person, tab: Page) -> None:
    records = [
        {"chat": {"title": f"Chat {number}"}, "updated_at": 1_700_000_000 - number} for number in range(300)
    ]
    site.ok("POST", f"{CHATS}/import", {"chats": records}, owner)
    tab.goto("/overview")
    links = tab.locator(".chat-row > a")
    expect(links.first).to_have_text("Chat 0")
    links.first.focus()
    tab.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    lists = tab.locator(".sidebar-lists")
    for _ in range(100):
        if tab.get_by_role("link", name="Chat 299", exact=True).is_visible():
            break
        lists.evaluate("list => { list.scrollTop = list.scrollHeight; }")
        tab.wait_for_timeout(50)
    expect(tab.get_by_role("link", name="Chat 299", exact=True)).to_be_visible()
    assert links.count() < 300
    expect(tab.get_by_role("link", name="Chat 1", exact=True)).to_be_focused()
    lists.evaluate("list => { list.scrollTop = 0; }")
    expect(tab.get_by_role("link", name="Chat 0", exact=True)).to_be_visible()


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("ar", "dark")])
def test_axe(site: Site, owner: Person, tabs: NewTab, axe: str, language: str, theme: str) -> None:
    chat_id = chat(site, owner, "Herons", "Tall", favorite=True)
    chat(site, owner, "Owls")
    made = site.ok("POST", f"{FOLDERS}/", {"name": "Birds"}, owner)
    site.ok("POST", f"{FOLDERS}/{made['id']}/update/expanded", {"is_expanded": True}, owner)
    site.ok("POST", f"{CHATS}/{chat_id}/folder", {"folder_id": made["id"]}, owner)
    page = tabs(owner.email, color_scheme=theme)
    page.context.add_cookies([{"name": "language", "value": language, "url": site.url}])
    page.goto("/overview")
    expect(page.locator(".chat-row > a")).to_have_count(2)
    assert find_violations(page, axe) == []
    page.keyboard.press("Control+k")
    expect(page.locator(".search-result")).to_have_count(2)
    assert find_violations(page, axe) == []


def test_on_a_phone_the_drawer_opens_and_closes(site: Site, owner: Person, tabs: NewTab) -> None:
    chat(site, owner, "Herons")
    page = tabs(owner.email, **PHONE)
    page.goto("/documents")
    expect(row(page, "Herons")).not_to_be_visible()
    page.get_by_role("button", name="Show the sidebar").tap()
    row(page, "Herons").get_by_role("button", name="Menu of Herons").tap()
    page.get_by_role("menuitem", name="Move to folder").tap()
    expect(page.get_by_role("dialog", name="Move “Herons”")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Favourites").tap()
    expect(row(page, "Herons")).not_to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_titles_and_names_are_text(site: Site, owner: Person, tab: Page) -> None:
    evil = "<img src=x onerror=\"document.title='ran'\">"
    chat(site, owner, evil)
    site.ok("POST", f"{FOLDERS}/", {"name": evil}, owner)
    tab.goto("/overview")
    expect(tab.locator(".chat-row > a")).to_have_text([evil])
    expect(tab.locator(".folder-toggle")).to_have_text([evil])
    assert tab.title() != "ran"
    assert PASSWORD not in tab.content()
