"""Growing answers in Chromium: `python -m tests.bench.render` from the root of the repository.

Shows answers of 200 KB of each kind as they arrive in 4,000 pieces, then at once, then a tenth of them at
once. "script" is the time in JavaScript, "busy" also that of style and layout; a flush is one showing of what
came since the last. Needs chromium.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page

from tests.bench.report import table
from tests.page.browser import Noise, new_context, running_browser
from tests.page.site import Site, opened_site
from tests.page.staging import staged
from tests.page.texts import KITCHEN

Results = dict[str, dict[str, float]]

CHARACTERS: Final = 200_000
PIECES: Final = 4_000

PARTS: Final[Mapping[str, str]] = {
    "mixed": KITCHEN + "\n\n",
    "prose": "The heron *stands* in shallow water and **waits** for fish, as `it` does.[1] " * 6 + "\n\n",
    "code": "const found = values.filter((value) => value > limit); // what is left\n",
    "list": "- An item with **bold** words and `code`\n  - and one below it\n",
    "table": "| a cell | *another* | `code` | 1234 |\n",
}
BEFORE: Final[Mapping[str, str]] = {"code": "```js\n", "table": "| a | b | c | d |\n|---|---|---|---|\n"}
LIMITS: Final = {
    "script ms": 6_000.0,
    "longest flush ms": 200.0,
    "growth": 20.0,
}
"""Figures that are to be at most this for each kind; `growth` is the cost of the whole by that of a tenth."""

GROW: Final = """async ([text, pieces, pause]) => {
  const flushes = [];
  const renderer = stage.fresh({sources: 3});
  const flush = renderer.flush.bind(renderer);
  renderer.flush = () => {
    const begin = performance.now();
    flush();
    flushes.push(performance.now() - begin);
  };
  for (let piece = 1; piece <= pieces; piece += 1) {
    renderer.update(text.slice(0, Math.ceil(text.length * piece / pieces)), {streaming: piece < pieces});
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  await stage.settled();
  return {
    "flushes": flushes.length,
    "flush ms": flushes.reduce((sum, one) => sum + one, 0),
    "longest flush ms": Math.max(...flushes),
  };
}"""


def text_of(kind: str, characters: int) -> str:
    """Return an answer of a kind."""
    part = PARTS[kind]
    return BEFORE.get(kind, "") + part * (characters // len(part) + 1)


def measure(site: Site, browser: Browser, characters: int, pieces: int, pause_ms: float = 2) -> Results:
    """Return the figures of each kind."""
    found: Results = {}
    for kind in PARTS:
        context = new_context(browser, Noise(), base_url=site.url)
        site.sign_in(context)
        page = staged(context.new_page())
        text = text_of(kind, characters)
        found[kind] = grown(page, text, pieces, pause_ms)
        small, whole = (
            page.evaluate("(text) => stage.cost(text, text.length)", one)
            for one in (text[: len(text) // 10], text)
        )
        found[kind].update({"at once ms": whole, "growth": whole / max(small, 1)})
        context.close()
    return found


def grown(page: Page, text: str, pieces: int, pause_ms: float) -> dict[str, float]:
    """Show a growing text, and return the figures."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> Mapping[str, float]:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return {one["name"]: 1000 * one["value"] for one in metrics}

    before = spent()
    found: dict[str, float] = page.evaluate(GROW, [text, pieces, pause_ms])
    after = spent()
    session.detach()
    found["script ms"] = after["ScriptDuration"] - before["ScriptDuration"]
    found["busy ms"] = after["TaskDuration"] - before["TaskDuration"]
    return found


def results_table(results: Results) -> str:
    """Return a Markdown table of the figures, with what was to be reached."""
    rows = []
    for kind, found in results.items():
        for label, value in found.items():
            limit = LIMITS.get(label)
            verdict = "" if limit is None else "reached" if value <= limit else "MISSED"
            rows.append([kind, label, f"{value:.1f}", "" if limit is None else f"<= {limit:.0f}", verdict])
    return table(["text", "figure", "found", "reach", ""], rows)


def main(given: Sequence[str] | None = None) -> int:
    """Measure, and return 1 when something was missed."""
    parser = argparse.ArgumentParser("python -m tests.bench.render", description=__doc__)
    parser.add_argument("--characters", type=int, default=CHARACTERS, help=f"of a text ({CHARACTERS})")
    parser.add_argument("--pieces", type=int, default=PIECES, help=f"in which it arrives ({PIECES})")
    options: Any = parser.parse_args(given)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_site(Path(folder)) as site,
        running_browser() as browser,
    ):
        found = results_table(measure(site, browser, options.characters, options.pieces))
    sys.stdout.write(f"{found}\n")
    return 1 if "MISSED" in found else 0


if __name__ == "__main__":
    sys.exit(main())
