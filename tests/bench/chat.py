"""A long chat in Chromium: `python -m tests.bench.chat` from the root of the repository.

Opens a chat of 10,000 messages while an answer streams into it, then types a question and scrolls through the
messages. A frame is what the browser draws; a task is what keeps it from drawing. Needs chromium.
"""

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page

from tests.bench.report import table
from tests.page.browser import Noise, new_context, running_browser
from tests.page.site import Site, opened_site, wait_until

Results = dict[str, dict[str, float]]

LIMITS: Final = {
    ("open", "shown ms"): 1000.0,
    ("open", "messages in the page"): 120.0,
    ("typing", "longest task ms"): 100.0,
    ("typing", "busy ms a second"): 400.0,
    ("scrolling", "longest task ms"): 100.0,
    ("scrolling", "busy ms a second"): 400.0,
}
GOALS: Final = {("typing", "frames a second"): 55.0, ("scrolling", "frames a second"): 55.0}
"""Figures that are to be at least this."""

STREAM: Final = '''"""
title: Stream
"""
import asyncio
from pathlib import Path


class Pipe:
    async def pipe(self, body):
        """Say a word every 20 ms until there is a file of the name of the question."""
        number = 0
        while not (Path(FOLDER) / body["messages"][-1]["content"]).exists():
            number += 1
            yield f"word{number} " if number % 12 else f"word{number}\\n\\n"
            await asyncio.sleep(0.02)
'''

WATCH: Final = """() => {
  const found = {frames: [], tasks: []};
  window.watched = found;
  const frame = (now) => { found.frames.push(now); found.next = requestAnimationFrame(frame); };
  found.next = requestAnimationFrame(frame);
  const keep = (entries) => found.tasks.push(...entries.map((one) => one.duration));
  found.observer = new PerformanceObserver((list) => keep(list.getEntries()));
  found.observer.observe({entryTypes: ["longtask"]});
}"""
FOUND: Final = """() => {
  const {frames, tasks, observer, next} = window.watched;
  cancelAnimationFrame(next);
  tasks.push(...observer.takeRecords().map((one) => one.duration));
  observer.disconnect();
  const gaps = frames.slice(1).map((now, place) => now - frames[place]);
  return {
    "frames a second": 1000 * gaps.length / (frames.at(-1) - frames[0]),
    "longest frame ms": Math.max(...gaps),
    "longest task ms": Math.max(0, ...tasks),
  };
}"""
PARAGRAPH: Final = "The heron stands in shallow water and **waits** for fish, as `it` has done all day long. "


def store_chat(site: Site, messages: int) -> str:
    """Store a chat of as many messages, and return its id."""
    nodes: dict[str, Any] = {}
    parent = None
    for number in range(messages):
        made, role = str(uuid.uuid4()), ("user", "assistant")[number % 2]
        text = f"{number}: " + PARAGRAPH * (1 if role == "user" else 4)
        node = {"id": made, "parentId": parent, "childrenIds": [], "role": role, "content": text}
        nodes[made] = {**node, "timestamp": 1_700_000_000 + number, "done": True, "model": "stream"}
        parent = made
    chat = {"title": "Long", "models": ["stream"], "history": {"messages": nodes, "currentId": parent}}
    return str(site.ok("POST", "/api/v1/chats/new", {"chat": chat})["id"])


@contextmanager
def streaming(site: Site, chat_id: str) -> Iterator[None]:
    """Let an answer stream into a chat until the end of the block."""
    leaf = site.ok("GET", f"/api/v1/chats/{chat_id}/branch?limit=1")["leaf_id"]
    name = str(uuid.uuid4())
    question = {"id": str(uuid.uuid4()), "parentId": leaf, "role": "user", "content": name}
    body = {"model": "stream", "chat_id": chat_id, "session_id": "bench", "stream": True}
    messages = [{"role": "user", "content": name}]
    site.ok(
        "POST",
        "/api/chat/completions",
        {**body, "id": str(uuid.uuid4()), "user_message": question, "messages": messages},
    )
    try:
        yield
    finally:
        site.go_on(name)


def watched(page: Page, work: Callable[[], None]) -> dict[str, float]:
    """Return the frames and tasks of some work, and how long the thread of the page was busy."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    began, before = time.monotonic(), busy()
    page.evaluate(WATCH)
    work()
    found: dict[str, float] = page.evaluate(FOUND)
    found["busy ms a second"] = 1000 * (busy() - before) / (time.monotonic() - began)
    session.detach()
    return found


def type_for(page: Page, seconds: float) -> Callable[[], None]:
    """Return what types a question, at ten keys a second."""
    field = page.get_by_role("textbox", name="Your question")

    def work() -> None:
        field.focus()
        page.keyboard.type("How long does it wait? " * int(seconds * 10 / 23 + 1), delay=100)

    return work


def scroll_for(page: Page, seconds: float) -> Callable[[], None]:
    """Return what scrolls upwards through the messages by the wheel."""

    def work() -> None:
        page.locator(".transcript").hover()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            page.mouse.wheel(0, -400)
            page.wait_for_timeout(30)

    return work


def measure(site: Site, browser: Browser, messages: int, seconds: float) -> Results:
    """Return the figures."""
    chat_id = store_chat(site, messages - 2)
    context = new_context(browser, Noise(), base_url=site.url, reduced_motion="no-preference")
    site.sign_in(context)
    page = context.new_page()
    with streaming(site, chat_id):
        page.goto(f"/c/{chat_id}")
        answer = page.locator(".message.answer").last
        answer.get_by_text("word1 ").first.wait_for()
        opened = {
            "shown ms": page.evaluate("() => performance.now()"),
            "messages in the page": float(page.locator(".message").count()),
        }
        before = len(answer.inner_text())
        typing = watched(page, type_for(page, seconds))
        wait_until(lambda: len(answer.inner_text()) > before, "the answer to go on")
        scrolling = watched(page, scroll_for(page, seconds))
        opened["messages in the page"] = max(
            opened["messages in the page"], float(page.locator(".message").count())
        )
    context.close()
    return {"open": opened, "typing": typing, "scrolling": scrolling}


def results_table(results: Results) -> str:
    """Return a Markdown table of the figures, with what was to be reached."""
    rows = []
    for name, found in results.items():
        for label, value in found.items():
            limit, goal = LIMITS.get((name, label)), GOALS.get((name, label))
            is_reached = (limit is None or value <= limit) and (goal is None or value >= goal)
            bound = f"<= {limit:.0f}" if limit is not None else f">= {goal:.0f}" if goal is not None else ""
            rows.append(
                [name, label, f"{value:.1f}", bound, bound and ("reached" if is_reached else "MISSED")]
            )
    return table(["part", "figure", "found", "reach", ""], rows)


def main(given: Sequence[str] | None = None) -> int:
    """Measure, and return 1 when something was missed."""
    parser = argparse.ArgumentParser("python -m tests.bench.chat", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000, help="messages of the chat (10000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of typing and of scrolling (5)")
    options: Any = parser.parse_args(given)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_site(Path(folder), plugins={"stream": STREAM}) as site,
        running_browser() as browser,
    ):
        found = results_table(measure(site, browser, options.messages, options.seconds))
    sys.stdout.write(f"{found}\n")
    return 1 if "MISSED" in found else 0


if __name__ == "__main__":
    sys.exit(main())
