"""Projection of resources by `attributes` and `excludedAttributes` (RFC 7644 section 3.9)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.scim.attributes import COMMON, SCHEMAS, find_attribute
from gatewayd.scim.records import Resource, ResourceType

# Returned with every projection (RFC 7643 sections 3 and 7).
ALWAYS_RETURNED: Final = frozenset({"schemas", *(each.name for each in COMMON if each.is_always_returned)})

MAX_CHARACTERS: Final = 8192
"""Maximum total characters of attribute names in one request."""

AttributeParts = frozenset[str] | None
"""The named sub-attributes of an attribute, None for the whole attribute."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Returned attributes of a resource: only the requested ones, or all except the excluded ones."""

    only: Mapping[str, AttributeParts] | None = None
    without: Mapping[str, AttributeParts] | None = None

    @classmethod
    def read(
        cls, resource: ResourceType, attributes: Sequence[str] | None, excluded: Sequence[str] | None
    ) -> "Projection":
        """Parse names in any case, with or without a URN, also several joined by commas.

        Unknown names have no effect. Raises invalid_request, code `invalidValue`, if both lists are given,
        and too_large for very long lists.
        """
        only, without = _names(attributes), _names(excluded)
        if only and without:
            raise invalid(
                "cannot choose attributes: attributes and excludedAttributes exclude each other",
                param="excludedAttributes",
                code="invalidValue",
            )
        return cls(_chosen(resource, only) if only else None, _chosen(resource, without) if without else None)

    @property
    def is_asked(self) -> bool:
        """Whether the client requested a projection."""
        return self.only is not None or self.without is not None

    def wants(self, name: str) -> bool:
        """Tell whether an attribute, or a sub-attribute of it, is returned."""
        if name in ALWAYS_RETURNED:
            return True
        if self.only is not None:
            return name in self.only
        return self.without is None or self.without.get(name, frozenset()) is not None

    def apply(self, resource: Resource) -> Resource:
        """Return the projection of a rendered resource."""
        if not self.is_asked:
            return resource
        shown = {name: self._cut(name, value) for name, value in resource.items() if self.wants(name)}
        # An attribute that lost all its sub-attributes is left out.
        return {name: value for name, value in shown.items() if value or value == resource[name]}

    def _cut(self, name: str, value: Any) -> Any:
        chosen = self.without if self.only is None else self.only
        parts = (chosen or {}).get(name)
        if parts is None:
            return value
        if isinstance(value, list):
            elements = [self._part(element, parts) for element in value]
            return [element for element in elements if element]
        return self._part(value, parts)

    def _part(self, value: Mapping[str, Any], parts: frozenset[str]) -> dict[str, Any]:
        keep = self.only is not None
        return {name: each for name, each in value.items() if (name in parts) is keep}


def _names(values: Sequence[str] | None) -> list[str]:
    if sum(len(value) + 1 for value in values or ()) > MAX_CHARACTERS:
        raise GatewayError(
            ErrorKind.TOO_LARGE,
            f"cannot choose attributes: their names are longer than {MAX_CHARACTERS} characters",
            param="attributes",
            code="tooMany",
        )
    split = (name.strip() for value in values or () for name in value.split(","))
    return [name for name in split if name]


def _chosen(resource: ResourceType, names: Sequence[str]) -> dict[str, AttributeParts]:
    chosen: dict[str, AttributeParts] = {}
    for attribute, part in _found(resource, names):
        known = chosen.get(attribute, frozenset())
        chosen[attribute] = None if known is None or part is None else known | {part}
    return {name: parts for name, parts in chosen.items() if name not in ALWAYS_RETURNED}


def _found(resource: ResourceType, names: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    schema = SCHEMAS[resource]
    for name in names:
        target = find_attribute(resource, name)
        if name.lower() == schema.urn.lower():
            yield from ((attribute.name, None) for attribute in schema.attributes)
        elif target is not None and target.parent is not None:
            yield target.parent.name, target.attribute.name
        elif target is not None:
            yield target.name, None
