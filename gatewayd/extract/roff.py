"""Lines of roff: which are text, which call a macro with what; conditions and definitions are done with."""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

from gatewayd.extract.roffchars import COMMENT, LONGEST_STRING, STRINGS, unescaped

CONTROL: Final = re.compile(r"[.'][ \t]*([^\s\\\"]*)")
CONDITION: Final = re.compile(
    r"\s*(?:(!)\s*)?(?:([nteov])(?=[\s\\])|([drcmF])\s*\S+|'([^']*)'([^']*)'|\"([^\"]*)\"([^\"]*)\"|(\S+))\s*"
)
NUMBER: Final = re.compile(r"\\n(?:\((..)|\[([^\]\\]*)\]|([+-]?.))")
COMPARISON: Final = re.compile(r"[(]*(-?\d{1,18})(?:([<>=]=?)(-?\d{1,18}))?[)]*")
DEFINITIONS: Final = {"de", "de1", "dei", "am", "am1", "ami", "ig"}
STRING: Final = re.compile(r"\S+[ \t]+(\S+)[ \t]*\"?(.*)")
# Where a page begins anew, whatever conditions were left open.
FRESH: Final = {"SH", "Sh", "Dd", "TH"}
MOST_STRINGS: Final = 1000
END: Final = re.compile(r"[.'][ \t]*(\S+)")
PARAMETER: Final = re.compile(r"\\\$(?:([1-9])|([*@]))")
# How deep macros of a page may call each other, and how many lines all their calls make at most.
DEEPEST: Final = 8
MOST_CONDITIONS: Final = 50
"""On one line, each in the branch of the one before."""

MOST_LINES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Word:
    """An argument as it is written, and whether it was between quotes, where it calls nothing."""

    raw: str
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text (`macro` is "") or the call of a macro or request."""

    macro: str
    words: tuple[Word, ...]
    raw: str


class Roff:
    """A page, line by line; macros of its own are replaced by their lines unless they are `known`."""

    def __init__(self, text: str, known: Container[str] = ()) -> None:
        self._source = iter(_joined(text))
        self._known = known
        self._macros: dict[str, list[str]] = {}
        self._depth = self._made = self._conditions = 0
        self._open: list[bool] = []
        self._otherwise = False
        self.strings = dict(STRINGS)

    def lines(self) -> Iterator[Line]:
        """Yield the lines of the page that is printed on a screen."""
        for raw in self._source:
            yield from self._line(raw)

    def said(self, raw: str) -> str:
        """Return what a text says."""
        return unescaped(raw, self.strings)

    def _line(self, raw: str) -> Iterator[Line]:
        name = _macro(raw)
        if name in FRESH:
            self._open.clear()
        # Within what is left out nothing else is opened.
        if self._open and not self._open[-1]:
            self._open += [False] * raw.count("\\{")
            self._close(raw)
            return
        if name in {"if", "ie", "while"}:
            yield from self._choose(raw, name)
        elif name == "el":
            yield from self._branch(raw[raw.index("el") + 2 :].lstrip(), taken=self._otherwise)
        elif name in DEFINITIONS:
            self._keep(raw, name)
        elif name == "als":
            self._copy(raw.split())
        elif name in {"ds", "as"}:
            self._define(raw, name)
        else:
            yield from self._plain(raw, name)

    def _plain(self, raw: str, name: str | None) -> Iterator[Line]:
        closing = raw.count("\\}") if self._open else 0
        if closing:
            del self._open[-closing:]
            raw = raw.replace("\\}", "")
            name = _macro(raw)
        if name is None:
            yield Line("", (), raw)
        elif name and (found := CONTROL.match(raw)):
            line = Line(name, tuple(words(raw[found.end() :])), raw)
            if name in self._macros:
                yield from self._expand(line)
            else:
                yield line

    def _close(self, raw: str) -> None:
        for _ in range(min(raw.count("\\}"), len(self._open))):
            self._open.pop()

    def _choose(self, raw: str, name: str) -> Iterator[Line]:
        found = CONDITION.match(raw, raw.index(name) + len(name))
        if not found:
            return
        holds = self._holds(found) != bool(found[1])
        self._otherwise = not holds
        yield from self._branch(raw[found.end() :], taken=holds and name != "while")

    def _branch(self, rest: str, *, taken: bool) -> Iterator[Line]:
        if rest.startswith("\\{"):
            self._open.append(taken)
            rest = rest[2:].lstrip()
            if not taken:
                self._open += [False] * rest.count("\\{")
                self._close(rest)
        if taken and rest and self._conditions < MOST_CONDITIONS:
            self._conditions += 1
            yield from self._line(rest)
            self._conditions -= 1

    def _holds(self, found: re.Match[str]) -> bool:
        letter, defined = found[2], found[3]
        if letter:
            return letter in "no"
        if defined:
            return False
        if found[4] is not None:
            return self.said(found[4]) == self.said(found[5])
        if found[6] is not None:
            return self.said(found[6]) == self.said(found[7])
        return _is_true(found[8])

    def _keep(self, raw: str, name: str) -> None:
        """Read the lines of a macro that the page defines, or of a comment."""
        arguments = raw[raw.index(name) + len(name) :].split()
        defined = "" if name == "ig" or not arguments else arguments.pop(0)
        last = arguments[0] if arguments else "."
        lines: list[str] = []
        for line in self._source:
            found = END.match(line)
            if found and found[1] == last:
                break
            lines.append(line.replace("\\\\", "\\"))
        if defined and defined not in self._known and len(self._macros) < MOST_STRINGS:
            self._macros[defined] = lines if name.startswith("de") else self._macros.get(defined, []) + lines

    def _copy(self, names: list[str]) -> None:
        if len(names) > 2 and names[-1] in self._macros and len(self._macros) < MOST_STRINGS:
            self._macros[names[-2]] = self._macros[names[-1]]

    def _expand(self, line: Line) -> Iterator[Line]:
        """Yield the lines of a macro of the page's own, which says nothing where it goes too far."""
        lines = self._macros[line.macro]
        self._made += len(lines) + 1
        if self._depth >= DEEPEST or self._made > MOST_LINES:
            return
        self._depth += 1
        given = [word.raw for word in line.words]
        for raw in lines:
            yield from self._line(PARAMETER.sub(lambda found: _given(given, found), raw))
        self._depth -= 1

    def _define(self, raw: str, name: str) -> None:
        found = STRING.match(raw.lstrip(".' \t"))
        if not found or len(self.strings) >= MOST_STRINGS:
            return
        before = self.strings.get(found[1], "") if name == "as" else ""
        self.strings[found[1]] = (before + self.said(found[2]))[:LONGEST_STRING]


def words(raw: str) -> Iterator[Word]:
    """Yield the arguments of a macro."""
    place = 0
    while place < len(raw):
        if raw[place] in " \t":
            place += 1
        elif raw[place] == '"':
            end = _end_of_quotes(raw, place + 1)
            yield Word(raw[place + 1 : end].replace('""', '"'), is_quoted=True)
            place = end + 1
        else:
            end = place
            while end < len(raw) and raw[end] not in " \t":
                end += 2 if raw[end] == "\\" else 1
            yield Word(raw[place:end])
            place = end


def _given(given: list[str], found: re.Match[str]) -> str:
    """Return the arguments that stand for a parameter of a macro."""
    if found[2]:
        return " ".join(given)
    number = int(found[1])
    return given[number - 1] if number <= len(given) else ""


def _end_of_quotes(raw: str, place: int) -> int:
    while (found := raw.find('"', place)) >= 0:
        if raw[found + 1 : found + 2] != '"':
            return found
        place = found + 2
    return len(raw)


def _joined(text: str) -> Iterator[str]:
    """Yield the lines without comments; one that ends in a backslash goes on in the next."""
    whole = ""
    for line in text.split("\n"):
        line = COMMENT.sub(r"\1", line) if "\\" in line else line
        if line.lstrip(".' \t") == "" and line:
            # A comment, or the end of a definition.
            line = line.strip()
        if (len(line) - len(line.rstrip("\\"))) % 2:
            whole += line[:-1]
            continue
        yield whole + line
        whole = ""
    if whole:
        yield whole


def _macro(raw: str) -> str | None:
    """Return the name of a macro that a line calls, "" for none, None when it is text."""
    found = CONTROL.match(raw)
    return found[1] if found else None


def _is_true(expression: str) -> bool:
    """Whether a number or a comparison holds, where only the register that GNU sets is known to be set."""
    said = NUMBER.sub(lambda found: "1" if (found[1] or found[2] or found[3]) == ".g" else "0", expression)
    found = COMPARISON.fullmatch(said)
    if not found:
        return False
    left, right = int(found[1]), int(found[3] or 0)
    outcomes = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return outcomes.get(found[2], left == right) if found[2] else left > 0
