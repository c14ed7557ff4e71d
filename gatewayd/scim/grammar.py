"""The syntax of filters and PATCH paths (RFC 7644 sections 3.4.2.2 and 3.5.2), read with scim2-models.

Nothing imports this module statically: the library takes long to load, and only provisioning needs it.
"""

import re
from collections.abc import Iterable
from typing import Final

from scim2_models import Path as PathText
from scim2_models import SCIMException, ScimFilter
from scim2_models.path import (
    AttrPath,
    FilterNode,
    LogicalExpr,
    LogicalOperator,
    PathNode,
    Present,
    ValuePath,
)
from scim2_models.path import Comparison as Comparing
from scim2_models.path import Not as Negating

from gatewayd.errors import GatewayError, invalid, shortened
from gatewayd.scim.conditions import Operator
from gatewayd.scim.syntax import (
    Comparison,
    Conjunction,
    Disjunction,
    Name,
    Negation,
    Node,
    Path,
    Presence,
    Selection,
)

MAX_TEXT: Final = 8192
MAX_COMPARISONS: Final = 100
MAX_DEPTH: Final = 50
"""How deep parentheses may nest; the library itself refuses more than 32 operators within each other."""

_MAX_DIGITS: Final = 100
_EXCERPT: Final = 20
# A string, closed or not, is passed over whole.
_NOTEWORTHY: Final = re.compile(rf'"(?:[^"\\]|\\.)*"?|[()]|\d{{{_MAX_DIGITS + 1},}}', re.DOTALL)


class Rfc7644Grammar:
    """Implements `syntax.Grammar`. Texts have at most 8192 characters and 100 comparisons."""

    def parse_filter(self, text: str) -> Node:
        """Return what a filter says; invalid_request, code `invalidFilter`, saying where it is malformed."""
        refusal = _Refusal("filter", text)
        _check(text, refusal)
        try:
            tree = ScimFilter(text).ast
        except (SCIMException, ValueError) as error:
            raise refusal.of(error) from error
        node = _node(tree)
        _check_leaves(node, refusal)
        return node

    def parse_path(self, text: str) -> Path:
        """Return what a path says; invalid_request, code `invalidPath`, saying where it is malformed.

        `emails.type eq "work"` means the same as `emails[type eq "work"]` (erratum 7122). The URN of a schema
        alone comes as its last word in the rest of the URN, so that the text of its name is the URN again.
        """
        refusal = _Refusal("path", text)
        _check(text, refusal)
        try:
            tree = PathText(text).ast
        except (SCIMException, ValueError) as error:
            raise refusal.of(error) from error
        if tree is None:
            raise refusal.because("it is empty")
        path = _path(tree)
        if path.inner is not None:
            _check_leaves(path.inner, refusal)
        return path


class _Refusal:
    """The error for one text."""

    def __init__(self, what: str, text: str) -> None:
        self._what = what
        self._text = text

    def because(self, reason: str) -> GatewayError:
        """Return the error with this reason."""
        code = f"invalid{self._what.capitalize()}"
        return invalid(f"cannot accept {self._what}: {reason}", param=self._what, code=code)

    def at(self, position: int, reason: str) -> GatewayError:
        """Return the error with this reason and the place, counted from 0."""
        excerpt = self._text[position : position + _EXCERPT]
        return self.because(f"{reason} at column {position + 1}, {excerpt!r}")

    def of(self, error: Exception) -> GatewayError:
        """Return the error for one of the library's."""
        position = getattr(error.__cause__, "pos_in_stream", None)
        if position is None:
            reason = str(error)[:200].rstrip(".")
            return self.because(f"{reason[:1].lower()}{reason[1:]}")
        if getattr(getattr(error.__cause__, "token", None), "type", None) == "$END":
            return self.because(f"it ends too soon, after column {len(self._text.rstrip())}")
        return self.at(position, "it is malformed")


def _check(text: str, refusal: _Refusal) -> None:
    """Refuse what is not worth parsing: nothing, too much, or nested without sense."""
    if not text.strip():
        raise refusal.because("it is empty")
    if len(text) > MAX_TEXT:
        raise refusal.because(f"it is longer than {MAX_TEXT} characters")
    depth = 0
    for match in _NOTEWORTHY.finditer(text):
        token = match[0]
        if token[0].isdigit():
            raise refusal.at(match.start(), f"a number has more than {_MAX_DIGITS} digits")
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth > MAX_DEPTH:
            raise refusal.at(match.start(), f"it nests deeper than {MAX_DEPTH} parentheses")


def _check_leaves(node: Node, refusal: _Refusal) -> None:
    leaves = list(_leaves(node))
    if len(leaves) > MAX_COMPARISONS:
        raise refusal.because(f"it has more than {MAX_COMPARISONS} comparisons")
    for leaf in leaves:
        if isinstance(leaf, Comparison) and isinstance(leaf.value, str) and not _is_storable(leaf.value):
            raise refusal.because(
                f"the value for {shortened(str(leaf.name))} has a character that no text can have"
            )


def _is_storable(value: str) -> bool:
    """Tell whether a text has neither NUL nor lone surrogates, which databases refuse."""
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value)


def _leaves(node: Node) -> Iterable[Comparison | Presence]:
    match node:
        case Comparison() | Presence():
            yield node
        case Selection() | Negation():
            yield from _leaves(node.inner)
        case Conjunction() | Disjunction():
            for inner in node.nodes:
                yield from _leaves(inner)


def _name(tree: AttrPath) -> Name:
    return Name(tree.attr, tree.sub_attr, tree.uri)


def _node(tree: FilterNode) -> Node:
    match tree:
        case Comparing():
            return Comparison(_name(tree.attr_path), Operator(tree.op.value), tree.value)
        case Present():
            return Presence(_name(tree.attr_path))
        case ValuePath():
            return Selection(_name(tree.attr_path), _node(tree.val_filter))
        case Negating():
            return Negation(_node(tree.expr))
        case LogicalExpr():
            nodes = tuple(_node(term) for term in tree.terms)
            return Conjunction(nodes) if tree.op is LogicalOperator.and_ else Disjunction(nodes)
        case _:
            raise TypeError(f"scim2-models has a new kind of expression, {type(tree).__name__}")


def _path(tree: PathNode) -> Path:
    match tree:
        case AttrPath():
            return Path(_name(tree))
        case ValuePath():
            return Path(_name(tree.attr_path), _node(tree.val_filter), tree.sub_attr)
        case Comparing():
            return _selecting(
                tree.attr_path, Comparison(_part(tree.attr_path), Operator(tree.op), tree.value)
            )
        case Present():
            return _selecting(tree.attr_path, Presence(_part(tree.attr_path)))


def _selecting(tree: AttrPath, inner: Node) -> Path:
    return Path(Name(tree.attr, urn=tree.uri), inner)


def _part(tree: AttrPath) -> Name:
    """Return the part that a comparison without brackets is about."""
    return Name(tree.sub_attr or "value")
