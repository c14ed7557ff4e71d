"""What a filter or a PATCH path says, before anybody asks what its names mean.

RFC 7644 sections 3.4.2.2 and 3.5.2.
"""

from dataclasses import dataclass

from gatewayd.scim.filters.conditions import Operator

Literal = str | bool | int | float | None


@dataclass(frozen=True, slots=True)
class AttributeName:
    """An attribute as it is written: `urn:...:User:name.givenName` has a URN, an attribute and a part."""

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
    """`emails[type eq "work"]`; inside, names are those of the parts."""

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
    """Return how many comparisons and presences a filter has."""
    match node:
        case AttributeComparison() | AttributePresence():
            return 1
        case ValueSelection() | Negation():
            return comparisons(node.inner)
        case Conjunction() | Disjunction():
            return sum(map(comparisons, node.nodes))


def nesting(node: FilterExpression) -> int:
    """Return how deep the operators and selections of a filter nest; a comparison alone has 0."""
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

    Without a filter the part stands in `name`, with one in `part`.
    """

    name: AttributeName
    inner: FilterExpression | None = None
    part: str | None = None
