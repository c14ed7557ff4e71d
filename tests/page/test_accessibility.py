"""Every view: axe finds nothing serious in both themes, keys reach everything, a narrow window is enough."""

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import find_violations
from tests.page.conftest import NewTab
from tests.page.site import Site
from tests.page.views import View, address_of, routes

NARROW = {"width": 320, "height": 640}
MAX_TABS = 60

FOCUSED = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  window.walked ??= new Map();
  if (!window.walked.has(element)) window.walked.set(element, window.walked.size);
  const box = element.getBoundingClientRect();
  const labels = [...(element.labels ?? [])].map((label) => label.textContent).join(" ");
  const by = (element.getAttribute("aria-labelledby") ?? "").split(" ").filter(Boolean);
  const named = by.map((id) => document.getElementById(id)?.textContent).join(" ");
  const name = [element.getAttribute("aria-label"), named, labels, element.title, element.textContent]
    .find((text) => text?.trim());
  const style = getComputedStyle(element);
  return {
    number: window.walked.get(element),
    name: name?.trim() ?? "",
    html: element.outerHTML.slice(0, 200),
    isVisible: box.width > 0 && box.height > 0 && style.visibility === "visible",
    isMarked: style.outlineStyle !== "none" || style.boxShadow !== "none",
  };
}"""


@pytest.fixture(params=routes(), ids=lambda view: view.pattern)
def opened(request: pytest.FixtureRequest, tabs: NewTab, site: Site) -> Page:
    """Return a tab with each view in turn, when it has shown what it shows first."""
    view: View = request.param
    page = tabs(None if view.pattern == "/auth" else "admin@example.com")
    page.goto(address_of(view, site))
    settle(page)
    return page


def settle(page: Page) -> None:
    """Wait until a view is there and nothing of it is still loading."""
    page.locator("main h1").first.wait_for(state="attached")
    expect(page.locator("main .skeleton")).to_have_count(0)


def test_view(opened: Page, axe: str) -> None:
    expect(opened.locator("h1")).to_have_count(1)
    expect(opened.get_by_role("main")).to_have_count(1)
    expect(opened.get_by_text("This part of the page cannot be shown.")).to_have_count(0)
    assert find_violations(opened, axe) == []
    opened.emulate_media(color_scheme="dark")
    # Colours that change by a transition have changed two frames later.
    opened.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert find_violations(opened, axe, only=["color-contrast"]) == []
    walk(opened)
    opened.set_viewport_size(NARROW)  # type: ignore[arg-type]
    wide = opened.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= NARROW["width"], "the view is wider than the window"


def walk(page: Page) -> None:
    """Press Tab until the end, and check that each stop is named, visible and marked."""
    page.evaluate("() => { document.activeElement?.blur(); window.walked = new Map(); }")
    before = None
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop is None or (before is not None and stop["number"] < before):
            return
        assert stop["number"] != before, f"Tab does not leave {stop['html']}"
        assert stop["name"], f"no name: {stop['html']}"
        assert stop["isVisible"], f"focused but not visible: {stop['html']}"
        assert stop["isMarked"], f"focused but not marked: {stop['html']}"
        before = stop["number"]


def test_every_route_has_an_address(site: Site) -> None:
    for view in routes():
        path = address_of(view, site)
        assert ":" not in path, view.pattern
        status, text = site.daemon.call("GET", path, None, {"Accept": "text/html"})
        assert status == 200, path
        assert "<!doctype html>" in text
