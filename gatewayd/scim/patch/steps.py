"""What the operations of a PATCH request are about: each becomes steps on attributes that a client can write.

RFC 7644 section 3.5.2. A path is an attribute, a part of one, or values that a filter selects; an operation
without a path has an object whose names are paths, which is how several attributes change at once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.scim.attributes import ENTERPRISE, PASSED_OVER, SCHEMAS, QualifiedAttribute, find_attribute
from gatewayd.scim.filters.grammar import parse_path
from gatewayd.scim.filters.syntax import AttributeName, FilterExpression, PatchPath
from gatewayd.scim.input_records import PatchOperation, PatchVerb
from gatewayd.scim.records import ResourceType
from gatewayd.scim.values import check_attributes, invalid_value

MAX_PATHS: Final = 32_768
"""How many characters the paths of one message may have together, but for plain names."""

_PASSED_OVER: Final = frozenset(name.lower() for name in PASSED_OVER) | {"schemas"}
# Parts of attributes that the gateway keeps otherwise (RFC 7643 sections 2.4 and 4.1).
_PASSED_PARTS: Final = frozenset(
    {"emails.display", *(f"name.{part}" for part in ("middlename", "honorificprefix", "honorificsuffix"))}
)


@dataclass(frozen=True, slots=True)
class PatchStep:
    """One change of one attribute; a `value` of None is none.

    `where` selects values of a multi-valued attribute; then `place` is the attribute or the part of these.
    """

    verb: PatchVerb
    place: QualifiedAttribute
    value: Any = None
    where: FilterExpression | None = None

    @property
    def attribute(self) -> str:
        """The name of the whole attribute."""
        return (self.place.parent or self.place.attribute).name

    @property
    def part(self) -> str | None:
        """The name of the part, None for the whole attribute."""
        return None if self.place.parent is None else self.place.attribute.name


def parse_steps(operations: Iterable[PatchOperation], resource: ResourceType) -> Iterator[PatchStep]:
    """Yield what operations do, in their order; what the gateway does not keep is passed over.

    Raises invalid_request when it comes to a bad one: code `invalidPath` for a path that is malformed or
    names nothing, `mutability` for a path to what only the gateway writes, `invalidValue` for an operation
    with neither path nor object; too_large for very long paths. Inside an object read-only and unknown
    attributes are passed over.
    """
    reader = _Reader(resource)
    for operation in operations:
        if operation.path is None:
            yield from reader.members(operation.verb, operation.value)
        else:
            step = reader.step(operation.verb, operation.path, operation.value)
            if step is not None:
                yield step


class _Reader:
    """Reads the operations on one type of resource."""

    def __init__(self, resource: ResourceType) -> None:
        self._resource = resource
        self._read = 0
        self._urn = SCHEMAS[resource].urn.lower()

    def step(self, verb: PatchVerb, path: str, value: Any) -> PatchStep | None:
        """Return the step of an operation with a path, None when it is about something passed over."""
        place = find_attribute(self._resource, path)
        where = None
        if place is None:
            parsed = self._parse(path)
            if self._is_passed_over(parsed):
                return None
            place, where = self._place(parsed, path), parsed.inner
        if not place.is_writable:
            raise _read_only(place.name)
        return PatchStep(verb, place, value, where)

    def _parse(self, path: str) -> PatchPath:
        self._read += len(path)
        if self._read > MAX_PATHS:
            message = f"cannot accept paths: together they are longer than {MAX_PATHS} characters"
            raise GatewayError(ErrorKind.TOO_LARGE, message, param="path", code="tooMany")
        return parse_path(path)

    def members(self, verb: PatchVerb, value: Any) -> Iterator[PatchStep]:
        """Yield the steps of an operation without a path."""
        if not isinstance(value, dict):
            raise invalid_value("value", "it is not an object, and there is no path")
        check_attributes(value)
        seen: set[str] = set()
        for key, item in value.items():
            if key.lower() == self._urn and isinstance(item, dict):
                yield from self.members(verb, item)
                continue
            step = self._member(verb, key, item)
            if step is None:
                continue
            if step.where is None and step.place.name in seen:
                raise _twice(step.place.name)
            seen.add(step.place.name)
            yield step

    def _member(self, verb: PatchVerb, key: str, value: Any) -> PatchStep | None:
        place = find_attribute(self._resource, key)
        if place is None:
            return self._selecting_member(verb, key, value)
        if not place.is_writable or (place.name == "members" and value is None):
            # A group that is sent whole may have a null where nothing is meant about its members.
            return None
        return PatchStep(verb, place, value)

    def _selecting_member(self, verb: PatchVerb, key: str, value: Any) -> PatchStep | None:
        """Return the step for a name such as `emails[type eq "work"].value`, None for an unknown one."""
        attribute, bracket, _ = key.partition("[")
        place = find_attribute(self._resource, attribute) if bracket else None
        return None if place is None or not place.is_writable else self.step(verb, key, value)

    def _place(self, path: PatchPath, text: str) -> QualifiedAttribute:
        part = path.name.part or path.part
        whole = find_attribute(self._resource, str(AttributeName(path.name.attribute, urn=path.name.urn)))
        if whole is None:
            raise _invalid_path(text, f"{self._resource} has no such attribute")
        if not whole.is_writable:
            raise _read_only(whole.name)
        if path.inner is not None and not whole.attribute.is_multiple:
            raise _invalid_path(text, f"{whole.name} has no values to select from")
        place = whole if part is None else find_attribute(self._resource, f"{whole.name}.{part}")
        if place is None:
            raise _invalid_path(text, f"{whole.name} has no such part")
        return place

    def _is_passed_over(self, path: PatchPath) -> bool:
        whole = str(path.name).lower()
        if f"{whole}:".startswith(f"{ENTERPRISE.lower()}:"):
            return True
        if path.name.urn is not None and path.name.urn.lower() != self._urn:
            return False
        attribute = path.name.attribute.lower()
        part = (path.name.part or path.part or "").lower()
        return attribute in _PASSED_OVER or f"{attribute}.{part}" in _PASSED_PARTS


def _read_only(name: str) -> GatewayError:
    return invalid(f"cannot change {name}: it is read-only", param=name, code="mutability")


def _invalid_path(path: str, reason: str) -> GatewayError:
    return invalid(f"cannot accept path {shorten(path)!r}: {reason}", param="path", code="invalidPath")


def _twice(name: str) -> GatewayError:
    return invalid(f"cannot accept {name}: it is there twice", param=name, code="invalidSyntax")
