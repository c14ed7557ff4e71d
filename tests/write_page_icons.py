"""Writes the icons of the page: `python -m tests.write_page_icons NODE_MODULES`.

The sprite holds the icons of names.txt out of the npm package lucide-static (ISC). Chromium draws the
pictures of the installed page from icons/icon.svg and icons/maskable.svg, which are ours.
"""

import re
import sys
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

ICONS: Final = Path(__file__).parents[1] / "gatewayd" / "web" / "page" / "icons"

NAMES: Final = ICONS / "names.txt"
SIZES: Final = (("icon", 192), ("icon", 512), ("maskable", 512))


def main(modules: Path) -> None:
    """Write the sprite and the pictures."""
    package = modules / "lucide-static"
    symbols = "".join(symbol(package / "icons" / f"{name}.svg", name) for name in NAMES.read_text().split())
    sprite = f'<svg xmlns="http://www.w3.org/2000/svg">\n{symbols}</svg>\n'
    (ICONS / "sprite.svg").write_text(sprite)
    (ICONS / "LICENSE").write_bytes((package / "LICENSE").read_bytes())
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, size in SIZES:
            page = browser.new_page(viewport={"width": size, "height": size})
            svg = (ICONS / f"{name}.svg").read_text()
            page.set_content(f"<style>*{{margin:0}}svg{{display:block;width:100vw}}</style>{svg}")
            page.screenshot(path=str(ICONS / f"{name}-{size}.png"), omit_background=True)
        browser.close()


def symbol(file: Path, name: str) -> str:
    """Return the symbol of one icon; its colour and stroke are those of the place where it is used."""
    found = re.search(r"<svg[^>]*>(.*)</svg>", file.read_text(), re.DOTALL)
    if found is None:
        raise ValueError(f"{file} has no svg")
    body = re.sub(r"\s+", " ", found[1]).replace(" />", "/>").replace("> <", "><").strip()
    return f'<symbol id="{name}" viewBox="0 0 24 24">{body}</symbol>\n'


if __name__ == "__main__":
    main(Path(sys.argv[1]))
