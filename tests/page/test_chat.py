"""The chat in a real browser: asking, stopping, editing, branches, and long chats."""

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import find_violations
from tests.page.chat_actions import answers, ask, expect_idle, open_new, question_field, stored_chat
from tests.page.conftest import NewContext, NewTab
from tests.page.site import USER, Site, steps, wait_until


def test_a_question_is_answered_and_kept(page: Page, site: Site) -> None:
    open_new(page)
    ask(page, "How are you today")
    expect(answers(page)).to_contain_text("How are you today")
    expect_idle(page)
    expect(page).to_have_url(re.compile("/c/[0-9a-f-]+$"))
    expect(question_field(page)).to_have_value("")
    page.reload()
    expect(answers(page)).to_contain_text("How are you today")
    expect(page.locator(".message.question")).to_contain_text("How are you today")


def test_an_answer_goes_on_when_its_tab_is_closed(contexts: NewContext, site: Site) -> None:
    context = contexts()
    page = context.new_page()
    open_new(page, "script")
    ask(page, steps({"say": "one "}, {"wait": "closed tab"}, {"say": "two"}))
    expect(answers(page)).to_contain_text("one")
    address = page.url
    page.close()
    again = context.new_page()
    again.goto(address)
    expect(answers(again)).to_contain_text("one")
    # It still runs: the stream goes on in the new tab.
    expect(again.get_by_role("button", name="Stop the answer")).to_be_visible()
    site.go_on("closed tab")
    expect(answers(again)).to_contain_text("one two")
    again.close()
    last = context.new_page()
    last.goto(address)
    expect(answers(last)).to_contain_text("one two")


def test_stop_keeps_what_was_said(page: Page) -> None:
    open_new(page, "slow")
    ask(page, "many words that never end")
    expect(answers(page)).to_contain_text("many")
    page.get_by_role("button", name="Stop the answer").click()
    expect_idle(page)
    expect(answers(page)).to_contain_text("many")
    page.reload()
    expect(answers(page)).to_contain_text("many")
    expect(answers(page)).not_to_contain_text("never")


def test_a_reconnect_in_mid_stream_neither_loses_nor_doubles(user_page: Page, site: Site) -> None:
    page = user_page
    open_new(page, "script")
    words = [f"w{number} " for number in range(60)]
    told = [{"emit": {"type": "message", "data": {"content": word}}} for word in words]
    ask(page, steps(*told[:30], {"wait": "reconnect"}, *told[30:]))
    expect(answers(page)).to_contain_text("w29")
    # The end of a key ends all streams of its account.
    site.ok("POST", "/api/v1/auths/api_key", {}, site.user)
    site.ok("DELETE", "/api/v1/auths/api_key", None, site.user)
    site.go_on("reconnect")
    expect_idle(page)
    expect(answers(page).locator(".prose")).to_have_text("".join(words).strip())


def test_a_chat_opened_in_mid_stream_has_each_piece_once(tabs: NewTab, site: Site) -> None:
    words = [f"w{number} " for number in range(200)]
    told = [{"emit": {"type": "message", "data": {"content": word}}} for word in words]
    turn = site.ask("script", steps(*told[:100], {"wait": "mid"}, *told[100:], {"wait": "mid 2"}), site.admin)
    page = tabs()
    site.go_on("mid")
    page.goto(f"/c/{turn.chat_id}")
    expect(answers(page).locator(".prose")).to_have_text("".join(words).strip())
    site.go_on("mid 2")


def test_two_tabs_stay_in_step(page: Page, site: Site) -> None:
    first, second = page, page.context.new_page()
    open_new(first, "script")
    ask(first, steps({"say": "shared words"}))
    expect_idle(first)
    second.goto(first.url)
    expect(answers(second)).to_contain_text("shared words")
    ask(second, steps({"say": "from the other"}, {"wait": "two tabs"}))
    expect(answers(first)).to_have_count(2)
    expect(answers(first).last).to_contain_text("from the other")
    expect(first.get_by_role("button", name="Stop the answer")).to_be_visible()
    site.go_on("two tabs")
    expect_idle(first)
    answers(first).last.get_by_role("button", name="Favourite").click()
    heart = answers(second).last.get_by_role("button", name="Favourite")
    expect(heart).to_have_attribute("aria-pressed", "true")
    # The heart is stored, and no later turn takes it away.
    ask(first, steps({"say": "third"}))
    expect_idle(first)
    first.reload()
    hearts = answers(first).get_by_role("button", name="Favourite")
    expect(hearts.nth(1)).to_have_attribute("aria-pressed", "true")
    # Changes by another browser are seen in both without a reload.
    path = f"/api/v1/chats/{first.url.rpartition('/')[2]}"
    [*_, question, last] = site.ok("GET", f"{path}/branch")["messages"]
    edited = {"messages": {last["id"]: {"content": "rewritten elsewhere"}}}
    site.ok("POST", f"{path}/branch", {"chat": {"history": edited}})
    for tab in (first, second):
        expect(answers(tab).last).to_contain_text("rewritten elsewhere")
    site.ok("POST", f"{path}/messages/{uuid4()}", {"content": "asked elsewhere"})
    for tab in (first, second):
        expect(tab.get_by_text("asked elsewhere")).to_be_visible()
    site.ok("DELETE", f"{path}/branch/{question['id']}")
    for tab in (first, second):
        expect(answers(tab)).to_have_count(2)


def test_editing_and_answering_again_make_branches(page: Page, site: Site) -> None:
    open_new(page)
    ask(page, "first words")
    expect_idle(page)
    page.locator(".message.question").get_by_role("button", name="Edit").click()
    editor = page.get_by_role("textbox", name="Text of the message")
    editor.fill("thrown away")
    editor.press("Escape")
    question_field(page).press("ArrowUp")
    expect(editor).to_have_value("first words")
    editor.fill("second words")
    editor.press("Control+Enter")
    expect(answers(page)).to_contain_text("second words")
    expect_idle(page)
    fork = page.locator(".message.question").get_by_role("group", name="Branches")
    expect(fork).to_contain_text("2/2")
    answers(page).get_by_role("button", name="Answer again").click()
    # The new answer takes the place of the other one before it ends.
    expect(answers(page).get_by_role("group", name="Branches")).to_contain_text("2/2")
    expect(answers(page)).to_contain_text("second words")
    expect_idle(page)
    fork.get_by_role("button", name="Previous branch").click()
    expect(page.locator(".message.question")).to_contain_text("first words")
    expect(answers(page)).to_contain_text("first words")
    page.reload()
    expect(answers(page)).to_contain_text("first words")
    fork.get_by_role("button", name="Next branch").click()
    # The place in the other branch is remembered: the second answer.
    expect(answers(page).get_by_role("group", name="Branches")).to_contain_text("2/2")
    expect(answers(page)).to_contain_text("second words")
    page.locator(".message.question").get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This deletes 3 messages")
    expect(dialog).to_contain_text("1 of them is in a branch that is not shown.")
    dialog.get_by_role("button", name="Delete 3 messages").click()
    expect(answers(page)).to_contain_text("first words")
    expect(page.get_by_role("group", name="Branches")).to_have_count(0)


def test_an_answer_is_rewritten_in_place(page: Page) -> None:
    open_new(page)
    ask(page, "first words")
    expect_idle(page)
    answers(page).get_by_role("button", name="Edit").click()
    editor = page.get_by_role("textbox", name="Text of the message")
    editor.fill("better words")
    page.get_by_role("button", name="Save").click()
    expect(answers(page)).to_contain_text("better words")
    page.reload()
    expect(answers(page)).to_contain_text("better words")


def test_enter_of_an_input_method_does_not_send(page: Page) -> None:
    open_new(page)
    field = question_field(page)
    field.fill("とう")
    for init in ({"isComposing": True}, {"keyCode": 229}):
        event = {"key": "Enter", "bubbles": True, "cancelable": True, **init}
        # The page leaves the key to the input method.
        assert field.evaluate("(e, init) => e.dispatchEvent(new KeyboardEvent('keydown', init))", event)
    expect(page.locator(".message")).to_have_count(0)
    field.press("Shift+Enter")
    expect(field).to_have_value("とう\n")
    field.press("Control+Enter")
    expect(page.locator(".message.question")).to_contain_text("とう")
    expect_idle(page)


def test_enter_is_a_new_line_on_a_phone(phone_page: Page) -> None:
    open_new(phone_page)
    field = question_field(phone_page)
    field.fill("a")
    field.press("Enter")
    expect(field).to_have_value("a\n")
    phone_page.get_by_role("button", name="Send").tap()
    expect(answers(phone_page)).to_contain_text("a")
    expect_idle(phone_page)


def test_drafts_are_kept_by_chat(page: Page, site: Site) -> None:
    chat_id = stored_chat(site, 1)
    page.goto("/")
    question_field(page).fill("half a question")
    page.goto(f"/c/{chat_id}")
    expect(question_field(page)).to_have_value("")
    question_field(page).fill("another")
    page.goto("/")
    expect(question_field(page)).to_have_value("half a question")
    page.goto(f"/c/{chat_id}")
    expect(question_field(page)).to_have_value("another")


def test_a_draft_is_not_for_who_comes_after(tabs: NewTab, site: Site) -> None:
    page = tabs(site.add("drafter@example.com").email)
    context = page.context
    page.goto("/")
    question_field(page).fill("private words")
    page.goto("/overview")
    context.clear_cookies()
    site.sign_in(context, USER)
    page.goto("/")
    expect(question_field(page)).to_have_value("")
    context.clear_cookies()
    site.sign_in(context, "drafter@example.com")
    page.goto("/")
    expect(question_field(page)).to_have_value("private words")
    question_field(page).fill("last words")
    page.evaluate("() => import('#app/core/session').then(({ signOut }) => signOut())")
    page.get_by_label("E-mail address").wait_for()
    page.goto("/auth")
    assert "words" not in page.evaluate("() => JSON.stringify(localStorage)")


def test_a_question_that_cannot_be_sent_comes_back(page: Page, site: Site) -> None:
    chat_id = stored_chat(site, 1)
    page.goto(f"/c/{chat_id}")
    expect_idle(page)
    page.route("**/api/chat/completions", lambda route: route.abort())
    question_field(page).fill("lost words")
    question_field(page).press("Enter")
    expect(page.locator(".composer").get_by_role("alert")).to_be_visible()
    expect(question_field(page)).to_have_value("lost words")
    expect(page.locator(".message")).to_have_count(2)


def test_an_unknown_chat_says_so(page: Page) -> None:
    page.goto("/c/unknown")
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("cannot find chat")


def test_a_failed_answer_can_be_tried_again(page: Page) -> None:
    open_new(page, "script")
    ask(page, steps({"fail": "out of paper"}))
    expect(answers(page).get_by_role("alert")).to_contain_text("The answer could not be finished")
    answers(page).get_by_role("button", name="Try again").click()
    expect(answers(page).get_by_role("group", name="Branches")).to_contain_text("2/2")


def test_a_file_is_attached_and_cited(page: Page) -> None:
    page.goto("/")
    text = "The heron stands in shallow water and waits for fish."
    file = {"name": "birds.txt", "mimeType": "text/plain", "buffer": text.encode()}
    page.locator("input[type=file]").set_input_files([file])  # type: ignore[list-item]
    chosen = page.get_by_role("list", name="Goes with the question")
    expect(chosen).to_contain_text("birds.txt")
    expect(chosen.get_by_role("progressbar")).to_have_count(0, timeout=20_000)
    ask(page, "Where does the heron stand?")
    expect(page.locator(".message.question").get_by_role("link", name="birds.txt")).to_be_visible()
    answers(page).get_by_role("button", name="birds.txt").click()
    expect(page.get_by_role("dialog").get_by_role("region", name="Passages")).to_contain_text(text)
    page.get_by_role("button", name="Show in the file").click()
    expect(page.get_by_role("dialog").last.locator("mark")).to_contain_text(text)


def test_a_file_that_cannot_be_read_says_why(page: Page) -> None:
    page.goto("/")
    file = {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 broken"}
    page.locator("input[type=file]").set_input_files([file])  # type: ignore[list-item]
    expect(page.get_by_role("list", name="Goes with the question").get_by_role("alert")).to_be_visible()
    page.get_by_role("button", name="Remove broken.pdf").click()
    expect(page.get_by_role("list", name="Goes with the question")).to_have_count(0)


# Scrolling -------------------------------------------------------------------------------------------


def top_of(page: Page) -> float:
    return float(page.locator(".transcript").evaluate("(e) => e.scrollTop"))


def test_the_view_follows_the_answer_until_the_reader_scrolls_up(page: Page, site: Site) -> None:
    open_new(page, "script")
    lines = {"say": "line\n" * 80}
    ask(page, steps(lines, {"wait": "scroll 1"}, lines, {"wait": "scroll 2"}, lines, {"say": "the end"}))
    transcript = page.locator(".transcript")
    at_end = "(e) => e.scrollHeight - e.clientHeight - e.scrollTop < 3 && e.scrollTop > 1000"
    wait_until(lambda: transcript.evaluate(at_end), "the view to follow")
    transcript.hover()
    page.mouse.wheel(0, -600)
    wait_until(lambda: not transcript.evaluate(at_end), "the view to move")
    page.wait_for_timeout(100)
    before = top_of(page)
    site.go_on("scroll 1")
    page.wait_for_function("() => document.querySelector('.prose').textContent.length > 500")
    assert abs(top_of(page) - before) < 2
    page.get_by_role("button", name="To the newest message").click()
    wait_until(lambda: transcript.evaluate(at_end), "the end")
    site.go_on("scroll 2")
    expect(answers(page)).to_contain_text("the end")
    expect_idle(page)
    wait_until(lambda: transcript.evaluate(at_end), "the view to follow again")


def test_a_long_chat_is_shown_in_part_and_keeps_the_place(page: Page, site: Site) -> None:
    chat_id = stored_chat(site, 300)
    page.goto(f"/c/{chat_id}")
    expect(answers(page).last).to_contain_text("answer 299")
    transcript = page.locator(".transcript")
    for _ in range(40):
        if page.get_by_text("question 0", exact=True).count():
            break
        first = page.locator(".message").first.get_attribute("data-id")
        place = f'.message[data-id="{first}"]'
        transcript.evaluate("(e) => { e.scrollTop = 0; }")
        page.wait_for_function(
            "(place) => !document.querySelector(place)?.matches('.message:first-of-type')", arg=place
        )
        assert page.locator(".message").count() <= 120
    expect(page.get_by_text("question 0", exact=True)).to_be_attached()
    page.get_by_role("button", name="To the newest message").click()
    expect(answers(page).last).to_contain_text("answer 299")


def test_a_message_far_up_is_shown_by_its_address(page: Page, site: Site) -> None:
    chat_id = stored_chat(site, 200)
    branch = site.ok("GET", f"/api/v1/chats/{chat_id}/branch?limit=200")["messages"]
    sought = next(message for message in branch if message["content"] == "question 110")
    page.goto(f"/c/{chat_id}?message={sought['id']}")
    message = page.locator(f'.message[data-id="{sought["id"]}"]')
    expect(message).to_contain_text("question 110")
    expect(message).to_be_in_viewport()
    page.get_by_role("button", name="To the newest message").click()
    expect(answers(page).last).to_contain_text("answer 199")


HOSTILE = "<img src=x onerror='window.ran=1'><script>window.ran=1</script>\"><svg onload=window.ran=1>"


def test_nothing_that_a_plugin_tells_runs(page: Page) -> None:
    open_new(page, "script")
    source = {"source": {"name": HOSTILE, "url": "javascript:window.ran=1"}, "document": [HOSTILE]}
    run = {
        "type": "code_execution",
        "id": "r",
        "name": HOSTILE,
        "code": HOSTILE,
        "result": {"output": HOSTILE},
    }
    files = [{"type": "file", "name": HOSTILE, "url": "javascript:window.ran=1"}]
    told = {
        "status": {"description": HOSTILE, "queries": [HOSTILE]},
        "source": source,
        "citation": run,
        "files": {"files": [*files, {"type": "image", "name": HOSTILE, "url": "x"}]},
        "chat:title": HOSTILE,
        "chat:tags": [HOSTILE],
        "notification": {"type": HOSTILE, "content": HOSTILE},
        "chat:message:follow_ups": {"follow_ups": [HOSTILE]},
        "chat:message:error": {"error": {"content": HOSTILE}},
        "message": {"content": f'<details type="tool_calls" name="{HOSTILE}">\n{HOSTILE}</details>{HOSTILE}'},
    }
    asked = {"title": HOSTILE, "message": HOSTILE, "placeholder": HOSTILE, "value": HOSTILE}
    events = [{"emit": {"type": name, "data": data}} for name, data in told.items()]
    ask(page, steps(*events, {"call": {"type": "input", "data": asked}}))
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(HOSTILE)
    dialog.get_by_role("button", name="Answer").click()
    expect_idle(page)
    answers(page).locator(".source-chip").click()
    expect(page.get_by_role("dialog").get_by_role("region", name="Passages")).to_contain_text(HOSTILE)
    assert page.evaluate("() => window.ran") is None
    assert page.locator("main img[src=x], main script, [onerror], [onload], a[href^=javascript]").count() == 0


# Reading ---------------------------------------------------------------------------------------------


def test_a_shared_chat_is_shown_to_read(tabs: NewTab, site: Site) -> None:
    chat_id = stored_chat(site, 2)
    shared = site.ok("POST", f"/api/v1/chats/{chat_id}/share", {})
    page = tabs("user@example.com")
    page.goto(f"/s/{shared['share_id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Stored")
    expect(answers(page).last).to_contain_text("answer 1")
    expect(page.get_by_role("button", name="Answer again")).to_have_count(0)
    page.get_by_role("button", name="Copy to my chats").click()
    expect(page).to_have_url(re.compile("/c/[0-9a-f-]+$"))
    expect(answers(page).last).to_contain_text("answer 1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(tabs: NewTab, site: Site, axe: str, scheme: str) -> None:
    page = tabs(color_scheme=scheme)
    open_new(page, "script")
    source = {"source": {"name": "book"}, "document": ["d"], "metadata": [{"source": "book"}]}
    status = {"emit": {"type": "status", "data": {"description": "Looking", "done": True}}}
    ask(page, steps(status, status, {"emit": {"type": "source", "data": source}}, {"say": "words"}))
    expect_idle(page)
    assert find_violations(page, axe) == []
    page.get_by_role("button", name="Model:").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert find_violations(page, axe) == []


def test_what_is_said_to_screen_readers(page: Page) -> None:
    open_new(page)
    ask(page, "spoken words")
    expect(page.get_by_role("status", name="Progress of the answer")).to_have_text("spoken words")
    expect(page.get_by_role("log")).to_have_attribute("aria-live", "off")
