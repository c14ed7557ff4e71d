"""Every event of gatewayd-plugins(7), EVENTS as a reader sees it, sent by a scripted plugin."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.chat_actions import answers, ask, expect_idle, open_new
from tests.page.site import Site, steps


def emit(kind: str, data: Any) -> dict[str, Any]:
    """Return the step of the scripted pipe that emits an event."""
    return {"emit": {"type": kind, "data": data}}


def shows(text: str) -> Callable[[Page], None]:
    return lambda page: expect(answers(page)).to_contain_text(text)


def shows_file(page: Page) -> None:
    expect(answers(page).get_by_role("list", name="Files")).to_contain_text("a.txt")


def shows_source(page: Page) -> None:
    answers(page).get_by_role("button", name="handbook").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="Passages")).to_contain_text("The heron stands in the water.")
    expect(dialog).to_contain_text("Page 3 · Birds")


def shows_favourite(page: Page) -> None:
    heart = answers(page).get_by_role("button", name="Favourite")
    expect(heart).to_have_attribute("aria-pressed", "true")


def shows_title(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text("Birds")
    expect(page).to_have_title("Birds \N{EN DASH} Example Gateway")


def shows_tags(page: Page) -> None:
    expect(page.get_by_role("list", name="Tags")).to_contain_text("herons")


def shows_notice(page: Page) -> None:
    expect(page.get_by_role("region", name="Notices")).to_contain_text("Look here")


def shows_follow_ups(page: Page) -> None:
    answers(page).get_by_role("button", name="And at night?").click()
    expect(page.locator(".message.question").last).to_contain_text("And at night?")


SOURCE = {
    "source": {"name": "handbook"},
    "document": ["The heron stands in the water."],
    "metadata": [{"source": "handbook", "page": 2, "heading": "Birds"}],
}
FILES = {"files": [{"type": "file", "id": "f", "name": "a.txt", "url": "/api/v1/files/f/content"}]}
EVENTS: dict[str, tuple[list[dict[str, Any]], Callable[[Page], None]]] = {
    "status": ([emit("status", {"description": "Looking", "done": True})], shows("Looking")),
    "chat:completion": ([emit("chat:completion", {"content": "whole"})], shows("whole")),
    "message": (
        [emit("message", {"content": "one "}), emit("message", {"content": "two"})],
        shows("one two"),
    ),
    "chat:message:delta": ([emit("chat:message:delta", {"content": "piece"})], shows("piece")),
    "replace": ([emit("message", {"content": "old"}), emit("replace", {"content": "new"})], shows("new")),
    "chat:message": ([emit("chat:message", {"content": "other"})], shows("other")),
    "files": ([emit("files", FILES)], shows_file),
    "chat:message:files": ([emit("chat:message:files", FILES)], shows_file),
    "chat:title": ([emit("chat:title", {"title": "Birds"})], shows_title),
    "chat:title, bare": ([emit("chat:title", "Birds")], shows_title),
    "chat:tags": ([emit("chat:tags", ["herons"])], shows_tags),
    "chat:tags, object": ([emit("chat:tags", {"tags": [{"name": "herons"}]})], shows_tags),
    "source": ([emit("source", SOURCE)], shows_source),
    "citation": ([emit("citation", SOURCE)], shows_source),
    "notification": ([emit("notification", {"type": "success", "content": "Look here"})], shows_notice),
    "chat:message:favorite": ([emit("chat:message:favorite", {"favorite": True})], shows_favourite),
    "chat:message:error": (
        [emit("chat:message:error", {"error": {"content": "no credit"}})],
        shows("no credit"),
    ),
    "chat:message:follow_ups": (
        [emit("chat:message:follow_ups", {"follow_ups": ["And at night?"]})],
        shows_follow_ups,
    ),
}


ROWS = (
    ("status",),
    ("chat:completion",),
    ("message", "chat:message:delta"),
    ("replace", "chat:message"),
    ("files", "chat:message:files"),
    ("chat:title", "chat:title, bare"),
    ("chat:tags", "chat:tags, object"),
    ("source", "citation"),
    ("notification",),
    ("chat:message:favorite",),
    ("chat:message:error",),
    ("chat:message:follow_ups",),
)
"""The rows of the table of events, each with its other names."""


@pytest.mark.parametrize("names", ROWS, ids=" ".join)
def test_a_row_is_seen(page: Page, site: Site, names: tuple[str, ...]) -> None:
    open_new(page, "script")
    for name in names:
        sent, look = EVENTS[name]
        page.keyboard.press("Escape")
        page.keyboard.press("Control+Shift+O")
        expect(page.locator(".message")).to_have_count(0)
        # The text at the end would replace what the events wrote.
        ask(page, steps(*sent, {"wait": f"event {name}"}))
        if name == "chat:message:follow_ups":
            site.go_on(f"event {name}")
            expect_idle(page)
        look(page)
        site.go_on(f"event {name}")


def test_statuses_are_folded_and_hidden_ones_are_not_shown(page: Page) -> None:
    open_new(page, "script")
    lines = [{"description": text, "done": True} for text in ("first", "second", "third")]
    hidden = {"description": "secret", "hidden": True}
    ask(page, steps(*[emit("status", line) for line in lines], emit("status", hidden), {"say": "done"}))
    expect(answers(page).locator(".status-line")).to_have_text("third")
    expect(answers(page).get_by_text("first")).to_be_hidden()
    answers(page).get_by_text("2 earlier steps").click()
    expect(answers(page).get_by_text("first")).to_be_visible()
    expect(answers(page)).not_to_contain_text("secret")


def test_code_that_runs_is_replaced_by_its_result(page: Page) -> None:
    run = {"type": "code_execution", "id": "r", "name": "sum", "code": "1+1", "language": "python"}
    open_new(page, "script")
    ask(page, steps(emit("source", run), emit("source", {**run, "result": {"output": "it is 2"}})))
    expect_idle(page)
    answers(page).get_by_text("Code was run: sum").click()
    expect(answers(page)).to_contain_text("it is 2")


def test_reasoning_is_folded_with_its_seconds(page: Page) -> None:
    open_new(page, "thinks")
    ask(page, "hello")
    expect_idle(page)
    folded = answers(page).get_by_text("Thought for a moment")
    expect(answers(page).get_by_text("Let me think.")).to_have_count(0)
    folded.click()
    expect(answers(page).get_by_text("Let me think.")).to_be_visible()


# Calls -----------------------------------------------------------------------------------------------


def call(kind: str, **data: Any) -> dict[str, Any]:
    """Return the step of the scripted pipe that asks and says the answer."""
    return {"call": {"type": kind, "data": data}}


def dialog_of(page: Page, name: str) -> Locator:
    return page.get_by_role("dialog", name=name)


@pytest.mark.parametrize(("button", "told"), [("Confirm", "true"), ("Cancel", "false")])
def test_a_confirmation_is_answered(page: Page, button: str, told: str) -> None:
    open_new(page, "script")
    ask(page, steps(call("confirmation", title="Go on?", message="It takes long.")))
    dialog = dialog_of(page, "Go on?")
    expect(dialog).to_contain_text("It takes long.")
    dialog.get_by_role("button", name=button).click()
    expect(answers(page)).to_contain_text(told)


def test_an_input_is_answered_and_masked_when_it_is_secret(page: Page) -> None:
    open_new(page, "script")
    asked = {"title": "Name?", "message": "m", "placeholder": "like Ann", "value": "Bob"}
    secret = {"title": "Word?", "message": "m", "type": "password"}
    ask(page, steps(call("input", **asked), call("input", **secret)))
    field = dialog_of(page, "Name?").get_by_role("textbox")
    expect(field).to_have_value("Bob")
    expect(field).to_have_attribute("placeholder", "like Ann")
    field.fill("Eve")
    field.press("Enter")
    expect(answers(page)).to_contain_text('"Eve"')
    masked = dialog_of(page, "Word?").locator("input")
    expect(masked).to_have_attribute("type", "password")
    masked.fill("hush")
    masked.press("Enter")
    expect(answers(page)).to_contain_text('"hush"')


def test_enter_of_an_input_method_does_not_answer(page: Page) -> None:
    open_new(page, "script")
    ask(page, steps(call("input", title="Name?", message="m")))
    field = dialog_of(page, "Name?").get_by_role("textbox")
    field.fill("と")
    init = {"key": "Enter", "isComposing": True, "bubbles": True, "cancelable": True}
    assert field.evaluate("(e, init) => e.dispatchEvent(new KeyboardEvent('keydown', init))", init) is False
    expect(dialog_of(page, "Name?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(answers(page)).to_contain_text("false")


def test_a_call_is_asked_again_after_a_reload(page: Page) -> None:
    open_new(page, "script")
    ask(page, steps(call("confirmation", title="Go on?", message="")))
    dialog_of(page, "Go on?").wait_for()
    page.reload()
    dialog_of(page, "Go on?").get_by_role("button", name="Confirm").click()
    expect(answers(page)).to_contain_text("true")


def test_code_of_a_plugin_is_refused_at_once_unless_allowed(page: Page) -> None:
    open_new(page, "script")
    ask(page, steps(call("execute", code="window.ran = 1; return 2;")))
    expect(answers(page)).to_contain_text("The answer could not be finished")
    expect(answers(page)).to_contain_text("switched that off")
    assert page.evaluate("() => window.ran") is None


def test_a_call_that_one_tab_answers_goes_away_in_the_other(page: Page) -> None:
    first = page
    open_new(first, "script")
    ask(first, steps(call("confirmation", title="Go on?", message="")))
    dialog_of(first, "Go on?").wait_for()
    second = page.context.new_page()
    second.goto(first.url)
    dialog_of(second, "Go on?").wait_for()
    first.bring_to_front()
    dialog_of(first, "Go on?").get_by_role("button", name="Confirm").click()
    expect(dialog_of(second, "Go on?")).to_be_hidden()
    for page in (first, second):
        expect(answers(page)).to_contain_text("true")


def test_a_type_of_ones_own_reaches_its_handler(page: Page) -> None:
    open_new(page, "script")
    page.evaluate(
        """async () => {
        const { registerEventType } = await import("#app/core/events");
        registerEventType("weather:now", (event) => { window.heard = event.data; });
        }"""
    )
    ask(page, steps(emit("weather:now", {"sky": "grey"})))
    page.wait_for_function("() => window.heard")
    assert json.dumps(page.evaluate("() => window.heard")) == '{"sky": "grey"}'
