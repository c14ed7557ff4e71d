"""Compiler of SCIM conditions to SQL predicates, with the attribute tables of `columns`.

Every value is a parameter. Each part of a predicate is true or false and never null, so that NOT negates it.
SQLite limits the depth of an expression (1000, counted separately for each subquery) and the stack of its
parser (100 symbols). So NOT is moved down to the comparisons, a long chain becomes a balanced tree, and the
deeper operand comes first.

Texts are compared case-folded unless their attribute is case-exact, in the order of code points. A condition
on a multi-valued attribute is true if it is true for one value; NE is also true without values (RFC 7644,
3.4.2.2). A text that no column can store (with a NUL character or an unpaired surrogate) equals no value.
"""

import operator as python
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any, Final

from gatewayd.errors import GatewayError, invalid
from gatewayd.scim.filters.conditions import (
    AllCondition,
    AnyCondition,
    CompareCondition,
    Condition,
    ElementCondition,
    NotCondition,
    Operator,
    PresentCondition,
)
from gatewayd.scim.records import ResourceType
from gatewayd.storage.engine.fields import MAX_WHOLE, MIN_WHOLE
from gatewayd.storage.scim.columns import (
    AttributeColumn,
    AttributeTable,
    ValueTable,
    ValueType,
    attribute_table,
)
from gatewayd.text import casefold_nfc, is_storable

MAX_DEPTH: Final = 100
MICROSECONDS: Final = 1_000_000
LAST_CHARACTER: Final = 0x10FFFF
FIRST_SURROGATE: Final = 0xD800
AFTER_SURROGATES: Final = 0xE000

TRUE: Final = "TRUE"
FALSE: Final = "FALSE"
SQL_OPERATORS: Final = {
    Operator.EQ: "=",
    Operator.GT: ">",
    Operator.GE: ">=",
    Operator.LT: "<",
    Operator.LE: "<=",
}
CONSTANTS: Final[Mapping[Operator, Callable[[str, str], bool]]] = {
    Operator.EQ: python.eq,
    Operator.CO: python.contains,
    Operator.SW: str.startswith,
    Operator.EW: str.endswith,
    Operator.GT: python.gt,
    Operator.GE: python.ge,
    Operator.LT: python.lt,
    Operator.LE: python.le,
}

_Positive = CompareCondition | PresentCondition | ElementCondition | AllCondition | AnyCondition

Bind = Callable[[Any], str]
"""Adds a value as a parameter of the statement and returns its placeholder."""


@dataclass(frozen=True, slots=True)
class ConditionContext:
    """Context of a compilation: the resource type, the SQL dialect and the parameters.

    The alias of the resource's table is `u` (users) or `g` (groups). `provider` and `by_subject` are those of
    `scim.records.ResourceQuery`.
    """

    resource: ResourceType
    dialect: str
    bind: Bind
    provider: str = ""
    by_subject: bool = False

    @property
    def table(self) -> AttributeTable:
        """The attribute table of the resource."""
        return attribute_table(self.resource, by_subject=self.by_subject)

    @property
    def is_postgres(self) -> bool:
        """Whether the dialect is PostgreSQL's; otherwise it is SQLite's."""
        return self.dialect == "postgres"


@dataclass(frozen=True, slots=True)
class SortOrder:
    """SQL to sort by an attribute, and the condition of its absence, None when it is never absent."""

    sql: str
    absent: str | None = None


def compile_condition(condition: Condition, scope: ConditionContext) -> str:
    """Return the SQL predicate of a condition.

    Raises invalid_request, code `invalidFilter`, for an unknown attribute, an operator or a value that its
    type does not have, and more than a hundred levels.
    """
    return _Compiler(scope).clause(condition, True).text


def compile_order(attribute: str, scope: ConditionContext) -> SortOrder:
    """Return the SQL to sort by an attribute; a multi-valued one sorts by its primary or first value.

    Raises invalid_request, code `invalidValue`, for an unknown attribute.
    """
    field = scope.table.fields.get(attribute.lower())
    if field is None or field.type is ValueType.CONSTANT:
        raise invalid(f"cannot sort by {attribute!r}", param="sortBy", code="invalidValue")
    side = field.side
    if side is None:
        return SortOrder(field.sql, f"({field.sql} = '')" if field.is_optional else None)
    own = f" AND {side.provider} = {scope.bind(scope.provider)}" if side.provider else ""
    first = f" ORDER BY {side.order} LIMIT 1" if side.order else ""
    value = f"(SELECT {field.sql} FROM {side.rows} WHERE {side.owner} = {scope.table.id}{own}{first})"  # noqa: S608
    return SortOrder(value, f"({value} IS NULL)")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a predicate; `joiner` is its outermost operator, "" when it needs no brackets.

    `height` approximates its depth, `open` the number of symbols on the parser's stack.
    """

    text: str
    joiner: str = ""
    height: int = 4
    open: int = 4

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key by depth."""
        return self.height, self.open


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiles conditions on resources or, inside a value filter, on the values of one attribute
    (`within`)."""

    scope: ConditionContext
    within: ValueTable | None = None
    depth: int = 0

    def clause(self, condition: Condition, holds: bool) -> _Clause:
        """Return the clause of a condition, or of its negation unless `holds`."""
        condition, holds = _without_not(condition, holds)
        if isinstance(condition, AllCondition | AnyCondition):
            return self._chain(condition, holds)
        found = self._single(condition)
        if holds:
            return found
        return _Clause(f"NOT ({found.text})", height=found.height + 1, open=found.open + 3)

    def _single(self, condition: CompareCondition | PresentCondition | ElementCondition) -> _Clause:
        match condition:
            case ElementCondition(attribute, inner):
                return self._element(attribute, inner)
            case PresentCondition(attribute):
                return _Clause(self._presence(attribute))
            case CompareCondition():
                return _Clause(self._comparison(condition))

    def _chain(self, condition: AllCondition | AnyCondition, holds: bool) -> _Clause:
        joiner = _joiner(condition, holds)
        inner = self._deeper()
        parts = [inner.clause(part, wanted) for part, wanted in _flat(condition, holds, joiner)]
        if not parts:
            return _Clause(TRUE if joiner == "AND" else FALSE)
        return _joined(parts, joiner)

    def _element(self, attribute: str, inner: Condition) -> _Clause:
        side = self.scope.table.wholes.get(attribute.lower())
        if not isinstance(side, ValueTable) or self.within is not None:
            raise _refused(f"{attribute!r} has no values to select from")
        clause = replace(self._deeper(), within=side).clause(inner, True)
        inside = f"({clause.text})" if clause.joiner else clause.text
        return _Clause(self._some(side, inside), height=clause.height + 2, open=clause.open + 12)

    def _presence(self, attribute: str) -> str:
        whole = self.scope.table.wholes.get(attribute.lower())
        if isinstance(whole, ValueTable) and self.within is None:
            return self._some(whole, TRUE)
        if isinstance(whole, str) and self.within is None:
            return whole
        field = self._field(attribute)
        return self._of(field, _presence(field))

    def _comparison(self, condition: CompareCondition) -> str:
        field = self._field(condition.attribute)
        if condition.operator is not Operator.NE:
            return self._of(field, self._row(field, condition))
        equal = self._row(field, replace(condition, operator=Operator.EQ))
        if self.within is None and field.side is not None and field.side.is_multiple:
            some, differing = self._some(field.side, TRUE), self._some(field.side, f"NOT ({equal})")
            return f"({differing} OR NOT ({some}))"
        return f"NOT ({self._of(field, equal)})"

    def _row(self, field: AttributeColumn, condition: CompareCondition) -> str:
        return _COMPARISONS[field.type](field, condition, self.scope)

    def _of(self, field: AttributeColumn, row: str) -> str:
        """Return the predicate that a resource has a value for which `row` is true."""
        return row if field.side is None or self.within is not None else self._some(field.side, row)

    def _some(self, side: ValueTable, row: str) -> str:
        own = f"{side.provider} = {self.scope.bind(self.scope.provider)} AND " if side.provider else ""
        chosen = f"SELECT {side.owner} FROM {side.rows} WHERE {own}{row}"  # noqa: S608 - our own text
        return f"{self.scope.table.id} IN ({chosen})"

    def _field(self, attribute: str) -> AttributeColumn:
        field = self.scope.table.fields.get(attribute.lower())
        if field is None:
            raise _refused(f"{self.scope.resource} cannot be searched by {attribute!r}")
        if self.within is not None and field.side is not self.within:
            raise _refused(f"{attribute!r} is no attribute of the values to select from")
        return field

    def _deeper(self) -> "_Compiler":
        if self.depth >= MAX_DEPTH:
            raise _refused(f"it is nested more than {MAX_DEPTH} levels deep")
        return replace(self, depth=self.depth + 1)


def _without_not(condition: Condition, holds: bool) -> tuple[_Positive, bool]:
    while isinstance(condition, NotCondition):
        condition, holds = condition.condition, not holds
    return condition, holds


def _joiner(condition: Condition, holds: bool) -> str:
    match condition:
        case AllCondition():
            return "AND" if holds else "OR"
        case AnyCondition():
            return "OR" if holds else "AND"
        case _:
            return ""


def _flat(
    condition: AllCondition | AnyCondition, holds: bool, joiner: str
) -> Iterator[tuple[Condition, bool]]:
    """Return the operands of a chain, including those of nested chains with the same operator."""
    left: list[tuple[Condition, bool]] = [(condition, holds)]
    while left:
        part, wanted = _without_not(*left.pop())
        if isinstance(part, AllCondition | AnyCondition) and _joiner(part, wanted) == joiner:
            left += [(each, wanted) for each in reversed(part.conditions)]
        else:
            yield part, wanted


def _joined(parts: Sequence[_Clause], joiner: str) -> _Clause:
    """Return the parts joined by an operator, as a tree of minimal height."""
    queue = [(part.rank, place, part) for place, part in enumerate(parts)]
    heapify(queue)
    place = len(queue)
    while len(queue) > 1:
        lower, higher = heappop(queue)[2], heappop(queue)[2]
        both = _pair(higher, lower, joiner) if higher.open >= lower.open else _pair(lower, higher, joiner)
        heappush(queue, (both.rank, place, both))
        place += 1
    return queue[0][2]


def _pair(first: _Clause, second: _Clause, joiner: str) -> _Clause:
    """Return two clauses joined: operators are left-associative, and AND binds more tightly than OR."""
    left, right = first.text, second.text
    before, after = first.open, second.open + 2
    if (joiner, first.joiner) == ("AND", "OR"):
        left, before = f"({left})", before + 1
    if second.joiner and (joiner, second.joiner) != ("OR", "AND"):
        right, after = f"({right})", after + 1
    height = max(first.height, second.height) + 1
    return _Clause(f"{left} {joiner} {right}", joiner, height, max(before, after))


def _presence(field: AttributeColumn) -> str:
    return f"{field.sql} <> ''" if field.type in {ValueType.FOLDED, ValueType.EXACT} else TRUE


def _text(field: AttributeColumn, condition: CompareCondition, scope: ConditionContext) -> str:
    value, compare = _checked(condition, str), condition.operator
    if not is_storable(value):
        return FALSE
    wanted = casefold_nfc(value) if field.type is ValueType.FOLDED else value
    if not wanted:
        never = compare in {Operator.EQ, Operator.LT, Operator.LE}
        return FALSE if never else _presence(field)
    match compare:
        case Operator.CO:
            return f"{'strpos' if scope.is_postgres else 'instr'}({field.sql}, {scope.bind(wanted)}) > 0"
        case Operator.SW:
            return _prefix(field.sql, wanted, scope.bind)
        case Operator.EW:
            length = len(wanted) if scope.is_postgres else -len(wanted)
            end = f"{'right' if scope.is_postgres else 'substr'}({field.sql}, {scope.bind(length)})"
            return f"{end} = {scope.bind(wanted)}"
        case Operator.LT | Operator.LE:
            return f"({field.sql} {SQL_OPERATORS[compare]} {scope.bind(wanted)} AND {field.sql} <> '')"
        case _:
            return f"{field.sql} {SQL_OPERATORS[compare]} {scope.bind(wanted)}"


def _prefix(sql: str, prefix: str, bind: Bind) -> str:
    """Return the predicate that a text starts with a prefix, as a range that can use an index."""
    end = _after(prefix)
    start = f"{sql} >= {bind(prefix)}"
    return start if end is None else f"({start} AND {sql} < {bind(end)})"


def _after(prefix: str) -> str | None:
    """Return the upper bound of the texts that start with a prefix, None when there is none."""
    head = prefix.rstrip(chr(LAST_CHARACTER))
    if not head:
        return None
    following = ord(head[-1]) + 1
    return head[:-1] + chr(AFTER_SURROGATES if following == FIRST_SURROGATE else following)


def _boolean(field: AttributeColumn, condition: CompareCondition, _: ConditionContext) -> str:
    value = _checked(condition, bool)
    if condition.operator is not Operator.EQ:
        raise _refused(f"{condition.attribute!r} has no operator {condition.operator}")
    return field.sql if value else f"NOT {field.sql}"


def _moment(field: AttributeColumn, condition: CompareCondition, scope: ConditionContext) -> str:
    unit = MICROSECONDS if field.type is ValueType.SECONDS else 1
    whole, rest = divmod(_checked(condition, int), unit)
    compare = condition.operator
    if compare not in SQL_OPERATORS:
        raise _refused(f"{condition.attribute!r} has no operator {compare}")
    if rest:
        # A time between two seconds: later values begin with the next second, earlier ones end with this one.
        if compare is Operator.EQ:
            return FALSE
        compare = Operator.GT if compare in {Operator.GT, Operator.GE} else Operator.LE
    if whole > MAX_WHOLE:
        return TRUE if compare in {Operator.LT, Operator.LE} else FALSE
    if whole < MIN_WHOLE:
        return TRUE if compare in {Operator.GT, Operator.GE} else FALSE
    return f"{field.sql} {SQL_OPERATORS[compare]} {scope.bind(whole)}"


def _constant(field: AttributeColumn, condition: CompareCondition, _: ConditionContext) -> str:
    value = _checked(condition, str)
    holds = is_storable(value) and CONSTANTS[condition.operator](field.sql, value)
    return TRUE if holds else FALSE


_COMPARISONS: Final[
    Mapping[ValueType, Callable[[AttributeColumn, CompareCondition, ConditionContext], str]]
] = {
    ValueType.FOLDED: _text,
    ValueType.EXACT: _text,
    ValueType.BOOLEAN: _boolean,
    ValueType.SECONDS: _moment,
    ValueType.MICROSECONDS: _moment,
    ValueType.CONSTANT: _constant,
}


def _checked(condition: CompareCondition, kind: type[Any]) -> Any:
    # isinstance would accept a bool as an int.
    if type(condition.value) is not kind:
        raise _refused(f"{condition.attribute!r} cannot be compared with a {type(condition.value).__name__}")
    return condition.value


def _refused(reason: str) -> GatewayError:
    return invalid(f"cannot filter: {reason}", param="filter", code="invalidFilter")
