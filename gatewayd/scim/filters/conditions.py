"""Conditions on resources, the compiled form of a filter, independent of SCIM syntax and SQL.

Attributes have their names in the table `attributes` (`userName`, `emails.value`). Values have the type of
the attribute: text, bool, or microseconds since the epoch for a dateTime. A condition on an attribute that a
resource lacks is false, so its `NotCondition` is true; only NE is true (RFC 7644 section 3.4.2.2).
"""

from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    """The comparison operators, in the order of gatewayd-scim(7), Filters."""

    EQ = "eq"
    NE = "ne"
    CO = "co"
    SW = "sw"
    EW = "ew"
    GT = "gt"
    GE = "ge"
    LT = "lt"
    LE = "le"


Value = str | bool | int


@dataclass(frozen=True, slots=True)
class CompareCondition:
    """Comparison of an attribute with a value; for a multi-valued attribute, any of its values may match."""

    attribute: str
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class PresentCondition:
    """The attribute has a non-empty value (operator pr)."""

    attribute: str


@dataclass(frozen=True, slots=True)
class ElementCondition:
    """A single value of a multi-valued complex attribute satisfies a condition on its sub-attributes.

    The attributes in `condition` have their full names, for example `emails.type`.
    """

    attribute: str
    condition: "Condition"


@dataclass(frozen=True, slots=True)
class NotCondition:
    """The condition is false (not)."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class AllCondition:
    """Every condition is true (and)."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyCondition:
    """At least one condition is true (or)."""

    conditions: tuple["Condition", ...]


Condition = (
    CompareCondition | PresentCondition | ElementCondition | NotCondition | AllCondition | AnyCondition
)
