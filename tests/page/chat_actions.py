"""What people do in the chat, for the tests."""

import re
import uuid
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.page.site import Site


def open_new(page: Page, model: str = "echo") -> None:
    """Open a new chat with a model."""
    page.goto("/")
    choose(page, model)


def choose(page: Page, model: str) -> None:
    """Choose a model in the picker."""
    page.get_by_role("button", name="Model:").click()
    page.get_by_role("searchbox", name="Search models").fill(model)
    # The models may still be on their way.
    page.locator(".model-choice", has_text=re.compile(model, re.IGNORECASE)).wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=f"Model: {model}")).to_be_visible()


def question_field(page: Page) -> Locator:
    """Return the field of the question."""
    return page.get_by_role("textbox", name="Your question")


def ask(page: Page, text: str) -> None:
    """Ask a question."""
    field = question_field(page)
    field.fill(text)
    before = page.locator(".message.question").count()
    field.press("Enter")
    expect(page.locator(".message.question")).to_have_count(before + 1)


def answers(page: Page) -> Locator:
    """Return the answers that are shown."""
    return page.locator(".message.answer")


def expect_idle(page: Page) -> None:
    """Wait until no answer runs."""
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def stored_chat(site: Site, turns: int, model: str = "echo", **more: Any) -> str:
    """Store a chat of some turns and return its id."""
    messages: dict[str, Any] = {}
    parent = None
    for number in range(turns):
        for role, text in (("user", f"question {number}"), ("assistant", f"answer {number}")):
            made = str(uuid.uuid4())
            node = {"id": made, "parentId": parent, "childrenIds": [], "role": role, "content": text}
            messages[made] = {**node, "timestamp": 1_700_000_000 + number, "done": True, "model": model}
            parent = made
    history = {"messages": messages, "currentId": parent}
    chat = {"title": "Stored", "models": [model], "history": history, **more}
    return str(site.ok("POST", "/api/v1/chats/new", {"chat": chat})["id"])
