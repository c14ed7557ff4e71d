"""Compiler of filters to conditions: it resolves names in the attribute table and checks types of values.

RFC 7644, 3.4.2.2; gatewayd-scim(7), Filters lists the operators.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gatewayd.errors import GatewayError, invalid, shorten
from gatewayd.scim.attributes import SCHEMAS, AttributeType, QualifiedAttribute, find_attribute
from gatewayd.scim.filters.conditions import (
    AllCondition,
    AnyCondition,
    CompareCondition,
    Condition,
    ElementCondition,
    NotCondition,
    Operator,
    PresentCondition,
    Value,
)
from gatewayd.scim.filters.syntax import (
    AttributeComparison,
    AttributeName,
    AttributePresence,
    Conjunction,
    Disjunction,
    FilterExpression,
    Literal,
    Negation,
    ValueSelection,
)
from gatewayd.scim.records import ResourceType

_EQUALITY: Final = frozenset({Operator.EQ, Operator.NE})
_ORDER: Final = frozenset({Operator.GT, Operator.GE, Operator.LT, Operator.LE})
_OPERATORS: Final = {
    AttributeType.STRING: frozenset(Operator),
    AttributeType.BOOLEAN: _EQUALITY,
    AttributeType.DATE_TIME: _EQUALITY | _ORDER,
}
"""Operators of each filterable attribute type."""

_BOOLEANS: Final = {"true": True, "false": False}
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_TRUTH: Final = PresentCondition("id")
"""Every resource has an id."""


def compile_filter(node: FilterExpression, resource: ResourceType) -> Condition:
    """Return the condition of a filter on resources of this type.

    Raises invalid_request, code `invalidFilter`, naming an attribute that is unknown or not searchable, an
    operator that its type lacks, or a value of another type. No part of a filter is ignored.

    Booleans may be strings in any case. A dateTime without an offset is in UTC. A number is not a text: 1,
    1.0 and 1e0 are the same number and different texts. No value equals null, so `eq null` is the negation of
    `pr`. A complex attribute stands for its `value`, if it has one. `schemas`, which is the same for all
    resources of a type, can be compared with `eq` and `ne`.
    """
    return _Compiler(resource).condition(node)


def mentions_attribute(condition: Condition, attribute: str) -> bool:
    """Tell whether a condition contains an attribute or one of its sub-attributes."""
    match condition:
        case CompareCondition() | PresentCondition():
            return condition.attribute.split(".")[0] == attribute or condition.attribute == attribute
        case ElementCondition():
            return condition.attribute == attribute or mentions_attribute(condition.condition, attribute)
        case NotCondition():
            return mentions_attribute(condition.condition, attribute)
        case AllCondition() | AnyCondition():
            return any(mentions_attribute(inner, attribute) for inner in condition.conditions)


def has_external_id_eq(condition: Condition) -> bool:
    """Tell whether a condition contains `externalId eq`, except under `not`."""
    match condition:
        case CompareCondition():
            return condition.attribute == "externalId" and condition.operator is Operator.EQ
        case AllCondition() | AnyCondition():
            return any(has_external_id_eq(inner) for inner in condition.conditions)
        case PresentCondition() | ElementCondition() | NotCondition():
            return False


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiler for one resource type; `within` is the attribute of an enclosing value selection."""

    resource: ResourceType
    within: str | None = None

    def condition(self, node: FilterExpression) -> Condition:
        match node:
            case AttributeComparison():
                return self._comparison(node)
            case AttributePresence():
                return (
                    _TRUTH if self._is_schemas(node.name) else _presence(self._resolve(node.name), node.name)
                )
            case ValueSelection():
                return self._selection(node)
            case Negation():
                return NotCondition(self.condition(node.inner))
            case Conjunction():
                return AllCondition(tuple(self.condition(inner) for inner in node.nodes))
            case Disjunction():
                return AnyCondition(tuple(self.condition(inner) for inner in node.nodes))

    def _comparison(self, node: AttributeComparison) -> Condition:
        if self._is_schemas(node.name):
            return self._schemas(node)
        target = self._resolve(node.name)
        if node.value is None:
            absent = NotCondition(_presence(target, node.name))
            return _either_way(node, absent)
        target = _searchable(target, node.name)
        kind = target.attribute.kind
        if node.operator not in _OPERATORS[kind]:
            raise _refused(f"{node.name} is a {kind}, which does not support the operator {node.operator}")
        return CompareCondition(target.name, node.operator, _value(node.value, kind, node.name))

    def _selection(self, node: ValueSelection) -> Condition:
        target = self._resolve(node.name)
        if not (target.attribute.is_multiple and target.attribute.parts):
            raise _refused(f"{node.name} has no values to select from")
        return ElementCondition(target.name, _Compiler(self.resource, target.name).condition(node.inner))

    def _resolve(self, name: AttributeName) -> QualifiedAttribute:
        """Return the attribute with this name; in brackets it is a sub-attribute, also with its full name."""
        target = None
        if self.within is None or name.part is not None:
            target = find_attribute(self.resource, str(name))
        elif name.urn is None:
            target = find_attribute(self.resource, f"{self.within}.{name.attribute}")
        if target is None or self.within not in (None, target.name.split(".")[0]):
            raise _refused(f"{self.within or self.resource} has no attribute {shorten(str(name))!r}")
        return target

    def _is_schemas(self, name: AttributeName) -> bool:
        return self.within is None and (name.attribute.lower(), name.part, name.urn) == (
            "schemas",
            None,
            None,
        )

    def _schemas(self, node: AttributeComparison) -> Condition:
        """Return a condition that is true for all resources of the type, or for none."""
        is_ours = isinstance(node.value, str) and node.value.lower() == SCHEMAS[self.resource].urn.lower()
        return _either_way(node, _TRUTH if is_ours else NotCondition(_TRUTH))


def _either_way(node: AttributeComparison, equal: Condition) -> Condition:
    """Return `equal` for the operator `eq`, its negation for `ne`; refuse other operators."""
    if node.operator not in _EQUALITY:
        with_null = " with null" if node.value is None else ""
        raise _refused(f"{node.name} can be compared{with_null} by eq and ne only, not by {node.operator}")
    if node.operator is Operator.EQ:
        return equal
    return equal.condition if isinstance(equal, NotCondition) else NotCondition(equal)


def _presence(target: QualifiedAttribute, name: AttributeName) -> Condition:
    """Return the condition that an attribute has a value, or a complex one any sub-attribute."""
    if target.attribute.kind is not AttributeType.COMPLEX or _has_value(target):
        return PresentCondition(_searchable(target, name).name)
    parts = (part for part in target.attribute.parts if part.kind in _OPERATORS)
    return AnyCondition(tuple(PresentCondition(f"{target.name}.{part.name}") for part in parts))


def _searchable(target: QualifiedAttribute, name: AttributeName) -> QualifiedAttribute:
    """Return the attribute itself, or its sub-attribute `value` if it has one; refuse others."""
    if _has_value(target):
        value = next(part for part in target.attribute.parts if part.name == "value")
        return QualifiedAttribute(f"{target.name}.value", value, target.attribute)
    if target.attribute.kind is AttributeType.COMPLEX:
        raise _refused(f"{name} is complex; name one of its sub-attributes")
    if target.attribute.kind not in _OPERATORS:
        raise _refused(f"{name} cannot be searched")
    return target


def _has_value(target: QualifiedAttribute) -> bool:
    return any(part.name == "value" for part in target.attribute.parts)


def _value(value: Literal, kind: AttributeType, name: AttributeName) -> Value:
    if kind is AttributeType.BOOLEAN:
        found = _BOOLEANS.get(value.lower()) if isinstance(value, str) else value
        if isinstance(found, bool):
            return found
        raise _refused(f"{name} takes true or false")
    if not isinstance(value, str):
        raise _refused(f"{name} takes a string in quotes")
    return _moment(value, name) if kind is AttributeType.DATE_TIME else value


def _moment(text: str, name: AttributeName) -> int:
    """Return microseconds since the epoch for a time of RFC 3339 or XML Schema, truncated."""
    upper = text.strip().upper()
    try:
        if not _MOMENT.fullmatch(upper):
            raise ValueError("it has another form")
        moment = datetime.fromisoformat(upper)
    except ValueError as error:
        raise _refused(
            f"{name} takes a time such as 2026-11-21T10:00:00Z, not {shorten(text, 40)!r}"
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _refused(reason: str) -> GatewayError:
    return invalid(f"cannot accept filter: {reason}", param="filter", code="invalidFilter")
