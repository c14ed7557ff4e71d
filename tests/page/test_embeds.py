"""Embeds in the browser: what they may say, what they may not reach, and which pages are shown at all."""

import json
from typing import Any

import pytest
from playwright.sync_api import FrameLocator, Page, Route, expect

from tests.page.browser import Noise
from tests.page.injections import INJECTIONS, assert_nothing_ran

EMBED = """<button onclick="parent.postMessage(MESSAGE, '*')">Say</button>
<script>addEventListener('message', ({data}) => { document.title = JSON.stringify(data); });</script>"""


def embed(page: Page, message: str, **props: Any) -> FrameLocator:
    page.evaluate(
        "(props) => stage.embed(props)",
        {"html": EMBED.replace("MESSAGE", message), "title": "Chart", **props},
    )
    frame = page.frame_locator("iframe[title=Chart]")
    frame.get_by_role("button", name="Say").wait_for()
    return frame


def log(page: Page) -> list[Any]:
    found: list[Any] = page.evaluate("() => stage.log")
    return found


def test_an_embed_runs_in_an_origin_of_its_own(stage: Page, noise: Noise) -> None:
    noise.expect("Content Security Policy|sandboxed|SecurityError|Failed to (load|fetch)")
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    stage.context.route("https://outside.invalid/**", refuse)
    source = """<p id=out>-</p><script>
      const tried = [];
      const attempt = (name, act) => { try { const got = act(); if (got) tried.push(name); } catch {} };
      attempt("cookie", () => document.cookie);
      attempt("parent", () => parent.document.body);
      attempt("top", () => { top.location = "https://outside.invalid/"; return false; });
      attempt("storage", () => localStorage);
      attempt("opened", () => open("https://outside.invalid/"));
      attempt("alert", () => { alert(1); return false; });
      fetch("/api/config").then(() => tried.push("fetched"), () => {}).finally(() => {
        document.getElementById("out").textContent = `${origin} ${tried.join()} done`;
      });
      new Image().src = "https://outside.invalid/pixel.png";
      location = "https://outside.invalid/gone";
    </script>"""
    stage.evaluate(
        "(html) => stage.embed({html, title: 'Chart'})",
        source.replace('location = "https://outside.invalid/gone";', ""),
    )
    out = stage.frame_locator("iframe[title=Chart]").locator("#out")
    expect(out).to_have_text("null  done")
    stage.evaluate("(html) => stage.embed({html, title: 'Chart'})", source)
    stage.wait_for_timeout(300)
    assert asked == []
    assert "outside.invalid" not in stage.url


def test_the_corpus_stays_in_its_frame(stage: Page, noise: Noise) -> None:
    noise.expect(".")
    for texts in INJECTIONS.values():
        markup = "\n".join(text for text in texts if len(text) < 1_000)
        stage.evaluate("(html) => stage.embed({html, title: 'Chart'})", markup)
        stage.wait_for_timeout(150)
        stage.evaluate("(url) => stage.embed({url, title: 'Chart'})", texts[0])
        assert_nothing_ran(stage)


def test_an_embed_fills_the_composer(stage: Page) -> None:
    frame = embed(stage, "{type: 'input:prompt', text: 'Hello'}")
    # Two messages at once, however slow the machine is.
    frame.get_by_role("button", name="Say").evaluate("(button) => { button.click(); button.click(); }")
    stage.wait_for_function("() => stage.log.length > 0")
    stage.wait_for_timeout(50)
    assert log(stage) == [["prompt", "Hello"]], "an embed may not write all the time"


@pytest.mark.parametrize("kind", ["input:prompt:submit", "action:submit"])
def test_an_embed_sends_only_with_consent(stage: Page, kind: str) -> None:
    frame = embed(stage, f"{{type: '{kind}', text: 'Delete all'}}")
    frame.get_by_role("button", name="Say").click()
    dialog = stage.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete all")
    stage.wait_for_timeout(600)
    stage.evaluate("() => document.querySelector('iframe[title=Chart]').contentWindow.postMessage(0, '*')")
    expect(dialog).to_have_count(1)
    dialog.get_by_role("button", name="Cancel").click()
    assert log(stage) == []
    frame.get_by_role("button", name="Say").click()
    dialog.get_by_role("button", name="Send").click()
    stage.wait_for_function("() => stage.log.length === 1")
    assert log(stage) == [["submit", "Delete all"]]


def test_an_embed_asks_one_question_at_a_time(stage: Page) -> None:
    frame = embed(stage, "0")
    flood = """() => { for (let i = 0; i < 50; i += 1) setTimeout(() =>
      parent.postMessage({type: 'input:prompt:submit', text: `question ${i}`}, '*'), i * 30); }"""
    frame.locator("body").evaluate(flood)
    stage.get_by_role("dialog").wait_for()
    stage.wait_for_timeout(1_600)
    expect(stage.get_by_role("dialog")).to_have_count(1)
    stage.keyboard.press("Escape")
    expect(stage.get_by_role("dialog")).to_have_count(0)


def test_an_embed_that_is_refused_again_and_again_asks_no_more(stage: Page) -> None:
    frame = embed(stage, "0")
    frame.locator("body").evaluate(
        "() => setInterval(() => parent.postMessage({type: 'action:submit', text: 'Please'}, '*'), 50)"
    )
    for _ in range(3):
        stage.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    stage.wait_for_timeout(700)
    expect(stage.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize(
    ("message", "height"),
    [
        ("{type: 'iframe:height', height: 123.4}", "124px"),
        ("{type: 'iframe:height', height: 1e9}", "2000px"),
        ("{type: 'iframe:height', height: -5}", "40px"),
    ],
)
def test_the_height_of_an_embed_is_bounded(stage: Page, message: str, height: str) -> None:
    embed(stage, message).get_by_role("button", name="Say").click()
    expect(stage.locator("iframe[title=Chart]")).to_have_css("height", height)


def test_nonsense_of_an_embed_is_dropped(stage: Page) -> None:
    frame = embed(stage, "0")
    height = stage.locator("iframe[title=Chart]").evaluate("(frame) => frame.offsetHeight")
    messages: list[Any] = [
        None,
        1,
        "iframe:height",
        [],
        {"type": "__proto__"},
        {"type": {}},
        {"type": "execute"},
    ]
    messages += [{"type": "iframe:height", "height": height} for height in ("9px", None, {}, [], "1e3")]
    for kind in ("input:prompt", "input:prompt:submit", "action:submit"):
        messages += [{"type": kind, "text": text} for text in ("", " ", "x" * 10_001, 5, None, {}, ["a"])]
    messages += [{"type": "payload", "requestId": asked} for asked in (None, 5, {}, "x" * 201)]
    say = "(body, messages) => { for (const message of messages) parent.postMessage(message, '*'); }"
    frame.locator("body").evaluate(say, messages)
    frame.locator("body").evaluate("() => parent.postMessage({type: 'iframe:height', height: NaN}, '*')")
    stage.evaluate("() => postMessage({type: 'input:prompt', text: 'from the page itself'}, '*')")
    stage.wait_for_timeout(150)
    assert log(stage) == []
    expect(stage.get_by_role("dialog")).to_have_count(0)
    assert stage.locator("iframe[title=Chart]").evaluate("(frame) => frame.offsetHeight") == height
    assert frame.locator("body").evaluate("() => document.title") == ""


@pytest.mark.parametrize(("asked", "payload"), [("r1", {"a": 1}), ("r2", None)])
def test_an_embed_gets_its_own_payload(stage: Page, asked: str, payload: Any) -> None:
    message = f"{{type: 'payload', requestId: '{asked}'}}"
    frame = embed(stage, message, requestId="r1", payload={"a": 1})
    frame.get_by_role("button", name="Say").click()
    frame.locator("body").evaluate("() => new Promise((done) => setTimeout(done, 50))")
    got = json.loads(frame.locator("body").evaluate("() => document.title"))
    assert got == {"type": "payload", "requestId": asked, "payload": payload}


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://other.example/x", "other.example"), ("http://videos.example/1", "videos.example")],
)
def test_pages_of_hosts_that_are_not_listed_are_links(stage: Page, url: str, host: str) -> None:
    stage.evaluate("(url) => stage.embed({url, title: 'Film'})", url)
    link = stage.get_by_role("link", name=f"Open Film at {host}")
    expect(link).to_have_attribute("href", url)
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(stage.locator("iframe")).to_have_count(0)


def test_which_hosts_are_listed(stage: Page) -> None:
    found = stage.evaluate(
        """async () => {
          const {isListed} = await import("#app/render/embed");
          const hosts = ["videos.example", "*.cdn.example", "port.example:8443", "127.0.0.1"];
          const of = (text) => isListed(new URL(text), hosts);
          return ["https://videos.example/a", "https://a.cdn.example/", "https://port.example:8443/", "http://videos.example/",
            "https://cdn.example/", "https://evilcdn.example/", "https://port.example/", "https://videos.example.evil.example/",
            "https://127.0.0.1:1/"].map(of);
        }"""
    )
    assert found == [True, True, True, *[False] * 6]
