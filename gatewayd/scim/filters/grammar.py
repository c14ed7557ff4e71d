"""Parser of filters (RFC 7644, 3.4.2.2) and of PATCH paths (RFC 7644, 3.5.2)."""

import json
import re
from math import isfinite
from typing import Final

from gatewayd.errors import GatewayError, invalid, shorten
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
    comparisons,
    nesting,
)
from gatewayd.text import is_storable

MAX_TEXT_CHARACTERS: Final = 8192
MAX_COMPARISONS: Final = 100
MAX_DEPTH: Final = 50
"""Maximum nesting of parentheses, which bounds the recursion of the parser."""
MAX_OPERATORS: Final = 32
"""Maximum nesting of `and`, `or`, `not` and value selections, which bounds the recursion over nodes."""

_MAX_DIGITS: Final = 100
_EXCERPT: Final = 20


def _token(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose first group is the token; it also matches the blanks after the token."""
    return re.compile(rf"({pattern})[ \t\f\r\n]*", re.ASCII)


def _word(words: str) -> str:
    """Return the pattern of whole keywords in any case: `ne` does not match in `never`."""
    return rf"(?i:{words})(?![\w$-])"


_NAME: Final = r"\$?[A-Za-z][\w$-]*"
_STRING: Final = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4})*"'
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"

_START: Final = _token("")
_ATTRIBUTE: Final = _token(rf"(?:((?i:urn)(?::[A-Za-z0-9][\w.-]*)+):)?({_NAME})(?:\.({_NAME}))?")
_PART: Final = _token(_NAME)
_LITERAL: Final = _token(rf"{_STRING}|{_NUMBER}|{_word('true|false|null')}")
_OPERATOR: Final = _token(_word("|".join(Operator)))
_PRESENT: Final = _token(_word("pr"))
_AND: Final = _token(_word("and"))
_OR: Final = _token(_word("or"))
_NOT: Final = _token(_word("not"))
_OPENING: Final = _token(r"\(")
_CLOSING: Final = _token(r"\)")
_BRACKET: Final = _token(r"\[")
_CLOSING_BRACKET: Final = _token(r"\]")
_DOT: Final = _token(r"\.")
_LONG_NUMBER: Final = re.compile(rf"[0-9]{{{_MAX_DIGITS + 1}}}")


def parse_filter(text: str) -> FilterExpression:
    """Return the syntax tree of a filter; raise invalid_request, code `invalidFilter`, with the column.

    `emails[type eq "work"].value eq "x"`, which Entra ID sends, is equivalent to
    `emails[type eq "work" and value eq "x"]`.
    """
    return _Parser("filter", text).filter()


def parse_path(text: str) -> PatchPath:
    """Return a parsed path; raise invalid_request, code `invalidPath`, with the column.

    `emails.type eq "work"` is equivalent to `emails[type eq "work"]` (erratum 7122). The URN of a schema
    alone is parsed as an attribute (its last word) with the rest as URN, so `str` of the name is the URN
    again.
    """
    return _Parser("path", text).path()


class _Parser:
    """Recursive-descent parser without backtracking."""

    def __init__(self, what: str, text: str) -> None:
        self._what = what
        self._text = text
        self._position = 0
        self._depth = 0
        if not text.strip():
            raise self._refusal("it is empty")
        if len(text) > MAX_TEXT_CHARACTERS:
            raise self._refusal(f"it is longer than {MAX_TEXT_CHARACTERS} characters")
        self._expect(_START)

    def filter(self) -> FilterExpression:
        node = self._disjunction()
        self._finish(node)
        return node

    def path(self) -> PatchPath:
        name = self._name()
        if self._take(_BRACKET):
            selection = self._selection(name)
            part = self._expect(_PART)[1] if self._take(_DOT) else None
            self._finish(selection)
            return PatchPath(name, selection.inner, part)
        if self._position == len(self._text):
            return PatchPath(name)
        inner = self._comparison(AttributeName(name.part or "value"))
        self._finish(inner)
        return PatchPath(AttributeName(name.attribute, urn=name.urn), inner)

    def _disjunction(self, *, in_brackets: bool = False) -> FilterExpression:
        alternatives: list[FilterExpression] = []
        while not alternatives or self._take(_OR):
            terms = [self._term(in_brackets)]
            while self._take(_AND):
                terms.append(self._term(in_brackets))
            alternatives.append(terms[0] if len(terms) == 1 else Conjunction(tuple(terms)))
        return alternatives[0] if len(alternatives) == 1 else Disjunction(tuple(alternatives))

    def _term(self, in_brackets: bool) -> FilterExpression:
        is_negated = self._take(_NOT) is not None
        opening = self._expect(_OPENING) if is_negated else self._take(_OPENING)
        if opening is None:
            return self._expression(in_brackets)
        if self._depth == MAX_DEPTH:
            raise self._refusal(f"it nests deeper than {MAX_DEPTH} parentheses", opening.start())
        self._depth += 1
        inner = self._disjunction(in_brackets=in_brackets)
        self._expect(_CLOSING)
        self._depth -= 1
        return Negation(inner) if is_negated else inner

    def _expression(self, in_brackets: bool) -> FilterExpression:
        name = self._name()
        if in_brackets or not self._take(_BRACKET):
            return self._comparison(name)
        selection = self._selection(name)
        if not self._take(_DOT):
            return selection
        inner = selection.inner
        terms = inner.nodes if isinstance(inner, Conjunction) else (inner,)
        last = self._comparison(AttributeName(self._expect(_PART)[1]))
        return ValueSelection(name, Conjunction((*terms, last)))

    def _selection(self, name: AttributeName) -> ValueSelection:
        """Parse a value selection after its opening bracket."""
        if name.part is not None:
            shown = shorten(str(name))
            raise self._refusal(f"a value selection cannot apply to the sub-attribute {shown!r}")
        inner = self._disjunction(in_brackets=True)
        self._expect(_CLOSING_BRACKET)
        return ValueSelection(name, inner)

    def _comparison(self, name: AttributeName) -> FilterExpression:
        if self._take(_PRESENT):
            return AttributePresence(name)
        return AttributeComparison(name, Operator(self._expect(_OPERATOR)[1].lower()), self._literal(name))

    def _name(self) -> AttributeName:
        _, urn, attribute, part = self._expect(_ATTRIBUTE).groups()
        return AttributeName(attribute, part, urn)

    def _literal(self, name: AttributeName) -> Literal:
        """Return a value in JSON syntax (RFC 7644, 3.4.2.2)."""
        match = self._expect(_LITERAL)
        token = match[1]
        if token.startswith('"'):
            text: str = json.loads(token)
            if not is_storable(text):
                shown = shorten(str(name))
                raise self._refusal(f"the value for {shown} has a NUL or an unpaired surrogate")
            return text
        long = _LONG_NUMBER.search(token)
        if long:
            reason = f"a number has more than {_MAX_DIGITS} digits"
            raise self._refusal(reason, match.start() + long.start())
        value: bool | int | float | None = json.loads(token.lower())
        if isinstance(value, float) and not isfinite(value):
            raise self._refusal(f"number out of range: {shorten(token)}")
        return value

    def _take(self, token: re.Pattern[str]) -> re.Match[str] | None:
        """Consume and return the next token if it matches, else return None."""
        match = token.match(self._text, self._position)
        if match:
            self._position = match.end()
        return match

    def _expect(self, token: re.Pattern[str]) -> re.Match[str]:
        match = self._take(token)
        if match is None:
            raise self._malformed()
        return match

    def _finish(self, node: FilterExpression) -> None:
        if self._position < len(self._text):
            raise self._malformed()
        if nesting(node) > MAX_OPERATORS:
            raise self._refusal(f"it nests more than {MAX_OPERATORS} expressions")
        if comparisons(node) > MAX_COMPARISONS:
            raise self._refusal(f"it has more than {MAX_COMPARISONS} comparisons")

    def _malformed(self) -> GatewayError:
        if self._position == len(self._text):
            return self._refusal(f"it ends too soon, after column {len(self._text.rstrip())}")
        return self._refusal("it is malformed", self._position)

    def _refusal(self, reason: str, position: int | None = None) -> GatewayError:
        """Return the error with a reason and, for a position from 0, the column and an excerpt."""
        if position is not None:
            excerpt = self._text[position : position + _EXCERPT]
            reason = f"{reason} at column {position + 1}, {excerpt!r}"
        code = f"invalid{self._what.capitalize()}"
        return invalid(f"cannot accept {self._what}: {reason}", param=self._what, code=code)
