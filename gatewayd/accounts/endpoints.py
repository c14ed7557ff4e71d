"""Which endpoints API keys may reach: the entries of API_KEYS_ALLOWED_ENDPOINTS.

An entry is a path, and reaches that path and everything below it (`/api/models`). One that ends with a slash
reaches that exact collection only (`/api/v1/files/`), one that ends with `*` every path that starts so. A
method may stand in front (`GET /api/models`), and GET includes HEAD. The trailing slash of a request makes no
difference. Entries are separated by commas.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_IMPOSSIBLE: Final = re.compile(r"//|/\.\.?(?:/|$)|[\s?#%\\]")


@dataclass(frozen=True, slots=True)
class EndpointRule:
    """One entry; `method` is None for any."""

    method: str | None
    path: str

    def allows(self, method: str, path: str) -> bool:
        """Tell whether a request is covered; `path` is the routed path without query."""
        if self.method is not None and self.method != method and (self.method, method) != ("GET", "HEAD"):
            return False
        if not self.path.startswith("/"):
            return False
        here = _trim(path)
        if self.path.endswith("*"):
            return here.startswith(self.path[:-1]) or f"{here}/" == self.path[:-1]
        if self.path.endswith("/"):
            return here == _trim(self.path)
        return here == self.path or here.startswith(f"{self.path}/")


def parse(text: str) -> tuple[EndpointRule, ...]:
    """Return the entries of a comma-separated list; blanks around and between are dropped."""
    entries = []
    for part in text.split(","):
        entry = part.strip()
        method, space, path = entry.partition(" ")
        if entry:
            entries.append(EndpointRule(method.upper(), path.strip()) if space else EndpointRule(None, entry))
    return tuple(entries)


def allows(entries: Sequence[EndpointRule], method: str, path: str) -> bool:
    """Tell whether an entry covers the request; no entry at all covers nothing."""
    return any(entry.allows(method.upper(), path) for entry in entries)


def warnings_for(entries: str | Sequence[EndpointRule]) -> list[str]:
    """Return a sentence for each entry that can never match a request."""
    parsed = parse(entries) if isinstance(entries, str) else entries
    return [f"endpoint {_show(entry)!r} matches nothing: {why}" for entry in parsed if (why := _fault(entry))]


def _fault(entry: EndpointRule) -> str:
    if entry.method is not None and entry.method not in METHODS:
        return f"{entry.method!r} is no method"
    if not entry.path.startswith("/"):
        return "a path starts with a slash" + (", every path is '/*'" if entry.path == "*" else "")
    if "*" in entry.path[:-1]:
        return "'*' works only at the end"
    if _IMPOSSIBLE.search(entry.path):
        return "no routed path has blanks, '?', '#', '%', a backslash, '//' or dot segments"
    return ""


def _show(entry: EndpointRule) -> str:
    return f"{entry.method} {entry.path}" if entry.method else entry.path


def _trim(path: str) -> str:
    return path.rstrip("/") or "/"
