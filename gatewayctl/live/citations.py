"""Tells what an answer cites: a line for each file, by its number, with its path and its pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayctl.safe import clean

MAX_PAGES: Final = 10
NOT_AVAILABLE: Final = "N/A"


@dataclass(slots=True)
class Cited:
    """A file that is cited; `pages` are as its metadata has them, in the order of the passages."""

    name: str
    path: str = ""
    pages: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        told = f"{self.name} ({self.path})" if self.path not in {"", self.name} else self.name
        if not self.pages:
            return told
        shown = [*self.pages][:MAX_PAGES]
        more = ", ..." if len(self.pages) > MAX_PAGES else ""
        return f"{told}, page{'s' if len(self.pages) > 1 else ''} {', '.join(shown)}{more}"


def citations(sources: Iterable[Any]) -> Sequence[str]:
    """Return what each citation is, on one line, in the order in which an answer numbers them from 1 on."""
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
            one = cited.setdefault(key, Cited(name, _text(facts, "path")))
            if page := _text(facts, "page_label"):
                one.pages[page] = None
    return [clean(str(one)) for one in cited.values()]


def is_execution(source: Any) -> bool:
    """Tell whether a source is one of code that ran, which nothing cites by a number."""
    return isinstance(source, Mapping) and source.get("type") == "code_execution"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    return value if isinstance(value, str) else ""
