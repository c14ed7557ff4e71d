"""The installed page: files are kept, a notice is shown without a connection, nothing of an account stays."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.page.browser import Noise
from tests.page.conftest import NewContext
from tests.page.site import Site

WAIT = """async () => {
  const registration = await navigator.serviceWorker.ready;
  if (!navigator.serviceWorker.controller) {
    await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve));
  }
  return registration.active.scriptURL;
}"""
KEPT = """async () => {
  const found = [];
  for (const name of await caches.keys()) {
    for (const request of await (await caches.open(name)).keys()) found.push(new URL(request.url).pathname);
  }
  return found;
}"""


def settle(page: Page) -> None:
    """Wait for the modules of the view and of the sidebar: a page that lacks one loads itself anew."""
    page.get_by_role("heading", level=1, name="Account").wait_for()
    page.locator("#sidebar").get_by_role("link", name="Documents").first.wait_for()


@pytest.fixture
def installed(contexts: NewContext, noise: Noise) -> tuple[BrowserContext, Page]:
    """Return a browser in which the page is installed."""
    context = contexts(service_workers="allow")
    page = context.new_page()
    page.goto("/settings")
    settle(page)
    assert page.evaluate(WAIT).endswith("/service-worker.js")
    return context, page


def test_without_a_connection_a_notice_is_shown(installed: tuple[BrowserContext, Page], noise: Noise) -> None:
    context, page = installed
    page.reload()
    settle(page)
    context.set_offline(True)
    page.goto("/documents")
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    assert page.evaluate("() => getComputedStyle(document.querySelector('main')).display") == "grid"
    context.set_offline(False)
    page.get_by_role("link", name="Try again").click()
    page.locator("#sidebar").wait_for()


def test_nothing_of_an_account_is_kept(
    installed: tuple[BrowserContext, Page], site: Site, noise: Noise
) -> None:
    context, page = installed
    site.ask("echo", "a secret question")
    page.goto("/")
    page.reload()
    page.locator("#sidebar").wait_for()
    kept = page.evaluate(KEPT)
    assert len(kept) > 10
    assert {path for path in kept if not path.startswith("/static/")} == {"/offline.html"}
    page.evaluate("""async () => (await import("#app/core/session")).signOut()""")
    page.wait_for_url("**/auth*")
    page.get_by_role("button", name="Sign in").first.wait_for()
    page.wait_for_load_state("networkidle")
    stored = page.evaluate(
        "() => JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])"
    )
    assert "secret question" not in stored
    context.set_offline(True)
    for path in ("/", "/settings", "/c/any"):
        page.goto(path)
        expect(page.get_by_role("heading", name="No connection")).to_be_visible()


def test_the_files_of_an_earlier_release_go(contexts: NewContext) -> None:
    page = contexts(service_workers="allow").new_page()
    page.goto("/offline.html")
    page.evaluate("""async () => {
      const cache = await caches.open("page-old");
      await cache.put("/static/0/app/main.js", new Response("old"));
    }""")
    page.goto("/settings")
    settle(page)
    page.evaluate(WAIT)
    (name,) = page.evaluate("() => caches.keys()")
    assert re.fullmatch("page-[0-9a-f]{12}", name)


def test_the_page_can_be_installed(installed: tuple[BrowserContext, Page]) -> None:
    context, page = installed
    session = context.new_cdp_session(page)
    assert session.send("Page.getAppManifest")["errors"] == []
    faults = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
    # A context of the driver is a private window.
    assert [fault for fault in faults if fault["errorId"] != "in-incognito"] == []
