"""What goes with a question and what plugins add: tools, filters, collections, buttons, code in the page."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import Noise, new_context
from tests.page.chat_actions import answers, ask, expect_idle, open_new, question_field
from tests.page.site import PLUGINS, Site, opened_site, steps

FILTER = '''"""
title: Louder
"""


class Filter:
    def __init__(self):
        self.toggle = True

    def inlet(self, body):
        """Ask in capitals."""
        body["messages"][-1]["content"] = body["messages"][-1]["content"].upper()
        return body
'''
ACTION = '''"""
title: Blank
"""


class Action:
    async def action(self, body, __event_call__):
        """Blank the answer when the reader agrees."""
        event = {"type": "confirmation", "data": {"title": "Blank it?", "message": "It will be gone."}}
        if not await __event_call__(event):
            return None
        return {"messages": [{"id": body["id"], "content": "blank"}]}
'''
TOOL = '''"""
title: Weather
"""


class Tools:
    def weather(self, city: str) -> str:
        """Tell the weather of a city."""
        return "rain"
'''


@pytest.fixture(scope="module")
def plugins(site: Site) -> Iterator[None]:
    """Install a filter, an action and a tool for the tests of this module."""
    for name, source in (("louder", FILTER), ("blank", ACTION)):
        form = {"id": name, "name": name.title(), "content": source, "meta": {"description": ""}}
        site.ok("POST", "/api/v1/functions/create", form)
        site.ok("POST", f"/api/v1/functions/id/{name}/toggle", {})
        site.ok("POST", f"/api/v1/functions/id/{name}/toggle/global", {})
    form = {"id": "weather", "name": "Weather", "content": TOOL, "meta": {"description": ""}}
    site.ok("POST", "/api/v1/tools/create", form)
    yield
    for name in ("louder", "blank"):
        site.ok("DELETE", f"/api/v1/functions/id/{name}/delete")
    site.ok("DELETE", "/api/v1/tools/id/weather/delete")


@pytest.mark.usefixtures("plugins")
def test_a_filter_is_switched_on_and_off(page: Page) -> None:
    open_new(page)
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("menuitemcheckbox", name="Louder").click()
    ask(page, "quiet words")
    expect(answers(page).last).to_contain_text("QUIET WORDS")
    expect_idle(page)
    page.get_by_role("button", name="Switch Louder off").click()
    ask(page, "more words")
    expect(answers(page).last).to_contain_text("more words")


@pytest.mark.usefixtures("plugins")
def test_tools_and_collections_go_with_the_question(page: Page, site: Site) -> None:
    made = site.ok("POST", "/api/v1/knowledge/create", {"name": "Weather records", "description": ""})
    sent: list[Any] = []
    page.on(
        "request", lambda one: sent.append(one.post_data_json) if one.url.endswith("/completions") else None
    )
    open_new(page)
    page.get_by_role("button", name="Tools").click()
    page.get_by_role("menuitemcheckbox", name="Weather").click()
    page.get_by_role("button", name="Add files and collections").click()
    page.get_by_role("menuitemcheckbox", name="Weather records").click()
    chosen = page.get_by_role("list", name="Goes with the question")
    expect(chosen.get_by_role("listitem")).to_have_count(2)
    ask(page, "what now")
    expect(page.locator(".message.question").get_by_role("link", name="Weather records")).to_be_visible()
    expect_idle(page)
    assert sent[0]["tool_ids"] == ["weather"]
    assert sent[0]["files"] == [{"type": "collection", "id": made["id"], "name": "Weather records"}]
    # What a chat is about stays with it.
    expect(chosen.get_by_role("listitem")).to_have_count(1)
    ask(page, "and then")
    expect_idle(page)
    assert sent[1]["files"] == sent[0]["files"]
    site.ok("DELETE", f"/api/v1/knowledge/{made['id']}/delete")


@pytest.mark.usefixtures("plugins")
def test_the_button_of_a_plugin_asks_and_changes_the_answer(page: Page) -> None:
    open_new(page)
    ask(page, "some words")
    expect_idle(page)
    answers(page).get_by_role("button", name="Blank").click()
    page.get_by_role("dialog", name="Blank it?").get_by_role("button", name="Confirm").click()
    expect(answers(page).locator(".prose")).to_have_text("blank")


def test_favourite_models_come_first(page: Page) -> None:
    open_new(page, "slow")
    page.get_by_role("button", name="Model:").click()
    page.get_by_role("button", name="thinks is a favourite").click()
    expect(page.locator(".model-row").first).to_contain_text("thinks")
    page.reload()
    expect(page.get_by_role("button", name="Model: slow")).to_be_visible()
    page.keyboard.press("Control+Shift+M")
    first = page.locator(".model-row").first
    expect(first).to_contain_text("thinks")
    expect(first.get_by_role("button", name="thinks is a favourite")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Model: thinks")).to_be_visible()


def test_shortcuts_of_the_chat(page: Page) -> None:
    open_new(page, "script")
    ask(page, steps({"say": "```js\none()\n```\n\n```js\ntwo()\n```\n"}))
    expect_idle(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".transcript").focus()
    page.keyboard.press("Control+Shift+;")
    expect(page.get_by_role("region", name="Notices")).to_contain_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == "two()\n"
    page.keyboard.press("Shift+Escape")
    expect(question_field(page)).to_be_focused()
    page.keyboard.press("Control+Shift+O")
    expect(page).to_have_url("/")
    expect(page.locator(".message")).to_have_count(0)


def test_code_of_a_plugin_runs_when_the_administrator_allows_it(browser: Browser, tmp_path: Path) -> None:
    noise = Noise()
    with opened_site(tmp_path, plugins=PLUGINS, ENABLE_EXECUTE_EVENTS="true") as site:
        context = new_context(browser, noise, base_url=site.url)
        site.sign_in(context)
        page, other = context.new_page(), context.new_page()
        other.goto("/documents")
        open_new(page, "script")
        count = (
            "localStorage.ran = Number(localStorage.ran ?? 0) + 1; return {title: document.title.length > 0};"
        )
        called = {"call": {"type": "execute", "data": {"code": count}}}
        emitted = {"emit": {"type": "execute", "data": {"code": count}}}
        ask(page, steps(called, emitted, {"say": " said"}))
        expect(answers(page)).to_contain_text('{"title": true} said')
        page.wait_for_function("() => localStorage.ran === '2'")
        thrown = {"call": {"type": "execute", "data": {"code": "throw new Error('broken');"}}}
        ask(page, steps(thrown))
        expect(answers(page).last).to_contain_text("broken")
        # One tab runs the code, whichever.
        assert page.evaluate("() => localStorage.ran") == "2"
        context.close()
    noise.check()


def test_a_picture_is_seen_by_the_model(page: Page, site: Site) -> None:
    open_new(page)
    # One pixel.
    data = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
    )
    picture = {"name": "dot.png", "mimeType": "image/png", "buffer": data}
    page.locator("input[type=file]").set_input_files([picture])  # type: ignore[list-item]
    expect(page.get_by_role("list", name="Goes with the question")).to_contain_text("dot.png")
    expect(page.get_by_role("progressbar")).to_have_count(0)
    ask(page, "what is it")
    expect(page.locator(".message.question").get_by_role("img", name="dot.png")).to_be_visible()
    expect_idle(page)
    asked = [
        one.json["messages"][-1]["content"] for one in site.provider.fake.requests if b"image_url" in one.body
    ]
    assert asked[-1][1]["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(data).decode()}"
