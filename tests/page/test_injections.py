"""The corpus of injections in what users, providers and plugins control: it stays text everywhere."""

import asyncio
import re
import time
import uuid
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.fakes.http.loop_thread import background_loop
from tests.fakes.providers.hostile_oidc import CLIENT, SECRET, HostileProvider, hostile_provider
from tests.page.browser import Noise
from tests.page.chat_actions import answers
from tests.page.conftest import NewTab
from tests.page.injections import INJECTIONS, SHORT, assert_nothing_ran
from tests.page.site import Site, opened_site, steps

SVG = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='top.ran_by_injection=1'/>"
NAMES = [text for text in SHORT if len(text) <= 64 and text.isprintable() and text == text.strip()][::3]
LARGE = [text for text in INJECTIONS["sizes"] if len(text) <= 50_000][:12]
VIEWS = (
    "/overview",
    "/documents",
    *(f"/admin/{name}" for name in ("users", "groups", "models", "functions", "collections")),
)
UNFOLD = """() => {
  for (const one of document.querySelectorAll("main summary, main [aria-expanded=false]")) one.click();
}"""
MARKS = {"short": "<script>", "large": "x^{x^{x"}
INPUT = ("title", "message", "placeholder", "value")
PLUGIN = '''"""
title: {title}
description: {title}
author: {title}
icon_url: javascript:top.ran_by_injection=1
"""
from pydantic import BaseModel, Field


class Action:
    class Valves(BaseModel):
        word: str = Field({title!r}, title={title!r}, description={title!r})

    def __init__(self):
        self.valves = self.Valves()

    async def action(self, body):
        return None
'''


@pytest.fixture(scope="module")
def provider() -> Iterator[HostileProvider]:
    """Serve an identity provider whose claims hold the corpus."""
    with background_loop() as loop:

        def run(work: Coroutine[Any, Any, Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(work, loop).result(10)

        serving = hostile_provider(int(time.time()))
        yield run(serving.__aenter__())
        run(serving.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, provider: HostileProvider) -> Iterator[Site]:
    settings = {
        "OPENID_PROVIDER_URL": f"{provider.issuer}/.well-known/openid-configuration",
        "OAUTH_PROVIDER_NAME": NAMES[0],
        "OAUTH_CLIENT_ID": CLIENT,
        "OAUTH_CLIENT_SECRET": SECRET,
        "ENABLE_OAUTH_SIGNUP": "true",
        "ENABLE_OAUTH_GROUP_MANAGEMENT": "true",
        "ENABLE_OAUTH_GROUP_CREATION": "true",
        "DEFAULT_USER_ROLE": "user",
    }
    with opened_site(tmp_path_factory.mktemp("i"), **settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def chats(site: Site, person: str) -> Mapping[str, str]:
    """Fill the gateway, and return the ids of the chats with the corpus: short texts, and large ones."""
    for number, text in enumerate(NAMES):
        fill_lists(site, number, text)
    evil = NAMES[0]
    plugin = {"id": "evil", "name": evil, "content": PLUGIN.format(title=evil), "meta": {}}
    site.ok("POST", "/api/v1/functions/create", plugin)
    site.ok("POST", "/api/v1/functions/id/evil/toggle")
    site.ok("POST", "/api/v1/functions/id/evil/toggle/global")
    kinds = [texts for kind, texts in INJECTIONS.items() if kind != "sizes"]
    return {"short": store_chat(site, kinds), "large": store_chat(site, [[text] for text in LARGE])}


@pytest.fixture(scope="module")
def person(site: Site, provider: HostileProvider) -> str:
    """Sign people in whose claims hold the corpus, and return the session of the last one."""
    for number, text in enumerate(NAMES[:2]):
        claims = {
            "sub": f"{number} {text}",
            "name": text,
            "groups": [f"of {name}" for name in NAMES[number::2]],
            "picture": SVG,
        }
        session = enter(site, provider, **claims, email=f"p{number}@example.org")
    return session


def enter(site: Site, provider: HostileProvider, **claims: Any) -> str:
    """Sign somebody in at the provider with these claims, and return their session."""
    begun = answer_of(site, "/oauth/oidc/login")
    query = parse_qs(urlsplit(begun.headers["Location"]).query)
    asked = {name: values[0] for name, values in query.items()}
    provider.time = int(time.time())
    provider.grant("c", provider.claims(asked["nonce"], **claims), asked["code_challenge"])
    came = urlencode({"state": asked["state"], "code": "c", "iss": provider.issuer})
    attempt = begun.headers["Set-Cookie"].partition(";")[0]
    back = answer_of(site, f"/oauth/oidc/callback?{came}", attempt)
    assert back.headers["Location"] == "/", back.headers["Location"]
    cookies = [each.partition(";")[0] for each in back.headers.get_all("Set-Cookie")]
    return next(each.removeprefix("token=") for each in cookies if each.startswith("token="))


def answer_of(site: Site, path: str, cookie: str = "") -> HTTPResponse:
    connection = HTTPConnection(site.url.removeprefix("http://"))
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    connection.close()
    return answer


def fill_lists(site: Site, number: int, text: str) -> None:
    """Put a text where names and descriptions are."""
    history = {"messages": {}, "currentId": None}
    site.ok("POST", "/api/v1/chats/new", {"chat": {"title": text, "history": history}})
    site.ok("POST", "/api/v1/folders/", {"name": text})
    preset = {"id": f"m{number}", "name": text, "base_model_id": "echo", "params": {}}
    site.ok("POST", "/api/v1/models/create", {**preset, "meta": {"description": text}})
    site.ok("POST", "/api/v1/knowledge/create", {"name": text, "description": text})
    site.ok("POST", "/api/v1/groups/create", {"name": text, "description": text})


def store_chat(site: Site, answers: Sequence[Sequence[str]]) -> str:
    """Store a chat with answers that have their texts in all fields; the gateway stores no NUL."""
    nodes: dict[str, Any] = {}
    parent = None
    for given in answers:
        texts = [text.replace("\0", " ") for text in given]
        question, answer = str(uuid.uuid4()), str(uuid.uuid4())
        common = {"timestamp": 1_700_000_000 + len(nodes), "done": True}
        asked = {**common, "id": question, "parentId": parent, "childrenIds": [answer], "role": "user"}
        told = {**common, "id": answer, "parentId": question, "childrenIds": [], "role": "assistant"}
        nodes[question] = {**asked, "content": "\n".join(texts), "files": files_of(texts)}
        nodes[answer] = {**told, **fields_of(texts)}
        if parent is not None:
            nodes[parent]["childrenIds"] = [question]
        parent = answer
    title = answers[0][0][:200]
    chat = {"title": title, "tags": [title[:50]], "history": {"messages": nodes, "currentId": parent}}
    return str(site.ok("POST", "/api/v1/chats/new", {"chat": chat})["id"])


def files_of(texts: Sequence[str]) -> list[dict[str, Any]]:
    shorts = [text[:500] for text in texts]
    files = [{"type": "file", "name": text, "url": text, "id": text, "size": text} for text in shorts]
    return [*files, *({"type": "image", "name": text, "url": text} for text in (*shorts, SVG))]


def fields_of(texts: Sequence[str]) -> dict[str, Any]:
    """Return the members of an answer with the texts in each."""
    shorts = [text[:500] for text in texts]
    sources = [
        {
            "source": {"name": text, "url": text, "id": text},
            "document": [text],
            "metadata": [{"source": text}],
        }
        for text in shorts
    ]
    runs = [
        {"type": "code_execution", "id": text, "name": text, "code": text, "language": text}
        for text in shorts[:3]
    ]
    content = "\n\n".join(texts)
    folded = f'<details type="reasoning" done="true">\n<summary>{shorts[0]}</summary>\n{content}\n</details>'
    return {
        "content": f"{folded}\n\n{content}",
        "model": shorts[0],
        "modelName": shorts[0],
        "statusHistory": [{"description": text, "action": text, "queries": [text]} for text in shorts],
        "sources": [*sources, *runs],
        "files": files_of(texts),
        "embeds": ["\n".join(texts), *shorts[:3], SVG],
        "followUps": shorts,
        "error": {"content": content},
        "usage": {shorts[0]: shorts[0]},
    }


@pytest.fixture
def guarded(tabs: NewTab, noise: Noise) -> Iterator[Page]:
    """Return a tab that may not load anything from outside."""
    # What embeds of the corpus try is refused by the policy of their frame, which is told in the console.
    noise.expect('Blocked a frame with origin "null"|Unsafe attempt to load URL data:|javascript.? URL')
    noise.expect("Content Security Policy|sandbox|Blocked autofocus")
    page = tabs()
    asked: list[str] = []

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    page.context.route(lambda url: ".invalid" in url, refuse)
    yield page
    assert asked == []


@pytest.mark.parametrize("name", ["short", "large"])
def test_answers_run_nothing(guarded: Page, chats: Mapping[str, str], name: str) -> None:
    guarded.goto(f"/c/{chats[name]}")
    guarded.locator(".message").last.wait_for()
    for _ in range(4):
        assert_nothing_ran(guarded)
        guarded.mouse.move(700, 400)
        guarded.mouse.wheel(0, -20_000)
        guarded.wait_for_timeout(100)
    expect(guarded.locator(".prose").filter(has_text=MARKS[name]).first).to_be_attached()
    guarded.locator(".source-chip").first.dispatch_event("click")
    guarded.get_by_role("dialog").wait_for()
    assert_nothing_ran(guarded)
    guarded.keyboard.press("Escape")
    guarded.evaluate(UNFOLD)
    guarded.wait_for_timeout(100)
    assert_nothing_ran(guarded)
    assert chats[name] in guarded.url


def test_lists_run_nothing(guarded: Page, chats: Mapping[str, str]) -> None:
    """Each view shows the texts, as texts."""
    for view in VIEWS:
        guarded.goto(view)
        expect(guarded.get_by_role("main")).to_contain_text(NAMES[0] if view != "/overview" else "")
        expect(guarded.get_by_role("complementary")).to_contain_text(NAMES[0])
        assert_nothing_ran(guarded)
        assert guarded.url.endswith(view)


def test_claims_of_a_provider_run_nothing(
    guarded: Page, site: Site, chats: Mapping[str, str], person: str
) -> None:
    """The name of a person, and that of their provider, stay text to themselves; see the lists for others."""
    cookie = {"name": "token", "value": person, "url": site.url}
    guarded.context.add_cookies([cookie])  # type: ignore[list-item]
    guarded.goto("/settings/account")
    expect(guarded.get_by_role("complementary")).to_contain_text(NAMES[1])
    expect(guarded.get_by_role("main")).to_contain_text(NAMES[0])
    assert_nothing_ran(guarded)


def test_dialogs_of_plugins_run_nothing(guarded: Page, site: Site) -> None:
    """Titles, messages, fields and notices that a plugin sends while somebody looks stay text."""
    texts = [" ".join(SHORT[start::12])[:2000] for start in range(12)]
    field = dict(zip(INPUT, texts[2:], strict=False))
    asked = [
        {"call": {"type": "confirmation", "data": {"title": texts[0], "message": texts[1]}}},
        {"call": {"type": "input", "data": field}},
        {"call": {"type": "input", "data": {**field, "type": "password", "title": f"Secret {texts[2]}"}}},
    ]
    told = [
        {"emit": {"type": "notification", "data": {"type": kind, "content": text}}}
        for kind, text in zip(("info", "error", texts[5]), texts[9:], strict=True)
    ]
    turn = site.ask("script", steps({"wait": "looking"}, *told, *asked, {"say": "asked everything"}))
    guarded.goto(f"/c/{turn.chat_id}")
    guarded.get_by_role("button", name="Stop the answer").wait_for()
    site.go_on("looking")
    for _ in asked:
        dialog = guarded.get_by_role("dialog")
        expect(dialog).to_contain_text("top||window")
        assert_nothing_ran(guarded)
        # The next dialog may hold the same text after another beginning.
        title = re.compile(rf"^\s*{re.escape(dialog.inner_text().strip()[:40])}")
        dialog.get_by_role("button", name="Cancel").click()
        expect(guarded.get_by_role("dialog").filter(has_text=title)).to_have_count(0)
    expect(answers(guarded)).to_contain_text("asked everything")
    assert_nothing_ran(guarded)
