"""One gateway and one browser for the tests of the page; each test has a context of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.clients.node import NodeMissingError
from tests.conftest import missing
from tests.page.browser import (
    PHONE,
    TIMEOUT_MS,
    ChromiumMissingError,
    Noise,
    axe_source,
    new_context,
    running_browser,
)
from tests.page.site import ADMIN, Site, opened_site
from tests.page.staging import staged

# A machine that runs other tests beside these takes longer than the driver expects.
expect.set_options(timeout=TIMEOUT_MS)

NewContext = Callable[..., BrowserContext]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("p")) as opened:
        yield opened


class BrowserKeeper:
    """Chromium from the first test that wants it to the last test of this folder.

    While its driver runs no other test may run an event loop, so that it is not kept for the session.
    """

    def __init__(self) -> None:
        self._running = ExitStack()
        self._browser: Browser | None = None

    def get(self) -> Browser:
        """Return the running browser."""
        if self._browser is None:
            self._browser = self._running.enter_context(running_browser())
        return self._browser

    def close(self) -> None:
        """End it."""
        self._browser = None
        self._running.close()


KEEPER = BrowserKeeper()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[Any]:
    """End the browser before a test of another folder."""
    try:
        return (yield)
    finally:
        if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
            KEEPER.close()


@pytest.fixture
def browser() -> Browser:
    """Return Chromium."""
    try:
        return KEEPER.get()
    except ChromiumMissingError as error:
        missing("Chromium", str(error))
        raise


@pytest.fixture
def noise() -> Iterator[Noise]:
    """Fail a test whose pages complain; `noise.expect(pattern)` lets lines be."""
    heard = Noise()
    yield heard
    heard.check()


@pytest.fixture
def contexts(browser: Browser, site: Site, noise: Noise) -> Iterator[NewContext]:
    """Return a function that opens a context, signed in as somebody: `contexts("user@example.com")`."""
    opened = []

    def make(email: str | None = ADMIN, **options: object) -> BrowserContext:
        context = new_context(browser, noise, base_url=site.url, **options)
        opened.append(context)
        if email is not None:
            site.sign_in(context, email)
        return context

    yield make
    for context in opened:
        context.close()


@pytest.fixture
def page(contexts: NewContext) -> Page:
    """Return a tab of the administrator; `page.goto("/")` opens the page."""
    return contexts().new_page()


@pytest.fixture
def user_page(contexts: NewContext) -> Page:
    """Return a tab of the user."""
    return contexts("user@example.com").new_page()


@pytest.fixture
def phone_page(contexts: NewContext) -> Page:
    """Return a tab of the administrator on a phone."""
    return contexts(**PHONE).new_page()


@pytest.fixture
def stage(page: Page) -> Page:
    """Return a tab in which `stage` shows texts and embeds."""
    return staged(page)


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe for `find_violations`."""
    try:
        return axe_source()
    except NodeMissingError as error:
        missing("axe", str(error))
        raise
