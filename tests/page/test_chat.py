"""The chat in a real browser: asking, stopping, editing, branches, and long chats."""

import re

from playwright.sync_api import Page, expect

from tests.page.chat_actions import answers, ask, expect_idle, open_new, question_field
from tests.page.site import Site


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
