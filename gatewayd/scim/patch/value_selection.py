"""Selection of values of a multi-valued attribute by the filter of a PATCH path (RFC 7644 section 3.5.2).

The filter has the same meaning as in a search: it is compiled to the same conditions.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gatewayd.scim.attributes import attributes_by_path
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
from gatewayd.scim.filters.resolver import compile_filter
from gatewayd.scim.filters.syntax import AttributeName, FilterExpression, ValueSelection
from gatewayd.scim.records import ResourceType
from gatewayd.scim.values import text_key
from gatewayd.text import casefold_nfc

Selector = Callable[[Mapping[str, Any]], bool]
"""Tells whether a value of the attribute, an object with its sub-attributes, is selected."""


def compile_selector(node: FilterExpression, resource: ResourceType, attribute: str) -> Selector:
    """Return a selector of values of an attribute, such as `emails`.

    Names in the filter are its sub-attributes. Raises invalid_request, code `invalidFilter`, for invalid
    names, operators and values.
    """
    condition = compile_filter(ValueSelection(AttributeName(attribute), node), resource)
    match condition:
        case ElementCondition():
            return _Selected(condition.condition, resource).holds
        case _:
            raise TypeError(f"a selection from {attribute} is not compiled to an element")


class _FoldedTexts(dict[str, str]):
    """Cache of case-folded texts of a filter, which may have thousands of characters each."""

    def __missing__(self, text: str) -> str:
        self[text] = found = casefold_nfc(text)
        return found


class _Selected:
    """Evaluator of a condition on the sub-attributes of a value."""

    def __init__(self, condition: Condition, resource: ResourceType) -> None:
        self._condition = condition
        self._places = attributes_by_path(resource)
        self._folded = _FoldedTexts()

    def holds(self, value: Mapping[str, Any]) -> bool:
        return self._holds(self._condition, value)

    def _holds(self, condition: Condition, value: Mapping[str, Any]) -> bool:
        match condition:
            case CompareCondition():
                return self._compares(condition, value)
            case PresentCondition():
                return _part(condition.attribute, value) is not None
            case ElementCondition():
                return self._holds(condition.condition, value)
            case NotCondition():
                return not self._holds(condition.condition, value)
            case AllCondition():
                return all(self._holds(inner, value) for inner in condition.conditions)
            case AnyCondition():
                return any(self._holds(inner, value) for inner in condition.conditions)

    def _compares(self, condition: CompareCondition, value: Mapping[str, Any]) -> bool:
        found, wanted = _part(condition.attribute, value), condition.value
        if found is None:
            return condition.operator is Operator.NE
        if isinstance(found, str) and isinstance(wanted, str):
            is_exact = self._places[condition.attribute.lower()].attribute.is_case_exact
            if not is_exact:
                found, wanted = text_key(found), self._folded[wanted]
            return _texts(condition.operator, found, wanted)
        return (found == wanted) is (condition.operator is Operator.EQ)


def _part(attribute: str, value: Mapping[str, Any]) -> Value | None:
    """Return the value of a sub-attribute, None if it is absent or empty."""
    found: Value | None = value.get(attribute.rpartition(".")[2])
    return None if found == "" else found


def _texts(operator: Operator, found: str, wanted: str) -> bool:
    match operator:
        case Operator.EQ:
            return found == wanted
        case Operator.NE:
            return found != wanted
        case Operator.CO:
            return wanted in found
        case Operator.SW:
            return found.startswith(wanted)
        case Operator.EW:
            return found.endswith(wanted)
        case Operator.GT:
            return found > wanted
        case Operator.GE:
            return found >= wanted
        case Operator.LT:
            return found < wanted
        case Operator.LE:
            return found <= wanted
