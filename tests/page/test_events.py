"""The event stream of the page: one for all tabs, resumed after a loss, ended with the session."""

from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from tests.fakes.daemons.chat_site import Turn
from tests.page.conftest import NewContext
from tests.page.site import USER, Site, steps, wait_until

LISTEN = """async () => {
  const events = await import("#app/core/events");
  window.heard = [];
  window.opened = [];
  events.onEvent((event) => window.heard.push(event.data.description), {type: "status"});
  events.onEvent((event) => window.opened.push(event.data), {type: "stream:opened"});
}"""
READY = """async () => {
  const {streamSession} = await import("#app/core/events");
  return streamSession.value !== "";
}"""


def status(number: int) -> dict[str, Any]:
    return {"emit": {"type": "status", "data": {"description": str(number), "done": False}}}


def numbers(*ends: int) -> list[str]:
    return [str(number) for number in range(*ends)]


def open_tab(context: BrowserContext) -> Page:
    """Open a tab that notes the events it hears, and wait until it has a stream or another tab's."""
    page = context.new_page()
    page.goto("/settings")
    page.evaluate(LISTEN)
    wait_until(lambda: page.evaluate(READY), "the stream of the tab")
    page.evaluate("() => { window.opened = []; }")
    return page


def heard(page: Page) -> list[str]:
    found: list[str] = page.evaluate("() => window.heard")
    return found


def wait_heard(page: Page, wanted: Sequence[str]) -> None:
    wait_until(lambda: len(heard(page)) >= len(wanted), f"{len(wanted)} events in {page.url}")
    assert heard(page) == list(wanted)


@pytest.fixture
def streams(contexts: NewContext) -> tuple[BrowserContext, list[Request]]:
    """Return a browser of the user and the requests for streams that it makes."""
    context, asked = contexts(USER, is_new=True), list[Request]()
    context.on("request", lambda sent: asked.append(sent) if sent.url.endswith("/api/v1/events") else None)
    return context, asked


def tell(site: Site, *ends: int) -> Turn:
    return site.ask("script", steps(*(status(number) for number in range(*ends))), site.user)


def test_two_tabs_have_one_stream_and_the_other_goes_on_when_its_tab_is_closed(
    site: Site, streams: tuple[BrowserContext, list[Request]]
) -> None:
    context, asked = streams
    first, second = open_tab(context), open_tab(context)
    tell(site, 3)
    wait_heard(first, numbers(3))
    wait_heard(second, numbers(3))
    assert len(asked) == 1
    first.close()
    tell(site, 3, 40)
    wait_heard(second, numbers(40))
    assert len(asked) == 2
    assert "last-event-id" in asked[1].headers


def test_a_lost_connection_resumes_without_losing_or_doubling(
    site: Site, streams: tuple[BrowserContext, list[Request]]
) -> None:
    context, asked = streams
    page = open_tab(context)
    told = [status(number) for number in range(200)]
    site.ask("script", steps(*told[:100], {"wait": "resume"}, *told[100:]), site.user)
    wait_heard(page, numbers(100))
    # The end of a key ends all streams of its account.
    site.ok("POST", "/api/v1/auths/api_key", {}, site.user)
    site.ok("DELETE", "/api/v1/auths/api_key", None, site.user)
    site.go_on("resume")
    wait_heard(page, numbers(200))
    assert len(asked) == 2
    assert [one["gap"] for one in page.evaluate("() => window.opened")] == [False]


def test_the_gateway_restarts_in_mid_stream(
    site: Site, streams: tuple[BrowserContext, list[Request]]
) -> None:
    context, _ = streams
    page = open_tab(context)
    tell(site, 2)
    wait_heard(page, numbers(2))
    site.runner.stop()
    expect(page.get_by_text("Connection lost.")).to_be_visible()
    site.daemon = site.runner.start()
    wait_until(lambda: page.evaluate("() => window.opened.length"), "the new stream", 20)
    expect(page.get_by_text("Connection lost.")).to_be_hidden()
    # What was told in between is gone, and views that show it are told so.
    assert page.evaluate("() => window.opened[0].gap") is True
    tell(site, 2, 4)
    wait_heard(page, numbers(4))


def test_signing_out_ends_the_stream_in_all_tabs(
    site: Site, streams: tuple[BrowserContext, list[Request]]
) -> None:
    context, asked = streams
    first, second = open_tab(context), open_tab(context)
    first.evaluate("""async () => (await import("#app/core/session")).signOut()""")
    for page in (first, second):
        page.wait_for_url("**/auth*")
        assert page.evaluate(READY) is False
    # A tab that has not heard of it yet may ask once more.
    for late in asked[1:]:
        answer = late.response()
        # The next view may have ended the request before it was answered.
        assert late.failure if answer is None else answer.status == 401
    assert context.cookies() == []


def test_a_session_that_ends_elsewhere_leads_to_the_sign_in(site: Site, contexts: NewContext) -> None:
    person = site.add("ends@example.com")
    page = open_tab(contexts(person.email))
    site.ok("DELETE", f"/api/v1/users/{person.id}/sessions")
    page.wait_for_url("**/auth*")


def test_a_tab_whose_leader_is_silent_listens_itself(
    site: Site, streams: tuple[BrowserContext, list[Request]]
) -> None:
    context, asked = streams
    leader = open_tab(context)
    follower = context.new_page()
    follower.clock.install()
    follower.goto("/settings")
    follower.evaluate(LISTEN)
    wait_until(lambda: follower.evaluate(READY), "the stream of the leader")
    leader.evaluate("""() => {
      window.post = BroadcastChannel.prototype.postMessage;
      BroadcastChannel.prototype.postMessage = () => {};
    }""")
    tell(site, 2)
    wait_heard(leader, numbers(2))
    assert heard(follower) == []
    follower.clock.fast_forward(40_000)
    wait_heard(follower, numbers(2))
    assert len(asked) == 2
    leader.evaluate("() => { BroadcastChannel.prototype.postMessage = window.post; }")
    tell(site, 2, 5)
    wait_heard(follower, numbers(5))
    wait_heard(leader, numbers(5))


def test_code_of_ones_own_hears_its_own_type(
    site: Site, streams: tuple[BrowserContext, list[Request]]
) -> None:
    page = open_tab(streams[0])
    event = {"type": "acme:progress", "data": {"done": 3, "total": 5}}
    site.ask("script", steps({"emit": event}), site.user)
    expect(page.get_by_role("region", name="Notices").get_by_text("3 of 5")).to_be_visible()
