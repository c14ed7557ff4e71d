"""The page in Chromium: `python -m tests.bench.page` from the root of the repository.

Starts a gateway and opens the view of chats as a signed-in reader does: the first time after the start of the
gateway, with an empty cache, and again. "kB" are files and answers as they are encoded, "wire kB" also their
heads. Times are those of the browser from the navigation on. Needs chromium.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext

from tests.bench.report import table
from tests.page.browser import Noise, new_context, running_browser
from tests.page.site import Site, opened_site

Results = dict[str, dict[str, float]]

IMPROVED_SECONDS: Final = 6.0
"""Time in which the gateway encodes the files in the best way, after a first view."""

LIMITS: Final = {
    ("empty cache", "kB"): 150.0,
    ("empty cache", "first paint ms"): 300.0,
    ("again", "first paint ms"): 300.0,
}

PAINT: Final = """async () => {
  const find = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  while (find() === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
  return find();
}"""
SIZES: Final = """() => ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
  .filter((entry) => entry.transferSize > 0).map((entry) => entry.encodedBodySize)"""
SHOWN: Final = "main h1, main textarea, main [role=alert]"


@dataclass(frozen=True)
class Visit:
    """What one visit took."""

    kilobytes: float
    wire_kilobytes: float
    requests: int
    paint_ms: float
    shown_ms: float


def visit(context: BrowserContext) -> Visit:
    """Open the page in a new tab, and close the tab."""
    page = context.new_page()
    session = context.new_cdp_session(page)
    loaded: list[float] = []
    session.on("Network.loadingFinished", lambda event: loaded.append(event["encodedDataLength"]))
    session.send("Network.enable")
    page.goto("/")
    page.locator(SHOWN).first.wait_for()
    shown = page.evaluate("() => performance.now()")
    paint = page.evaluate(PAINT)
    page.wait_for_timeout(200)
    sizes: list[float] = page.evaluate(SIZES)
    page.close()
    # What the cache has is loaded too, without a byte.
    return Visit(sum(sizes) / 1000, sum(loaded) / 1000, sum(size > 0 for size in loaded), paint, shown)


def measure(site: Site, browser: Browser, repeats: int, pause: float = IMPROVED_SECONDS) -> Results:
    """Return the figures: of the first visit of all, of new readers, and of one who comes again."""

    def reader() -> BrowserContext:
        context = new_context(browser, Noise(), base_url=site.url)
        site.sign_in(context)
        return context

    first = [visit(reader())]
    time.sleep(pause)
    new = [visit(reader()) for _ in range(repeats)]
    known = reader()
    visit(known)
    again = [visit(known) for _ in range(repeats)]
    return {"first of all": described(first), "empty cache": described(new), "again": described(again)}


def described(visits: Sequence[Visit]) -> dict[str, float]:
    """Return the medians of some visits."""
    return {
        "kB": statistics.median(one.kilobytes for one in visits),
        "wire kB": statistics.median(one.wire_kilobytes for one in visits),
        "requests": statistics.median(one.requests for one in visits),
        "first paint ms": statistics.median(one.paint_ms for one in visits),
        "shown ms": statistics.median(one.shown_ms for one in visits),
    }


def results_table(results: Results) -> str:
    """Return a Markdown table of the figures, with what was to be reached."""
    rows = []
    for name, found in results.items():
        for label, value in found.items():
            limit = LIMITS.get((name, label))
            verdict = "" if limit is None else "reached" if value <= limit else "MISSED"
            rows.append([name, label, f"{value:.1f}", "" if limit is None else f"<= {limit:.0f}", verdict])
    return table(["visit", "figure", "found", "reach", ""], rows)


def main(given: Sequence[str] | None = None) -> int:
    """Measure, and return 1 when something was missed."""
    parser = argparse.ArgumentParser("python -m tests.bench.page", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10, help="visits of each kind (10)")
    options: Any = parser.parse_args(given)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_site(Path(folder)) as site,
        running_browser() as browser,
    ):
        found = results_table(measure(site, browser, options.repeats))
    sys.stdout.write(f"{found}\n")
    return 1 if "MISSED" in found else 0


if __name__ == "__main__":
    sys.exit(main())
