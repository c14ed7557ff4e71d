"""Put the date of the release, `gatewayd.__released__`, into every manual page.

Run from the top of the repository after that date has changed: python -m tests.write_release_date
"""

import re
from pathlib import Path
from typing import Final

from gatewayd import __released__

PAGES: Final = Path(__file__).parents[1] / "man"


def dated(page: str) -> str:
    """Return the source of a page with the date of the release in its first line."""
    return re.sub(r"\A\.Dd .*", f".Dd {__released__}", page)


def main() -> None:
    for path in sorted(PAGES.glob("*.[1-9]")):
        path.write_text(dated(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
