"""Schemas of an OpenAPI description with their references resolved; pure.

A description may refer to itself, and a small one may unfold into a huge one: both end here.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

MAX_NODES: Final = 2000
"""Objects and lists of one schema; with more, its references are followed less far."""

DEPTHS: Final = (8, 4, 2, 1, 0)
"""How many references inside each other are followed, at most."""

MAX_DEPTH: Final = 64
"""Levels of a schema."""

KEPT_FIELDS: Final = ("type", "title", "description")
"""What stays of a schema whose reference is not followed."""


class SchemaError(Exception):
    """A reference leads nowhere, or a schema is too large; the text goes on after "its description "."""


class _TooLargeError(Exception):
    """A schema has more than `MAX_NODES` objects and lists, or nests deeper than `MAX_DEPTH`."""


class ReferenceResolver:
    """Resolves references within one description; raises SchemaError for those that lead nowhere."""

    def __init__(self, document: Mapping[str, Any], most_nodes: int = MAX_NODES) -> None:
        self._document = document
        self._most_nodes = most_nodes

    def object(self, value: Any) -> Mapping[str, Any]:
        """Return an object, following references to it; {} for what is none."""
        for _ in range(MAX_DEPTH):
            if not isinstance(value, Mapping):
                return {}
            if not isinstance(value.get("$ref"), str):
                return value
            value = self.target(value["$ref"])
        raise SchemaError("has references that lead in a circle")

    def schema(self, value: Any) -> Any:
        """Return a schema without references.

        One inside itself, or too far inside others, keeps its type and texts alone.
        """
        for depth in DEPTHS:
            try:
                return _Unfolding(self, depth, self._most_nodes).unfold(value, (), 0)
            except _TooLargeError:
                continue
        raise SchemaError("has a schema that is too large")

    def target(self, reference: str) -> Any:
        """Return what a JSON pointer of this document leads to (RFC 6901)."""
        shown = reference[:200]
        if reference != "#" and not reference.startswith("#/"):
            raise SchemaError(f"refers to {shown!r}, and only what is in it can be read")
        found: Any = self._document
        for word in reference.split("/")[1:]:
            name = unquote(word).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list) and _is_index(name, found):
                found = found[int(name)]
            else:
                raise SchemaError(f"refers to {shown!r}, which is not there")
        return found


class _Unfolding:
    """One attempt to write a schema without references."""

    def __init__(self, resolver: ReferenceResolver, depth: int, nodes: int) -> None:
        self._resolver = resolver
        self._depth = depth
        self._left = nodes

    def unfold(self, value: Any, inside: tuple[str, ...], level: int) -> Any:
        """Return a value without references; `inside` are those that led to it."""
        if not isinstance(value, Mapping | list):
            return value
        self._left -= 1
        if self._left < 0 or level > MAX_DEPTH:
            raise _TooLargeError
        if isinstance(value, list):
            return [self.unfold(item, inside, level + 1) for item in value]
        reference = value.get("$ref")
        if isinstance(reference, str):
            return self._followed(value, reference, inside, level)
        return {name: self.unfold(item, inside, level + 1) for name, item in value.items()}

    def _followed(
        self, value: Mapping[str, Any], reference: str, inside: tuple[str, ...], level: int
    ) -> dict[str, Any]:
        target = self._resolver.target(reference)
        if reference in inside or len(inside) >= self._depth:
            named = target if isinstance(target, Mapping) else {}
            found = {name: named[name] for name in KEPT_FIELDS if isinstance(named.get(name), str)}
        else:
            unfolded = self.unfold(target, (*inside, reference), level + 1)
            found = unfolded if isinstance(unfolded, dict) else {}
        beside = {name: item for name, item in value.items() if name != "$ref"}
        return {**found, **self.unfold(beside, inside, level + 1)} if beside else found


def _is_index(name: str, items: list[Any]) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10 and int(name) < len(items)
