"""Endpoint rules for API keys: the entries of API_KEYS_ALLOWED_ENDPOINTS.

An entry is a path and covers that path and everything below it (`/api/models`). An entry that ends with a
slash covers that exact collection only (`/api/v1/files/`); an entry that ends with `*` covers every path with
that prefix. A method may precede the path (`GET /api/models`); GET includes HEAD. The trailing slash of a
request makes no difference. Commas separate entries.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_IMPOSSIBLE: Final = re.compile(r"//|/\.\.?(?:/|$)|[\s?#%\\]")


@dataclass(frozen=True, slots=True)
class EndpointRule:
    """One entry; a `method` of None stands for every method."""

    method: str | None
    path: str

    def allows(self, method: str, path: str) -> bool:
        """Tell whether the entry covers a request; `path` is the routed path without query."""
        if self.method is not None and self.method != method and (self.method, method) != ("GET", "HEAD"):
            return False
        if not self.path.startswith("/"):
            return False
        requested = _trim(path)
        if self.path.endswith("*"):
            return requested.startswith(self.path[:-1]) or f"{requested}/" == self.path[:-1]
        if self.path.endswith("/"):
            return requested == _trim(self.path)
        return requested == self.path or requested.startswith(f"{self.path}/")


def parse(text: str) -> tuple[EndpointRule, ...]:
    """Return the entries of a comma-separated list without surrounding blanks."""
    entries = []
    for part in text.split(","):
        entry = part.strip()
        method, space, path = entry.partition(" ")
        if entry:
            entries.append(EndpointRule(method.upper(), path.strip()) if space else EndpointRule(None, entry))
    return tuple(entries)


def allows(entries: Sequence[EndpointRule], method: str, path: str) -> bool:
    """Tell whether any entry covers the request; an empty list covers nothing."""
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
