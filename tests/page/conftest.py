"""One gateway and one browser for the tests of the page; each test has a context of its own."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.clients.node import NodeMissingError
from tests.conftest import missing
from tests.page.browser import (
    PHONE,
    ChromiumMissingError,
    Noise,
    axe_source,
    new_context,
    running_browser,
)
from tests.page.site import ADMIN, Site, opened_site

NewContext = Callable[..., BrowserContext]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("p")) as opened:
        yield opened


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Return Chromium. Not for the session: while its driver runs no other test may run an event loop."""
    started = running_browser()
    try:
        opened = started.__enter__()
    except ChromiumMissingError as error:
        missing("Chromium", str(error))
        raise
    yield opened
    started.__exit__(None, None, None)


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


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe for `find_violations`."""
    try:
        return axe_source()
    except NodeMissingError as error:
        missing("axe", str(error))
        raise
