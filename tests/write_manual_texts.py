"""Writes the manual pages as Markdown, which the collection of the quick start is made of.

python -m tests.write_manual_texts
"""

import subprocess
from pathlib import Path

from gatewayd.extract.formats.manual import page_text
from gatewayd.extract.mandoc import OPTIONS
from gatewayd.quickstart_manual import PAGES

MAN = Path(__file__).parents[1] / "man"


def texts() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    return {f"{page.name}.md": page_text(formatted(page.read_bytes()))[0] for page in MAN.glob("*.[1-9]")}


def formatted(page: bytes) -> str:
    """Return a page in roff as HTML."""
    command = ["mandoc", *OPTIONS]
    return subprocess.run(command, input=page, capture_output=True, check=False, timeout=60).stdout.decode()


def main() -> None:
    PAGES.mkdir(exist_ok=True)
    for name, text in texts().items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    main()
