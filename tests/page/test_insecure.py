"""The page without HTTPS in a network: browsers give such pages no locks, no clipboard and no worker."""

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import INSECURE_HOST, Noise
from tests.page.conftest import NewContext
from tests.page.site import USER, Site, steps, wait_until

READY = """async () => (await import("#app/core/events")).streamSession.value !== "" """
HEAR = """async () => {
  window.heard = [];
  (await import("#app/core/events")).onEvent((event) => window.heard.push(event.type), {type: "status"});
}"""


@pytest.fixture
def tabs(contexts: NewContext, site: Site, noise: Noise) -> list[Page]:
    """Return two tabs of one browser."""
    # The browser says that it ignores a header whose promise it cannot keep.
    noise.expect("Cross-Origin-Opener-Policy header has been ignored")
    address = f"http://{INSECURE_HOST}:{site.url.rpartition(':')[2]}"
    context = contexts(None, permissions=[])
    site.sign_in(context, USER, address)
    opened = [context.new_page() for _ in range(2)]
    for page in opened:
        page.goto(f"{address}/settings")
        page.locator("#sidebar").wait_for()
        assert page.evaluate("() => isSecureContext") is False
    return opened


def test_each_tab_hears_events_once(tabs: list[Page], site: Site) -> None:
    for page in tabs:
        wait_until(lambda page=page: page.evaluate(READY), "a stream")  # type: ignore[misc]
        page.evaluate(HEAR)
    status = {"emit": {"type": "status", "data": {"description": "x", "done": False}}}
    site.ask("script", steps(status, status), site.user)
    for page in tabs:
        wait_until(lambda page=page: page.evaluate("() => window.heard.length") >= 2, "the events")  # type: ignore[misc]
        assert page.evaluate("() => window.heard") == ["status", "status"]


def test_stand_ins_do_what_they_stand_for(tabs: list[Page]) -> None:
    page = tabs[0]
    order = page.evaluate(
        """async () => {
          const told = [];
          const wait = () => new Promise((resolve) => setTimeout(resolve, 20));
          await Promise.all([
            navigator.locks.request("a", async () => { told.push("in"); await wait(); told.push("out"); }),
            navigator.locks.request("a", {ifAvailable: true}, async (lock) => { told.push(String(lock)); }),
            navigator.locks.request("a", async () => { told.push("next"); throw 1; }).catch(() => 0),
            navigator.locks.request("b", async () => { told.push("other"); }),
          ]);
          await navigator.locks.request("a", async () => { told.push("again"); });
          return told;
        }"""
    )
    assert sorted(order) == sorted(["in", "null", "other", "out", "next", "again"])
    assert order.index("out") < order.index("next") < order.index("again")
    made = page.evaluate("() => [crypto.randomUUID(), crypto.randomUUID()]")
    pattern = r"() => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.source"
    assert made[0] != made[1]
    assert all(page.evaluate(f"(id) => new RegExp(({pattern})()).test(id)", one) for one in made)


def test_copying_by_a_selection(tabs: list[Page]) -> None:
    page = tabs[0]
    page.evaluate(
        """() => {
          const button = document.createElement("button");
          button.textContent = "Copy it";
          button.onclick = async () => {
            await navigator.clipboard.writeText("copied text");
            button.textContent = "Done";
          };
          const field = document.createElement("textarea");
          field.ariaLabel = "Paste here";
          document.querySelector("main").append(button, field);
        }"""
    )
    page.get_by_role("button", name="Copy it").click()
    expect(page.get_by_role("button", name="Done")).to_be_focused()
    page.get_by_label("Paste here").press("Control+v")
    expect(page.get_by_label("Paste here")).to_have_value("copied text")
