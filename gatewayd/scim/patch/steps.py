"""Resolution of PATCH operations to steps on single writable attributes (RFC 7644 section 3.5.2).

A path names an attribute, a sub-attribute, or values that a filter selects. An operation without a path has
an object whose names are paths; it changes several attributes.
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
"""Maximum total characters of the paths of one message, without plain names."""

_PASSED_OVER: Final = frozenset(name.lower() for name in PASSED_OVER) | {"schemas"}
# Ignored sub-attributes of stored attributes (RFC 7643 sections 2.4 and 4.1).
_PASSED_PARTS: Final = frozenset(
    {"emails.display", *(f"name.{part}" for part in ("middlename", "honorificprefix", "honorificsuffix"))}
)


@dataclass(frozen=True, slots=True)
class PatchStep:
    """One change of one attribute; a `value` of None is an absent or null value.

    `where` selects values of a multi-valued attribute; `target` is that attribute or its sub-attribute.
    """

    verb: PatchVerb
    target: QualifiedAttribute
    value: Any = None
    where: FilterExpression | None = None

    @property
    def attribute(self) -> str:
        """The name of the whole attribute."""
        return (self.target.parent or self.target.attribute).name

    @property
    def part(self) -> str | None:
        """The name of the sub-attribute, None for the whole attribute."""
        return None if self.target.parent is None else self.target.attribute.name


def parse_steps(operations: Iterable[PatchOperation], resource: ResourceType) -> Iterator[PatchStep]:
    """Yield the steps of operations in order; attributes that the gateway does not store are ignored.

    Raises invalid_request at a bad operation: code `invalidPath` for a malformed or unknown path,
    `mutability` for a read-only attribute, `invalidValue` for an operation with neither path nor object;
    too_large for very long paths. Inside an object read-only and unknown attributes are ignored.
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
    """Resolver of operations on one resource type."""

    def __init__(self, resource: ResourceType) -> None:
        self._resource = resource
        self._read = 0
        self._urn = SCHEMAS[resource].urn.lower()

    def step(self, verb: PatchVerb, path: str, value: Any) -> PatchStep | None:
        """Return the step of an operation with a path, None for an ignored attribute."""
        target = find_attribute(self._resource, path)
        where = None
        if target is None:
            parsed = self._parse(path)
            if self._is_passed_over(parsed):
                return None
            target, where = self._resolve(parsed, path), parsed.inner
        if not target.is_writable:
            raise _read_only(target.name)
        return PatchStep(verb, target, value, where)

    def _parse(self, path: str) -> PatchPath:
        self._read += len(path)
        if self._read > MAX_PATHS:
            message = f"cannot accept paths: together they are longer than {MAX_PATHS} characters"
            raise GatewayError(ErrorKind.TOO_LARGE, message, param="path", code="tooMany")
        return parse_path(path)

    def members(self, verb: PatchVerb, value: Any) -> Iterator[PatchStep]:
        """Yield the steps of an operation without a path."""
        if not isinstance(value, dict):
            raise invalid_value("value", "without a path it must be an object")
        check_attributes(value)
        seen: set[str] = set()
        for key, item in value.items():
            if key.lower() == self._urn and isinstance(item, dict):
                yield from self.members(verb, item)
                continue
            step = self._member(verb, key, item)
            if step is None:
                continue
            if step.where is None and step.target.name in seen:
                raise _twice(step.target.name)
            seen.add(step.target.name)
            yield step

    def _member(self, verb: PatchVerb, key: str, value: Any) -> PatchStep | None:
        target = find_attribute(self._resource, key)
        if target is None:
            return self._selecting_member(verb, key, value)
        if not target.is_writable or (target.name == "members" and value is None):
            # A null `members` in a whole group means no change.
            return None
        return PatchStep(verb, target, value)

    def _selecting_member(self, verb: PatchVerb, key: str, value: Any) -> PatchStep | None:
        """Return the step for a name such as `emails[type eq "work"].value`, None for an unknown one."""
        attribute, bracket, _ = key.partition("[")
        target = find_attribute(self._resource, attribute) if bracket else None
        return None if target is None or not target.is_writable else self.step(verb, key, value)

    def _resolve(self, path: PatchPath, text: str) -> QualifiedAttribute:
        part = path.name.part or path.part
        whole = find_attribute(self._resource, str(AttributeName(path.name.attribute, urn=path.name.urn)))
        if whole is None:
            raise _invalid_path(text, f"{self._resource} has no such attribute")
        if not whole.is_writable:
            raise _read_only(whole.name)
        if path.inner is not None and not whole.attribute.is_multiple:
            raise _invalid_path(text, f"{whole.name} has no values to select from")
        target = whole if part is None else find_attribute(self._resource, f"{whole.name}.{part}")
        if target is None:
            raise _invalid_path(text, f"{whole.name} has no such sub-attribute")
        return target

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
    return invalid(f"cannot accept {name}: it occurs twice", param=name, code="invalidSyntax")
