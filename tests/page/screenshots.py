"""Pictures of all views: `python -m tests.page.screenshots DIRECTORY [PATTERN...]`.

Each view is shown on a desktop and on a phone, light and dark; with patterns only the routes that have one.
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser

from tests.page.browser import PHONE, Noise, new_context, running_browser
from tests.page.site import Site, opened_site
from tests.page.views import View, address_of, routes

DESKTOP: Final = {"viewport": {"width": 1440, "height": 900}}
SIZES: Final = {"desktop": DESKTOP, "phone": PHONE}
THEMES: Final = ("light", "dark")
SETTLE_MS: Final = 700


def main(target: Path, patterns: list[str]) -> None:
    """Write the pictures."""
    target.mkdir(parents=True, exist_ok=True)
    views = [view for view in routes() if not patterns or any(part in view.pattern for part in patterns)]
    with (
        tempfile.TemporaryDirectory() as folder,
        opened_site(Path(folder)) as site,
        running_browser() as browser,
    ):
        for size, options in SIZES.items():
            for theme in THEMES:
                for view in views:
                    take(
                        browser, site, view, target / f"{file_name(view)}-{size}-{theme}.png", theme, options
                    )


def take(
    browser: Browser, site: Site, view: View, file: Path, theme: str, options: dict[str, object]
) -> None:
    """Write one picture, and tell what the view complains about."""
    noise = Noise()
    context = new_context(browser, noise, base_url=site.url, color_scheme=theme, **options)
    if view.pattern != "/auth":
        site.sign_in(context)
    page = context.new_page()
    page.goto(address_of(view, site))
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=str(file))
    context.close()
    sys.stdout.write(f"{file.name}\n" + "".join(f"  {line}\n" for line in noise.lines))


def file_name(view: View) -> str:
    """Return the name of a view's pictures."""
    return view.pattern.strip("/").replace("/", "-").replace(":", "") or "root"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
