"""Filters as RFC 7644 (section 3.4.2.2) allows them: their nodes, and the ways to write these."""

import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gatewayd.scim.attributes import SCHEMAS, Attribute, AttributeType, QualifiedAttribute, attributes_by_path
from gatewayd.scim.filters.conditions import Operator
from gatewayd.scim.filters.syntax import (
    AttributeComparison,
    AttributeName,
    AttributePresence,
    Conjunction,
    Disjunction,
    FilterExpression,
    Literal,
    Negation,
    PatchPath,
    ValueSelection,
)
from gatewayd.scim.records import ResourceType

EQUALITY = (Operator.EQ, Operator.NE)
ORDER = (Operator.GT, Operator.GE, Operator.LT, Operator.LE)
BLANKS = (" ", "  ", "\t", " \n ")

TEXTS = st.one_of(
    st.sampled_from(
        ["", "work", "Ada@Example.org", "ada", "%", "_", "\\", "'", '"', "(", "] and [", "straße"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
)
"""Strings that filters compare with."""

OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
BARE = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)).map(datetime.isoformat)  # noqa: DTZ001
SHIFTED = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS).map(datetime.isoformat)  # noqa: DTZ001
UNIVERSAL = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda moment: moment.isoformat().replace("+00:00", "Z")
)
MOMENTS = BARE | SHIFTED | UNIVERSAL
"""Times that filters compare with."""


@dataclass(frozen=True)
class Values:
    """What filters compare with: strings for texts, strings for moments."""

    texts: SearchStrategy[str] = field(default=TEXTS)
    moments: SearchStrategy[str] = field(default=MOMENTS)

    def of(self, attribute: Attribute) -> SearchStrategy[tuple[Operator, Literal]]:
        """Return operators and values that an attribute can be compared with."""
        null = st.tuples(st.sampled_from(EQUALITY), st.none())
        operators: tuple[Operator, ...] = tuple(Operator)
        values: SearchStrategy[Literal] = self.texts
        if attribute.kind is AttributeType.BOOLEAN:
            operators, values = EQUALITY, st.sampled_from([True, False, "true", "True", "FALSE"])
        elif attribute.kind is AttributeType.DATE_TIME:
            operators, values = (*EQUALITY, *ORDER), self.moments
        return st.one_of(*3 * [st.tuples(st.sampled_from(operators), values)], null)


def nodes(
    resource: ResourceType, values: Values | None = None, max_leaves: int = 8
) -> SearchStrategy[FilterExpression]:
    """Return filters on resources of a type that mean something."""
    given = values or Values()
    searchable = [
        place
        for place in attributes_by_path(resource).values()
        if place.attribute.kind is not AttributeType.REFERENCE
    ]
    leaves = [leaf for place in searchable for leaf in _leaves(_names(resource, place), place, given)]
    leaves.append(_schemas(resource))
    for place in searchable:
        if place.attribute.is_multiple:
            inner = inner_nodes(resource, place.name, given)
            leaves.append(st.builds(ValueSelection, _names(resource, place), inner))
    return _combined(st.one_of(leaves), max_leaves)


def inner_nodes(
    resource: ResourceType, attribute: str, values: Values | None = None
) -> SearchStrategy[FilterExpression]:
    """Return filters on one value of a multi-valued attribute, as they stand in brackets."""
    place = attributes_by_path(resource)[attribute.lower()]
    return _combined(st.one_of(list(_inner(place, values or Values()))), 3)


def any_nodes() -> SearchStrategy[FilterExpression]:
    """Return filters with any names and values that the syntax has, whether these mean something or not."""
    names, parts = _any_words().filter(lambda word: word.lower() != "not"), _any_words()
    urns = st.sampled_from([None, "urn:a", "URN:ietf:x_y.z-1:2.0:User", SCHEMAS[ResourceType.USER].urn])
    numbers = st.integers(1 - 10**99, 10**99 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    literals = st.one_of(TEXTS, numbers, st.booleans(), st.none())
    named = st.builds(AttributeName, names, st.none() | parts, urns)
    leaves = st.builds(AttributePresence, named) | st.builds(
        AttributeComparison, named, st.sampled_from(Operator), literals
    )
    selections = st.builds(
        ValueSelection, st.builds(AttributeName, names, st.none(), urns), _combined(leaves, 3)
    )
    return _combined(leaves | selections, 8)


def filter_texts(resource: ResourceType, values: Values | None = None) -> SearchStrategy[str]:
    """Return filters as clients write them."""
    return nodes(resource, values).flatmap(texts_of)


def texts_of(node: FilterExpression) -> SearchStrategy[str]:
    """Return the ways to write a filter."""
    return st.integers(0, 2**32).map(lambda seed: written(node, seed))


def spoilt_texts(resource: ResourceType) -> SearchStrategy[str]:
    """Return filters with one to three mistakes in them; some are filters still."""
    signs = st.sampled_from([*'()[]".:\\ ', "\0", "\ud800", "not", " and ", "eq", "null", "1e999", "é"])
    mistakes = st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 3), signs | st.just("")), min_size=1, max_size=3
    )
    return st.builds(_spoil, filter_texts(resource), mistakes)


def written(node: FilterExpression, seed: int | None = None) -> str:
    """Return a filter's text: the plain one, or one of many with keywords in any case and odd blanks."""
    return _Writer(seed).text(node)


def written_path(path: PatchPath, seed: int | None = None) -> str:
    """Return a path's text."""
    brackets = "" if path.inner is None else f"[{written(path.inner, seed)}]"
    return f"{path.name}{brackets}" + (f".{path.part}" if path.part else "")


class _Writer:
    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else random.Random(seed)

    def text(self, node: FilterExpression) -> str:
        match node:
            case AttributeComparison():
                return f"{node.name}{self._word(node.operator)}{self._value(node.value)}"
            case AttributePresence():
                return f"{node.name}{self._word('pr').rstrip()}"
            case ValueSelection():
                return f"{node.name}[{self._spare()}{self._maybe_grouped(node.inner)}{self._spare()}]"
            case Negation():
                return f"{self._word('not').strip()}{self._spare()}({self.text(node.inner)})"
            case Conjunction():
                return self._word("and").join(self._term(inner, Disjunction) for inner in node.nodes)
            case Disjunction():
                return self._word("or").join(self._term(inner) for inner in node.nodes)

    def _term(self, node: FilterExpression, *weaker: type[FilterExpression]) -> str:
        """Put brackets around what would read otherwise: a weaker operator, or a chain within a chain."""
        is_same = isinstance(node, Conjunction if weaker else Disjunction)
        if is_same or isinstance(node, weaker):
            return f"({self.text(node)})"
        return self._maybe_grouped(node)

    def _maybe_grouped(self, node: FilterExpression) -> str:
        inner = self.text(node)
        if self._random is None or self._random.random() < 0.8:
            return inner
        return f"({self._spare()}{inner}{self._spare()})"

    def _word(self, word: str) -> str:
        if self._random is None:
            return f" {word} "
        cased = self._random.choice((word, word, word.upper(), word.title()))
        return f"{self._random.choice(BLANKS)}{cased}{self._random.choice(BLANKS)}"

    def _spare(self) -> str:
        return "" if self._random is None else self._random.choice(("", *BLANKS))

    def _value(self, value: Literal) -> str:
        is_ascii = self._random is None or self._random.random() < 0.5
        shown = json.dumps(value, ensure_ascii=is_ascii)
        if isinstance(value, bool) or value is None:
            return shown if self._random is None else self._random.choice((shown, shown.upper()))
        return shown


def _combined(leaves: SearchStrategy[FilterExpression], max_leaves: int) -> SearchStrategy[FilterExpression]:
    def extend(inner: SearchStrategy[FilterExpression]) -> SearchStrategy[FilterExpression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            st.builds(Negation, inner), st.builds(Conjunction, several), st.builds(Disjunction, several)
        )

    return st.recursive(leaves, extend, max_leaves=max_leaves)


def _any_words() -> SearchStrategy[str]:
    keywords = st.sampled_from(["and", "OR", "pr", "eq", "true", "null", "never", "not-a", "urn", "$ref"])
    return keywords | st.from_regex(r"\$?[A-Za-z][A-Za-z0-9_$-]{0,8}", fullmatch=True)


def _leaves(
    names: SearchStrategy[AttributeName], place: QualifiedAttribute, values: Values
) -> Iterator[SearchStrategy[FilterExpression]]:
    yield st.builds(AttributePresence, names)
    value = next((part for part in place.attribute.parts if part.name == "value"), None)
    if place.attribute.kind is not AttributeType.COMPLEX or value:
        compared = values.of(value or place.attribute)
    else:
        compared = st.tuples(st.sampled_from(EQUALITY), st.none())
    yield st.builds(lambda name, pair: AttributeComparison(name, *pair), names, compared)


def _inner(place: QualifiedAttribute, values: Values) -> Iterator[SearchStrategy[FilterExpression]]:
    for part in place.attribute.parts:
        if part.kind is not AttributeType.REFERENCE:
            whole = st.builds(AttributeName, _cased(place.name), _cased(part.name))
            yield from _leaves(
                whole | st.builds(AttributeName, _cased(part.name)),
                QualifiedAttribute(part.name, part),
                values,
            )


def _schemas(resource: ResourceType) -> SearchStrategy[FilterExpression]:
    urns = st.sampled_from([schema.urn for schema in SCHEMAS.values()])
    return st.builds(
        AttributeComparison, st.builds(AttributeName, _cased("schemas")), st.sampled_from(EQUALITY), urns
    )


def _names(resource: ResourceType, place: QualifiedAttribute) -> SearchStrategy[AttributeName]:
    urn = SCHEMAS[resource].urn
    head, _, tail = place.name.partition(".")
    part = _cased(tail) if tail else st.none()
    return st.builds(AttributeName, _cased(head), part, st.none() | st.sampled_from([urn, urn.upper()]))


def _cased(name: str) -> SearchStrategy[str]:
    return st.sampled_from([name, name, name.lower(), name.upper(), string.capwords(name)])


def _spoil(text: str, mistakes: list[tuple[int, int, str]]) -> str:
    for place, removed, sign in mistakes:
        position = place % (len(text) + 1)
        text = f"{text[:position]}{sign}{text[position + removed :]}"
    return text
