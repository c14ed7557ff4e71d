"""Chromium for the tests of the page, and what a test must not leave in its console."""

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, WebError, sync_playwright

from tests.clients.node import install

INSECURE_HOST = "gateway.test"
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--force-color-profile=srgb"),
    # No renderer for each frame, and none in reserve: each takes a third of a second to start.
    "--disable-site-isolation-trials",
    # A host name whose pages are not secure, as those of this machine's addresses are.
    f"--host-resolver-rules=MAP {INSECURE_HOST} 127.0.0.1",
)
PHONE = {
    "viewport": {"width": 393, "height": 727},
    "device_scale_factor": 2.75,
    "is_mobile": True,
    "has_touch": True,
}
TIMEOUT_MS = 10_000
# The browser writes a line for each answer of 4xx; what the page makes of it is what tests look at.
NETWORK = re.compile(r"^Failed to load resource: ")


class ChromiumMissingError(Exception):
    """There is no Chromium on this machine."""


@dataclass
class Noise:
    """What the pages of a context wrote to the console as errors, uncaught errors and violated policies."""

    lines: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        """Note everything from now on."""
        context.on("console", self._hear_console)
        context.on("weberror", self._hear_error)

    def expect(self, pattern: str) -> None:
        """Let lines be that match a pattern."""
        self.expected.append(pattern)

    def check(self) -> None:
        """Fail if there is anything else."""
        left = [line for line in self.lines if not any(re.search(one, line) for one in self.expected)]
        assert not left, "the browser complained:\n" + "\n".join(left)

    def _hear_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not NETWORK.match(message.text):
            self.lines.append(message.text)

    def _hear_error(self, error: WebError) -> None:
        self.lines.append(f"uncaught: {error.error}")


class ReusedContext:
    """A context and its tab for one test after another.

    The cache keeps the modules of the page, and no renderer starts anew; nothing else of a test stays.
    """

    def __init__(self, browser: Browser, base_url: str, options: Mapping[str, object]) -> None:
        self._noise = Noise()
        self._origin = base_url
        self.context = new_context(browser, self._noise, base_url=base_url, **options)
        self.tab = self.context.new_page()
        self._size = self.tab.viewport_size
        self._theme: Any = options.get("color_scheme", "light")
        self._session = self.context.new_cdp_session(self.tab)

    def begin(self, noise: Noise) -> None:
        """Let a test hear what the pages write."""
        self._noise.lines, self._noise.expected = noise.lines, noise.expected

    def end(self) -> bool:
        """Close other tabs and forget what the page stored; False when a test closed the tab."""
        if self.tab.is_closed():
            self.context.close()
            return False
        for page in self.context.pages:
            if page is not self.tab:
                page.close()
        self.tab.unroute_all()
        self.context.unroute_all()
        if self.tab.url.startswith(self._origin):
            self.tab.evaluate("() => sessionStorage.clear()")
        # Off the page: what is below the mouse, when the next one opens, would look pointed at.
        self.tab.mouse.move(-1, -1)
        self.tab.goto("about:blank")
        if self._size is not None and self.tab.viewport_size != self._size:
            self.tab.set_viewport_size(self._size)
        self.tab.emulate_media(color_scheme=self._theme)
        self.context.clear_cookies()
        self.context.clear_permissions()
        self._session.send("Storage.clearDataForOrigin", {"origin": self._origin, "storageTypes": "all"})
        return True


class ContextPool:
    """The reused contexts of a browser by the address of the page and their options."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._idle: dict[str, list[ReusedContext]] = {}

    @contextlib.contextmanager
    def taken(self, noise: Noise, base_url: str, **options: object) -> Iterator[ReusedContext]:
        """Lend a context until the end of the block."""
        idle = self._idle.setdefault(f"{base_url} {options}", [])
        reused = idle.pop() if idle else ReusedContext(self._browser, base_url, options)
        reused.begin(noise)
        yield reused
        if reused.end():
            idle.append(reused)


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Start Chromium; raises ChromiumMissingError."""
    program = shutil.which("chromium")
    if program is None:
        raise ChromiumMissingError("chromium is not on the PATH")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


def new_context(browser: Browser, noise: Noise, **options: object) -> BrowserContext:
    """Return a watched context without service workers, unless they are asked for."""
    given = {"service_workers": "block", "locale": "en-GB", "reduced_motion": "reduce", **options}
    context = browser.new_context(**given)  # type: ignore[arg-type]
    context.set_default_timeout(TIMEOUT_MS)
    noise.watch(context)
    return context


def axe_source() -> str:
    """Return the source of axe, which npm installs once."""
    folder = install(Path(__file__).parent / "node")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


SERIOUS = ("serious", "critical")


def find_violations(page: Page, source: str, only: Sequence[str] = ()) -> list[str]:
    """Return the serious violations that axe finds on a page, each with its place; `only` names rules."""
    page.evaluate(source)
    options = {"resultTypes": ["violations"], **({"runOnly": list(only)} if only else {})}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]
