"""The views of the page, each with an address at which there is something to see."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.page.site import Site, wait_until

APP: Final = Path(__file__).parents[2] / "gatewayd" / "web" / "page" / "app"
ROW: Final = re.compile(r'\["([^"]+)", (?:chat|\(\) => import\("#(app/[^"]+)"\))\]')
CHAT: Final = "app/chat/view"
"""The module that two rows share."""
SETTINGS: Final = ("/settings/account", "/settings/interface")

ANSWER: Final = """# A heading

Some **bold** text with `code` and a [link](https://example.org/).

- one
- two

| a | b |
|---|---|
| 1 | 2 |

```python
print("hello")
```
"""


TITLES: Final = (
    "Why is the sky blue?",
    "Überweisung für die Miete",
    "ملخص اجتماع يوم الاثنين",
    "A very long title that does not fit into the list and must be cut off somewhere before its end",
)


@dataclass(frozen=True)
class View:
    """A route: its pattern and the module of its view."""

    pattern: str
    module: str


def routes() -> list[View]:
    """Return the routes of the page, the parts of the settings among them, and an address without a view."""
    rows = ROW.findall((APP / "routes.js").read_text())
    found = [View(pattern, module or CHAT) for pattern, module in rows]
    settings = next(view for view in found if view.pattern.startswith("/settings"))
    named = [View(path, settings.module) for path in SETTINGS]
    return [*(view for view in found if view is not settings), *named, View("/admin/absent", "app/outlet")]


def populate(site: Site) -> Mapping[str, str]:
    """Fill the gateway, and return the addresses of the routes with parameters by their pattern."""
    turn = site.ask("echo", ANSWER, title="A table of two columns")
    messages = f"/api/v1/chats/{turn.chat_id}"
    wait_until(
        lambda: site.ok("GET", messages)["chat"]["history"]["messages"][turn.answer].get("done"),
        "the answer",
    )
    for title in TITLES:
        site.ask("echo", f"Tell me about: {title}", title=title)
    shared = site.ok("POST", f"{messages}/share")
    collection = site.ok(
        "POST", "/api/v1/knowledge/create", {"name": "Handbooks", "description": "What we know"}
    )
    group = site.ok("POST", "/api/v1/groups/create", {"name": "Engineering", "description": "Builders"})
    return {
        "/c/:id": f"/c/{turn.chat_id}",
        "/s/:id": f"/s/{shared['share_id']}",
        "/documents/:id": f"/documents/{collection['id']}",
        "/admin/groups/:id": f"/admin/groups/{group['id']}",
    }


def address_of(view: View, site: Site) -> str:
    """Return an address of a view; the first time it fills the gateway."""
    if not site.addresses:
        site.addresses.update(populate(site))
    return site.addresses.get(view.pattern, view.pattern)
