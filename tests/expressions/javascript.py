"""Writes expressions of Python as those of JavaScript, as far as they can take long."""

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LAST = 0x7F
"""Characters beyond this one are written as it: one of them does what any of them does, and costs less."""

SMALL = 3
"""Of a repeat with a bound that stands alone, so many."""

SINGLE = frozenset({codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.CATEGORY})
MEMBERS = {
    "WORD": r"\w",
    "SPACE": r" \t\n\r\f\v",
    "DIGIT": r"\d",
    "NOT_WORD": r"\W",
    "NOT_SPACE": r"\x00-\x08\x0e-\x1f\x21-\uffff",
    "NOT_DIGIT": r"\D",
}


class Translator:
    """Writes one expression, to be matched where a text begins.

    What JavaScript has not, atomic groups and possessive repeats, is written as what gives back; `is_weaker`
    tells that it was so, and that a finding may be none. Repeats with a bound that stand alone are written
    with a small one, those within another repeat without any.
    """

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._tree = parsed(pattern, flags)
        self._flags = self._tree.state.flags
        self._ignores_case = bool(self._flags & re.IGNORECASE)
        self._depth = 0
        self.is_weaker = False

    def written(self) -> list[tuple[str, str]]:
        """Return sources with their flags: of alternatives, which are tried one after the other, one each."""
        sources = [self._sequence(items) for items in _alternatives(list(self._tree))]
        return [(f"^(?:{source})", "si" if self._ignores_case else "s") for source in sources]

    def _sequence(self, items: Any) -> str:
        return "".join(self._item(code, value) for code, value in items)

    def _item(self, code: Any, value: Any) -> str:
        written: str = getattr(self, f"_{str(code).lower()}")(value)
        return written

    def _literal(self, value: int) -> str:
        character = chr(min(value, LAST))
        return character if character.isalnum() else f"\\x{ord(character):02x}"

    def _not_literal(self, value: int) -> str:
        return f"[^{self._literal(value)}]"

    def _any(self, _: None) -> str:
        return "[^]" if self._flags & re.DOTALL else r"[^\n]"

    def _in(self, items: Any) -> str:
        is_negated = items[0][0] is codes.NEGATE
        inner = "".join(self._member(*item) for item in items[is_negated:])
        return f"[{'^' if is_negated else ''}{inner}]"

    def _member(self, code: Any, value: Any) -> str:
        if code is codes.LITERAL:
            return self._literal(value)
        if code is codes.RANGE:
            return f"{self._literal(value[0])}-{self._literal(value[1])}"
        return MEMBERS[str(value).removeprefix("CATEGORY_")]

    def _category(self, value: Any) -> str:
        return f"[{self._member(codes.CATEGORY, value)}]"

    def _branch(self, value: Any) -> str:
        return f"(?:{'|'.join(self._sequence(each) for each in value[1])})"

    def _subpattern(self, value: Any) -> str:
        group, added, _, inner = value
        # A part that ignores case makes the whole do so: it accepts more, and tries no less.
        self._ignores_case = self._ignores_case or bool(added & re.IGNORECASE)
        return f"({'?:' if group is None else ''}{self._sequence(inner)})"

    def _repeat(self, value: Any, ending: str = "") -> str:
        least, most, inner = value
        is_long = most is not codes.MAXREPEAT and most > SMALL
        is_single = len(inner) == 1 and inner[0][0] in SINGLE
        bound = most
        if most is codes.MAXREPEAT or (is_long and (self._depth or not is_single)):
            bound = ""
        elif is_long:
            bound = SMALL
        self._depth += most is codes.MAXREPEAT or most > 1
        written = self._sequence(inner)
        self._depth -= most is codes.MAXREPEAT or most > 1
        return f"(?:{written}){{{min(least, SMALL)},{bound}}}{ending}"

    def _max_repeat(self, value: Any) -> str:
        return self._repeat(value)

    def _min_repeat(self, value: Any) -> str:
        return self._repeat(value, "?")

    def _possessive_repeat(self, value: Any) -> str:
        self.is_weaker = True
        return self._repeat(value)

    def _atomic_group(self, value: Any) -> str:
        self.is_weaker = True
        return f"(?:{self._sequence(value)})"

    def _assert(self, value: Any) -> str:
        direction, inner = value
        return f"(?{'=' if direction > 0 else '<='}{self._sequence(inner)})"

    def _assert_not(self, value: Any) -> str:
        direction, inner = value
        return f"(?{'!' if direction > 0 else '<!'}{self._sequence(inner)})"

    def _groupref(self, value: int) -> str:
        return f"\\{value}"

    def _at(self, value: Any) -> str:
        is_multiline = bool(self._flags & re.MULTILINE)
        match str(value):
            case "AT_BEGINNING" if is_multiline:
                return r"(?<![^\n])"
            case "AT_END" if is_multiline:
                return r"(?![^\n])"
            case "AT_BEGINNING" | "AT_BEGINNING_STRING":
                # It is where the text begins already.
                return ""
            case "AT_END" | "AT_END_STRING":
                return "$"
            case "AT_BOUNDARY":
                return r"\b"
            case "AT_NON_BOUNDARY":
                return r"\B"
        raise AssertionError(f"an anchor that is not known: {value}")


def _alternatives(items: list[Any]) -> list[list[Any]]:
    """Return an expression once for each alternative of the first choice in it that is not repeated."""
    for place, (code, value) in enumerate(items):
        inner = list(value[3]) if code is codes.SUBPATTERN else [(code, value)]
        if len(inner) == 1 and inner[0][0] is codes.BRANCH:
            return [[*items[:place], *branch, *items[place + 1 :]] for branch in inner[0][1][1]]
    return [items]


def parsed(pattern: str | bytes, flags: int) -> Any:
    """Return the syntax tree of an expression."""
    return _parser.parse(pattern if isinstance(pattern, str) else pattern.decode("latin-1"), flags)
