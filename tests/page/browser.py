"""Chromium for the tests of the page, and what a test must not leave in its console."""

import contextlib
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, WebError, sync_playwright

from tests.clients.node import install

INSECURE_HOST = "gateway.test"
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--force-color-profile=srgb"),
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
