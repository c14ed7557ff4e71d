"""The parser of filters (RFC 7644, 3.4.2.2) and of PATCH paths (RFC 7644, 3.5.2)."""

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

MAX_TEXT_CHARACTERS: Final = 8192
MAX_COMPARISONS: Final = 100
MAX_DEPTH: Final = 50
"""How deep parentheses may nest, which bounds the recursion of the parser."""
MAX_OPERATORS: Final = 32
"""How deep `and`, `or`, `not` and value selections may nest, which bounds the recursion over nodes."""

_MAX_DIGITS: Final = 100
_EXCERPT: Final = 20


def _token(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose first group is the token; blanks after it are passed over."""
    return re.compile(rf"({pattern})[ \t\f\r\n]*", re.ASCII)


def _word(words: str) -> str:
    """Return the pattern of keywords, in any case; `never` does not start with `ne`."""
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
    """Return what a filter says; invalid_request, code `invalidFilter`, saying where it is malformed.

    `emails[type eq "work"].value eq "x"`, which Entra ID sends, means the same as
    `emails[type eq "work" and value eq "x"]`.
    """
    return _Parser("filter", text).filter()


def parse_path(text: str) -> PatchPath:
    """Return what a path says; invalid_request, code `invalidPath`, saying where it is malformed.

    `emails.type eq "work"` means the same as `emails[type eq "work"]` (erratum 7122). The URN of a schema
    alone comes as its last word in the rest of the URN, so that the text of its name is the URN again.
    """
    return _Parser("path", text).path()


class _Parser:
    """Reads one text by recursive descent, from left to right and never back."""

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
        """Read on after the opening bracket."""
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
        """Return a value, which JSON defines (RFC 7644, 3.4.2.2)."""
        match = self._expect(_LITERAL)
        token = match[1]
        if token.startswith('"'):
            text: str = json.loads(token)
            if not _is_storable(text):
                shown = shorten(str(name))
                raise self._refusal(f"the value for {shown} has a character that no text can have")
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
        """Read on after a token, if it comes next."""
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
            raise self._refusal(f"the {self._what} nests more than {MAX_OPERATORS} expressions")
        if comparisons(node) > MAX_COMPARISONS:
            raise self._refusal(f"it has more than {MAX_COMPARISONS} comparisons")

    def _malformed(self) -> GatewayError:
        if self._position == len(self._text):
            return self._refusal(f"it ends too soon, after column {len(self._text.rstrip())}")
        return self._refusal("it is malformed", self._position)

    def _refusal(self, reason: str, position: int | None = None) -> GatewayError:
        """Return the error with a reason and the place, counted from 0."""
        if position is not None:
            excerpt = self._text[position : position + _EXCERPT]
            reason = f"{reason} at column {position + 1}, {excerpt!r}"
        code = f"invalid{self._what.capitalize()}"
        return invalid(f"cannot accept {self._what}: {reason}", param=self._what, code=code)


def _is_storable(text: str) -> bool:
    """Tell whether a text has neither NUL nor lone surrogates, which databases refuse."""
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text)
