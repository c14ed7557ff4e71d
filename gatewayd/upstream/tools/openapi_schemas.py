"""Schemas of an OpenAPI description with resolved references; without I/O.

References may be circular, and a small description may expand into a huge one; both are limited here.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

MAX_NODES: Final = 2000
"""Maximum number of objects and lists of one schema; with more, fewer levels of references are followed."""

DEPTHS: Final = (8, 4, 2, 1, 0)
"""Maximum depths of nested references, tried in this order."""

MAX_DEPTH: Final = 64
"""Maximum number of levels of a schema."""

KEPT_FIELDS: Final = ("type", "title", "description")
"""Fields that stay of a schema behind a reference that is not followed."""


class SchemaError(Exception):
    """A reference is dangling or a schema is too large; the text completes "its description ..."."""


class _TooLargeError(Exception):
    """A schema has more than `MAX_NODES` objects and lists, or nests deeper than `MAX_DEPTH`."""


class ReferenceResolver:
    """Resolves references within one description; raises SchemaError for dangling ones."""

    def __init__(self, document: Mapping[str, Any], most_nodes: int = MAX_NODES) -> None:
        self._document = document
        self._most_nodes = most_nodes

    def object(self, value: Any) -> Mapping[str, Any]:
        """Return an object, following references to it; {} for another value."""
        for _ in range(MAX_DEPTH):
            if not isinstance(value, Mapping):
                return {}
            if not isinstance(value.get("$ref"), str):
                return value
            value = self.target(value["$ref"])
        raise SchemaError("has circular references")

    def schema(self, value: Any) -> Any:
        """Return a schema without references.

        A circular or too deeply nested reference keeps only the type and texts of its schema.
        """
        for depth in DEPTHS:
            try:
                return _Expansion(self, depth, self._most_nodes).expand(value, (), 0)
            except _TooLargeError:
                continue
        raise SchemaError("has a schema that is too large")

    def target(self, reference: str) -> Any:
        """Return the target of a JSON pointer in this document (RFC 6901)."""
        excerpt = reference[:200]
        if reference != "#" and not reference.startswith("#/"):
            raise SchemaError(
                f"refers to {excerpt!r}, but only references within the description are supported"
            )
        found: Any = self._document
        for word in reference.split("/")[1:]:
            name = unquote(word).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list) and _is_index(name, found):
                found = found[int(name)]
            else:
                raise SchemaError(f"refers to {excerpt!r}, which does not exist")
        return found


class _Expansion:
    """One attempt to expand the references of a schema."""

    def __init__(self, resolver: ReferenceResolver, depth: int, nodes: int) -> None:
        self._resolver = resolver
        self._depth = depth
        self._left = nodes

    def expand(self, value: Any, inside: tuple[str, ...], level: int) -> Any:
        """Return a value without references; `inside` are the references that led to it."""
        if not isinstance(value, Mapping | list):
            return value
        self._left -= 1
        if self._left < 0 or level > MAX_DEPTH:
            raise _TooLargeError
        if isinstance(value, list):
            return [self.expand(item, inside, level + 1) for item in value]
        reference = value.get("$ref")
        if isinstance(reference, str):
            return self._followed(value, reference, inside, level)
        return {name: self.expand(item, inside, level + 1) for name, item in value.items()}

    def _followed(
        self, value: Mapping[str, Any], reference: str, inside: tuple[str, ...], level: int
    ) -> dict[str, Any]:
        target = self._resolver.target(reference)
        if reference in inside or len(inside) >= self._depth:
            named = target if isinstance(target, Mapping) else {}
            found = {name: named[name] for name in KEPT_FIELDS if isinstance(named.get(name), str)}
        else:
            expanded = self.expand(target, (*inside, reference), level + 1)
            found = expanded if isinstance(expanded, dict) else {}
        beside = {name: item for name, item in value.items() if name != "$ref"}
        return {**found, **self.expand(beside, inside, level + 1)} if beside else found


def _is_index(name: str, items: list[Any]) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10 and int(name) < len(items)
