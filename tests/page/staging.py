"""A tab in which app/render shows texts and embeds."""

from pathlib import Path
from typing import Final

from playwright.sync_api import Page

STAGE: Final = (Path(__file__).parent / "stage.js").read_text()


def staged(page: Page) -> Page:
    """Open the page and put the stage into it: `stage.show(text, options)` and others of stage.js."""
    page.goto("/settings")
    page.get_by_role("main").wait_for()
    page.evaluate(STAGE)
    return page
