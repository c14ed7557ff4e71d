"""One gateway and one browser for the tests of the page; each test has a context of its own."""

from collections.abc import Callable, Iterator, Mapping
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
    ContextPool,
    Noise,
    ReusedContext,
    axe_source,
    new_context,
    running_browser,
)
from tests.page.site import ADMIN, Site, opened_site
from tests.page.staging import staged

# A machine that runs other tests beside these takes longer than the driver expects.
expect.set_options(timeout=TIMEOUT_MS)

NewContext = Callable[..., BrowserContext]
NewTab = Callable[..., Page]

# Options of contexts that are not used again.
OWN = {"permissions", "service_workers"}


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
        self._pool: ContextPool | None = None

    def get(self) -> Browser:
        """Return the running browser."""
        if self._browser is None:
            self._browser = self._running.enter_context(running_browser())
        return self._browser

    def pool(self) -> ContextPool:
        """Return the contexts of the running browser."""
        self._pool = self._pool or ContextPool(self.get())
        return self._pool

    def close(self) -> None:
        """End it."""
        self._browser = self._pool = None
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


class OpenedContexts:
    """The contexts of a test, each signed in as somebody at the site."""

    def __init__(self, site: Site, noise: Noise, opened: ExitStack) -> None:
        self._site = site
        self._noise = noise
        self._opened = opened

    def open(self, email: str | None = ADMIN, *, is_new: bool = False, **options: object) -> BrowserContext:
        """Return a context; `is_new` or an option of OWN gets one that no test had before."""
        if is_new or OWN & options.keys():
            context = new_context(KEEPER.get(), self._noise, base_url=self._site.url, **options)
            self._opened.callback(context.close)
        else:
            context = self._take(options).context
        self._sign_in(context, email)
        return context

    def open_tab(self, email: str | None = ADMIN, **options: object) -> Page:
        """Return a tab of a context that other tests had before, at no page yet."""
        reused = self._take(options)
        self._sign_in(reused.context, email)
        return reused.tab

    def _take(self, options: Mapping[str, object]) -> ReusedContext:
        return self._opened.enter_context(KEEPER.pool().taken(self._noise, self._site.url, **options))

    def _sign_in(self, context: BrowserContext, email: str | None) -> None:
        if email is not None:
            self._site.sign_in(context, email)


@pytest.fixture
def opened_contexts(browser: Browser, site: Site, noise: Noise) -> Iterator[OpenedContexts]:
    with ExitStack() as opened:
        yield OpenedContexts(site, noise, opened)


@pytest.fixture
def contexts(opened_contexts: OpenedContexts) -> NewContext:
    """Return a function that opens a context, signed in as somebody: `contexts("user@example.com")`."""
    return opened_contexts.open


@pytest.fixture
def tabs(opened_contexts: OpenedContexts) -> NewTab:
    """Return a function that opens the tab of a context of its own: `tabs("user@example.com")`."""
    return opened_contexts.open_tab


@pytest.fixture
def page(tabs: NewTab) -> Page:
    """Return a tab of the administrator; `page.goto("/")` opens the page."""
    return tabs()


@pytest.fixture
def user_page(tabs: NewTab) -> Page:
    """Return a tab of the user."""
    return tabs("user@example.com")


@pytest.fixture
def phone_page(tabs: NewTab) -> Page:
    """Return a tab of the administrator on a phone."""
    return tabs(**PHONE)


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
