"""Functions and tools on the page: the editor, valves, switches, import and export."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import find_violations
from tests.page.site import Site, wait_until

FUNCTIONS = "/api/v1/functions"
TYPE = """(field, text) => {
  field.value = text;
  field.dispatchEvent(new Event("input", {bubbles: true}));
}"""
BROKEN = "class Filter:\n    def inlet(self, body)\n        return body\n"
VALVES = """from typing import Literal
from pydantic import BaseModel, Field

class Filter:
    class Valves(BaseModel):
        sentence: str = Field("Please.", description="What is added.")
        api_key: str = ""
        tone: Literal["mild", "warm"] = "mild"
        count: int = 1
        names: list[str] = []
        loud: bool = False

    def __init__(self):
        self.valves = self.Valves()

    def inlet(self, body):
        return body
"""


@pytest.fixture(autouse=True)
def _tidy(site: Site) -> Iterator[None]:
    """Remove the functions and tools of a test."""
    yield
    for family in ("functions", "tools"):
        for one in site.ok("GET", f"/api/v1/{family}/list"):
            if one["origin"] == "database":
                site.ok("DELETE", f"/api/v1/{family}/id/{one['id']}/delete")


def install(site: Site, name: str = "polite") -> None:
    site.ok("POST", f"{FUNCTIONS}/create", {"id": name, "name": "Polite", "content": VALVES, "meta": {}})


def test_a_syntax_error_is_shown_with_its_line_and_nothing_is_lost(page: Page, site: Site) -> None:
    page.goto("/admin/functions")
    page.get_by_role("button", name="Add function").click()
    page.get_by_label("Id", exact=True).fill("my_filter")
    page.get_by_label("Description").fill("Says so")
    source = page.get_by_label("Source")
    source.fill(BROKEN)
    page.get_by_role("button", name="Save and load").click()
    expect(page.get_by_role("alert").filter(has_text="SyntaxError in line 2")).to_be_visible()
    expect(page.locator(".code-numbers .wrong")).to_have_text("2")
    expect(source).to_have_value(BROKEN)
    expect(page.get_by_label("Id", exact=True)).to_have_value("my_filter")
    page.get_by_role("button", name="Show line 2").click()
    selected = source.evaluate("(field) => field.value.slice(field.selectionStart, field.selectionEnd)")
    assert selected == "    def inlet(self, body)"
    source.fill(BROKEN.replace("body)\n", "body):\n"))
    page.get_by_role("button", name="Save and load").click()
    expect(page.get_by_role("row").filter(has_text="my_filter")).to_contain_text("Filter")
    assert site.ok("GET", f"{FUNCTIONS}/id/my_filter")["meta"]["description"] == "Says so"


def test_two_editors_do_not_overwrite_each_other(page: Page, site: Site, axe: str) -> None:
    install(site)
    page.goto("/admin/functions?edit=polite")
    source = page.get_by_role("textbox", name="Source")
    source.fill(f"{VALVES}# mine\n")
    theirs, path = f"{VALVES}# <b>theirs</b>\n", f"{FUNCTIONS}/id/polite"
    site.ok("POST", f"{path}/update", {"content": theirs})
    page.get_by_role("button", name="Save and load").click()
    other = page.get_by_role("textbox", name="What somebody else has saved")
    expect(other).to_have_value(theirs)
    assert find_violations(page, axe) == []
    expect(source).to_have_value(f"{VALVES}# mine\n")
    assert site.ok("GET", path)["content"] == theirs
    page.get_by_role("button", name="Take the other text").click()
    expect(source).to_have_value(theirs)
    site.ok("POST", f"{path}/update", {"content": VALVES})
    source.fill(f"{VALVES}# ours\n")
    page.get_by_role("button", name="Save and load").click()
    page.get_by_role("button", name="Save over the other text").click()
    expect(page.get_by_role("table")).to_be_visible()
    assert site.ok("GET", path)["content"] == f"{VALVES}# ours\n"


def test_tab_indents_and_escape_lets_the_keyboard_leave(page: Page) -> None:
    page.goto("/admin/tools?new=1")
    source = page.get_by_label("Source")
    source.fill("a\nb")
    source.press("Control+a")
    source.press("Tab")
    expect(source).to_have_value("    a\n    b")
    source.press("Shift+Tab")
    expect(source).to_have_value("a\nb")
    source.press("ArrowRight")
    source.press("Tab")
    expect(source).to_have_value("a\nb    ")
    source.press("Control+z")
    expect(source).to_have_value("a\nb")
    source.press("Escape")
    source.press("Tab")
    expect(source).not_to_be_focused()


def test_leaving_with_changes_asks_first(page: Page) -> None:
    page.goto("/admin/functions?new=1")
    page.get_by_label("Id", exact=True).fill("kept")
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog", name="Discard the changes?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_label("Id", exact=True)).to_have_value("kept")
    page.get_by_role("button", name="Cancel").click()
    dialog.get_by_role("button", name="Discard changes").click()
    expect(page.get_by_role("heading", name="Functions")).to_be_visible()


def test_valves_are_saved_and_a_secret_is_never_in_the_page(page: Page, site: Site) -> None:
    install(site)
    valves = f"{FUNCTIONS}/id/polite/valves"
    site.ok("POST", f"{valves}/update", {"api_key": "canary-secret", "loud": True})
    page.goto("/admin/functions")
    page.get_by_role("button", name="Actions for Polite").click()
    page.get_by_role("menuitem", name="Valves").click()
    dialog = page.get_by_role("dialog", name="Valves of Polite")
    expect(dialog.get_by_label("Loud")).to_have_value("true")
    expect(dialog.get_by_label("Api Key")).to_have_value("")
    expect(dialog.get_by_label("Api Key")).to_have_attribute("type", "password")
    assert "canary-secret" not in page.content()
    dialog.get_by_label("Count").fill("many")
    dialog.get_by_label("Names").fill("[1")
    dialog.get_by_role("button", name="Save valves").click()
    expect(dialog.get_by_text("Enter a number.")).to_be_visible()
    expect(dialog.get_by_text("This is not JSON.")).to_be_visible()
    dialog.get_by_label("Count").fill("7")
    dialog.get_by_label("Names").fill('["Ann"]')
    dialog.get_by_label("Tone").select_option("warm")
    dialog.get_by_label("Loud").select_option("")
    dialog.get_by_role("button", name="Save valves").click()
    expect(dialog).to_be_hidden()
    stored = site.ok("GET", valves)
    assert {name: value for name, value in stored.items() if value is not None} == {
        "api_key": "canary-secret",
        "count": 7,
        "names": ["Ann"],
        "tone": "warm",
    }


def test_a_secret_is_replaced_or_deleted(page: Page, site: Site) -> None:
    install(site)
    valves = f"{FUNCTIONS}/id/polite/valves"
    site.ok("POST", f"{valves}/update", {"api_key": "old"})

    def opened() -> None:
        page.goto("/admin/functions")
        page.get_by_role("button", name="Actions for Polite").click()
        page.get_by_role("menuitem", name="Valves").click()

    opened()
    dialog = page.get_by_role("dialog", name="Valves of Polite")
    dialog.get_by_label("Api Key", exact=True).fill("new")
    dialog.get_by_role("button", name="Save valves").click()
    expect(dialog).to_be_hidden()
    assert site.ok("GET", valves)["api_key"] == "new"
    opened()
    dialog.get_by_role("button", name="Delete the stored Api Key").click()
    dialog.get_by_role("button", name="Save valves").click()
    expect(dialog).to_be_hidden()
    assert not site.ok("GET", valves).get("api_key")


def test_switches_and_the_last_problem(page: Page, site: Site) -> None:
    install(site)
    page.goto("/admin/functions")
    row = page.get_by_role("row").filter(has_text="Polite")
    expect(row).to_contain_text("None")
    row.get_by_role("switch", name="Polite is active").click()
    expect(row.get_by_role("switch", name="Polite is active")).to_be_checked()
    row.get_by_role("switch", name="Polite runs for all models").click()
    expect(row.get_by_role("switch", name="Polite runs for all models")).to_be_checked()
    shown = site.ok("GET", f"{FUNCTIONS}/id/polite")
    assert (shown["is_active"], shown["is_global"]) == (True, True)
    failing = VALVES.replace("return body", "raise ValueError('out of order')")
    site.ok("POST", f"{FUNCTIONS}/id/polite/update", {"content": failing})
    site.call(
        "POST", "/api/chat/completions", {"model": "echo", "messages": [{"role": "user", "content": "a"}]}
    )
    page.reload()
    expect(row).to_contain_text("out of order")


def test_plugins_of_the_directory_can_only_be_read(page: Page) -> None:
    page.goto("/admin/functions")
    page.get_by_role("button", name="Actions for Script").click()
    page.get_by_role("menuitem", name="Show source").click()
    expect(page.get_by_text("changes only there")).to_be_visible()
    expect(page.get_by_label("Source")).to_have_value(re.compile("class Pipe:"))
    expect(page.get_by_role("button", name="Save and load")).to_have_count(0)


def test_what_was_exported_can_be_imported(page: Page, site: Site) -> None:
    install(site)
    page.goto("/admin/functions")
    page.get_by_role("row").filter(has_text="Polite").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    exported = json.loads(download.value.path().read_text())
    assert [one["id"] for one in exported] == ["polite"]
    exported[0]["id"] = "copied"
    file = {"name": "functions.json", "mimeType": "application/json", "buffer": json.dumps(exported).encode()}
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_role("row").filter(has_text="copied")).to_be_visible()
    page.locator("input[type=file]").set_input_files({**file, "buffer": b"{"})
    expect(page.get_by_text("The file is not JSON as the export writes it.")).to_be_visible()
    page.locator("input[type=file]").set_input_files(
        {"name": "own.py", "mimeType": "text/x-python", "buffer": VALVES.encode()}
    )
    expect(page.get_by_label("Source")).to_have_value(VALVES)


def test_a_tool_is_written_and_removed(page: Page, site: Site) -> None:
    page.goto("/admin/tools")
    page.get_by_role("button", name="Add tool").click()
    page.get_by_label("Id", exact=True).fill("Not ok")
    page.get_by_label("Name").focus()
    expect(page.get_by_text("Begin with a lower-case letter")).to_be_visible()
    page.get_by_label("Id", exact=True).fill("adder")
    page.get_by_label("Access", exact=True).select_option("everybody")
    page.get_by_role("button", name="Save and load").click()
    row = page.get_by_role("row").filter(has_text="adder")
    expect(row).to_contain_text("Everybody")
    assert "adder" in {one["id"] for one in site.ok("GET", "/api/v1/tools/", None, site.user)}
    row.get_by_role("button", name="Actions for").click()
    page.get_by_role("menuitem", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_be_hidden()


def test_a_long_source_has_all_its_numbers(page: Page) -> None:
    page.goto("/admin/functions?new=1")
    source = page.get_by_label("Source")
    # Not by `fill`, which takes long for many lines in any text field.
    source.evaluate(TYPE, "x = 1\n" * 5000)
    expect(page.locator(".code-numbers")).to_contain_text("5001")
    source.evaluate("(field) => field.scrollTo(0, 20000)")
    scrolled = "([field, numbers]) => field.scrollTop > 0 && field.scrollTop === numbers.scrollTop"
    numbers = page.locator(".code-numbers").element_handle()
    wait_until(lambda: page.evaluate(scrolled, [source.element_handle(), numbers]), "the numbers")
