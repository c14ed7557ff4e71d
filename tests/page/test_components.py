"""The building blocks of the views: they work by keyboard, keep the focus, and axe finds no fault in them."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import find_violations
from tests.page.conftest import NewContext, NewTab

GALLERY = (Path(__file__).parent / "gallery.js").read_text()
TOAST = """async ([kind, text, label]) => {
  const {toast} = await import("#app/core/toasts");
  toast(kind, text, label ? {action: {label, run: () => window.log.push(label)}} : {});
}"""


@pytest.fixture
def gallery(page: Page) -> Page:
    return shown(page)


def shown(page: Page) -> Page:
    page.goto("/settings")
    page.get_by_role("complementary").wait_for()
    page.evaluate(GALLERY)
    return page


def log(page: Page) -> list[Any]:
    found: list[Any] = page.evaluate("() => window.log")
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ar"])
def test_axe_finds_nothing_serious(tabs: NewTab, axe: str, theme: str, language: str) -> None:
    page = tabs(color_scheme=theme)
    page.context.add_cookies([{"name": "language", "value": language, "url": page.request.get("/").url}])
    shown(page)
    page.evaluate(TOAST, ["error", "It failed", ""])
    page.evaluate(TOAST, ["success", "It is done", "Undo"])
    assert find_violations(page, axe) == []
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("dialog").wait_for()
    assert find_violations(page, axe) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="More").click()
    page.get_by_role("menu").wait_for()
    assert find_violations(page, axe) == []


def test_a_dialog_returns_the_focus_and_its_answer(gallery: Page) -> None:
    ask = gallery.get_by_role("button", name="Ask")
    ask.focus()
    gallery.keyboard.press("Enter")
    dialog = gallery.get_by_role("dialog", name="Delete?")
    expect(dialog.get_by_role("button", name="Delete it")).to_be_focused()
    gallery.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(ask).to_be_focused()
    gallery.keyboard.press("Enter")
    gallery.keyboard.press("Enter")
    expect(ask).to_be_focused()
    gallery.keyboard.press("Enter")
    dialog.get_by_role("button", name="Cancel").click()
    assert log(gallery) == [False, True, False]


def test_a_prompt_is_masked_and_may_be_dismissed(gallery: Page) -> None:
    gallery.get_by_role("button", name="Prompt").click()
    field = gallery.get_by_role("dialog").get_by_label("Secret")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("type", "password")
    field.fill("s3cret")
    gallery.keyboard.press("Enter")
    gallery.get_by_role("button", name="Prompt").click()
    gallery.mouse.click(5, 5)
    expect(gallery.get_by_role("dialog")).to_be_hidden()
    assert log(gallery) == ["s3cret", None]


def test_a_dialog_of_a_view_closes_by_escape(gallery: Page) -> None:
    opener = gallery.get_by_role("button", name="Open own")
    opener.click()
    gallery.get_by_role("dialog", name="Own dialog").wait_for()
    gallery.keyboard.press("Escape")
    expect(gallery.get_by_role("dialog")).to_be_hidden()
    expect(opener).to_be_focused()


def test_a_menu_is_used_by_keys(gallery: Page) -> None:
    button = gallery.get_by_role("button", name="More")
    button.focus()
    gallery.keyboard.press("Enter")
    expect(gallery.get_by_role("menuitem", name="Rename")).to_be_focused()
    gallery.keyboard.press("ArrowUp")
    expect(gallery.get_by_role("menuitem", name="Delete")).to_be_focused()
    gallery.keyboard.press("Home")
    gallery.keyboard.press("ArrowDown")
    expect(gallery.get_by_role("menuitemcheckbox", name="Pinned")).to_be_focused()
    gallery.keyboard.press("ArrowDown")
    expect(gallery.get_by_role("menuitem", name="Delete")).to_be_focused()
    gallery.keyboard.press("r")
    expect(gallery.get_by_role("menuitem", name="Rename")).to_be_focused()
    gallery.keyboard.press("Escape")
    expect(gallery.get_by_role("menu")).to_be_hidden()
    expect(button).to_be_focused()
    gallery.keyboard.press("Enter")
    gallery.keyboard.press("d")
    gallery.keyboard.press("Enter")
    assert log(gallery) == ["delete"]
    expect(button).to_be_focused()
    gallery.get_by_role("button", name="Sort order").click()
    gallery.mouse.click(5, 5)
    expect(gallery.get_by_role("menu")).to_be_hidden()


def test_a_table_sorts_and_selects(gallery: Page) -> None:
    table = gallery.get_by_role("table", name="People")
    first = table.get_by_role("row").nth(1)
    table.get_by_role("button", name="Name").click()
    expect(first).to_contain_text("ann")
    expect(table.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    table.get_by_role("button", name="Count").click()
    table.get_by_role("button", name="Count").click()
    expect(first).to_contain_text("100")
    table.get_by_role("checkbox", name="Select Zoe").check()
    expect(gallery.get_by_text("1 selected")).to_be_visible()
    table.get_by_role("checkbox", name="Select all").check()
    expect(gallery.get_by_text("3 selected")).to_be_visible()


def test_fields_tell_of_their_help_and_faults(gallery: Page) -> None:
    name = gallery.get_by_label("Name", exact=True)
    expect(name).to_have_accessible_description("As others see it.")
    name.fill("Ann")
    expect(gallery.get_by_role("status").filter(has_text="Ann")).to_be_visible()
    port = gallery.get_by_label("Port")
    expect(port).to_have_accessible_description("A port is a number.")
    expect(port).to_have_attribute("aria-invalid", "true")
    locked = gallery.get_by_label("Address")
    expect(locked).not_to_be_editable()
    expect(gallery.get_by_text("Set in gatewayd.toml")).to_be_visible()
    gallery.get_by_label("Role").select_option("First")
    switch = gallery.get_by_role("switch", name="Sign-up")
    switch.focus()
    gallery.keyboard.press("Space")
    expect(switch).to_be_checked()
    assert log(gallery) == ["a"]


def test_tabs_move_by_arrows(gallery: Page) -> None:
    gallery.get_by_role("tab", name="One").focus()
    gallery.keyboard.press("ArrowRight")
    expect(gallery.get_by_role("tab", name="Two")).to_be_focused()
    expect(gallery.get_by_role("tabpanel")).to_contain_text("Second part")
    gallery.keyboard.press("ArrowRight")
    expect(gallery.get_by_role("tabpanel")).to_contain_text("First part")


def test_errors_say_what_to_do_and_pictures_come_from_here(gallery: Page) -> None:
    note = gallery.get_by_role("alert").filter(has_text="too large for the gateway")
    expect(note).to_contain_text("cannot do it: the file is too large")
    expect(note).to_contain_text("Request r-1")
    note.get_by_role("button", name="Try again").click()
    assert log(gallery) == ["again"]
    assert gallery.locator(".avatar").evaluate_all("(all) => all.map((one) => one.textContent)") == [
        "AO",
        "A",
    ]


def test_notices_go_by_themselves_unless_they_offer_something(contexts: NewContext) -> None:
    page = contexts(is_new=True).new_page()
    page.clock.install()
    shown(page)
    page.evaluate(TOAST, ["success", "<b>Saved</b>", ""])
    page.evaluate(TOAST, ["info", "Deleted", "Undo"])
    page.evaluate(TOAST, ["error", "Failed", ""])
    notices = page.get_by_role("region", name="Notices")
    expect(notices.get_by_text("<b>Saved</b>")).to_be_visible()
    expect(notices.get_by_role("alert")).to_contain_text("Failed")
    page.clock.fast_forward(10_000)
    expect(notices.get_by_text("Saved")).to_be_hidden()
    expect(notices.get_by_text("Failed")).to_be_visible()
    notices.get_by_role("button", name="Undo").click()
    expect(notices.get_by_text("Deleted")).to_be_hidden()
    assert log(page) == ["Undo"]


def test_copying(contexts: NewContext) -> None:
    page = contexts(permissions=["clipboard-read", "clipboard-write"]).new_page()
    shown(page)
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == "copied text"
