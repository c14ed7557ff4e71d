"""Citations of an answer: a line for each file with number, paths and pages."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayctl.sanitize import clean

MAX_PAGES: Final = 10
MAX_PATHS: Final = 10
NOT_AVAILABLE: Final = "N/A"


@dataclass(slots=True)
class Cited:
    """A cited file; `place` identifies it. `paths` and `pages` come from its metadata, in the order of the
    passages."""

    place: str
    name: str
    paths: dict[str, None] = field(default_factory=dict)
    pages: dict[str, None] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name with the paths; a file in several collections has several paths."""
        if not self.paths or [*self.paths] == [self.name]:
            return self.name
        return f"{self.name} ({_listed(self.paths, MAX_PATHS)})"

    def line(self, is_shared: bool) -> str:
        """Return the title and the pages; with `is_shared` the place distinguishes equal titles."""
        summary = f"{self.title} ({self.place})" if is_shared and self.place != self.name else self.title
        if not self.pages:
            return summary
        return f"{summary}, page{'s' if len(self.pages) > 1 else ''} {_listed(self.pages, MAX_PAGES)}"


def citations(sources: Iterable[Any]) -> Sequence[str]:
    """Return a line for each citation, in the order in which an answer numbers them from 1."""
    cited: dict[str, Cited] = {}
    for source in sources:
        if is_execution(source):
            continue
        own = _mapping(_mapping(source).get("source"))
        metadatas = _mapping(source).get("metadata")
        for metadata in metadatas if isinstance(metadatas, list) and metadatas else [{}]:
            facts = _mapping(metadata)
            key = str(facts.get("source") or own.get("id") or own.get("name") or NOT_AVAILABLE)
            name = str(facts.get("name") or own.get("name") or key)
            one = cited.setdefault(key, Cited(key, name))
            if path := _text(facts, "path"):
                one.paths[path] = None
            if page := _text(facts, "page_label"):
                one.pages[page] = None
    titles = Counter(one.title for one in cited.values())
    return [clean(one.line(titles[one.title] > 1)) for one in cited.values()]


def is_execution(source: Any) -> bool:
    """Return whether a source is the output of executed code, which answers do not cite by number."""
    return isinstance(source, Mapping) and source.get("type") == "code_execution"


def _listed(values: Collection[str], most: int) -> str:
    more = ["..."] if len(values) > most else []
    return ", ".join([*[*values][:most], *more])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    return value if isinstance(value, str) else ""
