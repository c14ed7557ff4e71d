"""Neutral conditions: what a filter asks for, without its syntax and without SQL.

Attributes are named as the table in `attributes` names them (`userName`, `emails.value`). Values have their
attribute's type: text, bool, or microseconds since the epoch for a moment. A condition on an attribute that a
resource lacks is false, so that `NotCondition` of it is true; only NE holds for one (RFC 7644 section
3.4.2.2).
"""

from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    """The comparing operators, in the order of gatewayd-scim(7), Filters."""

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
    """An attribute compared with a value; a multi-valued one compares when one of its values does."""

    attribute: str
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class PresentCondition:
    """The attribute has a value that is not empty (operator pr)."""

    attribute: str


@dataclass(frozen=True, slots=True)
class ElementCondition:
    """One and the same value of a multi-valued complex attribute satisfies a condition on its parts.

    The attributes in `condition` have their whole names, for example `emails.type`.
    """

    attribute: str
    condition: "Condition"


@dataclass(frozen=True, slots=True)
class NotCondition:
    """The condition does not hold."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class AllCondition:
    """Every condition holds (and)."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyCondition:
    """At least one condition holds (or)."""

    conditions: tuple["Condition", ...]


Condition = (
    CompareCondition | PresentCondition | ElementCondition | NotCondition | AllCondition | AnyCondition
)
