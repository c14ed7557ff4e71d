"""Syntax trees of filters and PATCH paths, with unresolved names (RFC 7644 sections 3.4.2.2 and 3.5.2)."""

from dataclasses import dataclass

from gatewayd.scim.filters.conditions import Operator

Literal = str | bool | int | float | None


@dataclass(frozen=True, slots=True)
class AttributeName:
    """Attribute name as written: `urn:...:User:name.givenName` has a URN, an attribute and a part."""

    attribute: str
    part: str | None = None
    urn: str | None = None

    def __str__(self) -> str:
        head = f"{self.urn}:" if self.urn else ""
        return f"{head}{self.attribute}.{self.part}" if self.part else f"{head}{self.attribute}"


@dataclass(frozen=True, slots=True)
class AttributeComparison:
    """`userName eq "ada"`."""

    name: AttributeName
    operator: Operator
    value: Literal


@dataclass(frozen=True, slots=True)
class AttributePresence:
    """`title pr`."""

    name: AttributeName


@dataclass(frozen=True, slots=True)
class ValueSelection:
    """`emails[type eq "work"]`; the inner names are sub-attributes."""

    name: AttributeName
    inner: "FilterExpression"


@dataclass(frozen=True, slots=True)
class Negation:
    """`not (...)`."""

    inner: "FilterExpression"


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Two or more nodes joined by `and`."""

    nodes: tuple["FilterExpression", ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Two or more nodes joined by `or`."""

    nodes: tuple["FilterExpression", ...]


FilterExpression = (
    AttributeComparison | AttributePresence | ValueSelection | Negation | Conjunction | Disjunction
)


def comparisons(node: FilterExpression) -> int:
    """Return the number of comparisons and presence tests of a filter."""
    match node:
        case AttributeComparison() | AttributePresence():
            return 1
        case ValueSelection() | Negation():
            return comparisons(node.inner)
        case Conjunction() | Disjunction():
            return sum(map(comparisons, node.nodes))


def nesting(node: FilterExpression) -> int:
    """Return the nesting depth of operators and value selections; a comparison alone has 0."""
    match node:
        case AttributeComparison() | AttributePresence():
            return 0
        case ValueSelection() | Negation():
            return 1 + nesting(node.inner)
        case Conjunction() | Disjunction():
            return 1 + max(map(nesting, node.nodes))


@dataclass(frozen=True, slots=True)
class PatchPath:
    """The target of a PATCH operation, such as `name.givenName` or `emails[type eq "work"].value`.

    Without a filter the sub-attribute is in `name`, with a filter in `part`.
    """

    name: AttributeName
    inner: FilterExpression | None = None
    part: str | None = None
