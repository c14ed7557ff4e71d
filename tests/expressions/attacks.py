"""Texts on which a search may take the square of their length, and how long it really takes.

A search begins at every character. It is slow when one word leads both from the beginning of the expression
into a repeat and from the repeat to itself: of such a word, written again and again, every begin reads all
the rest. These words are found in the graph of the expression, without look-around and possessive repeats;
the search itself tells then whether one of them is an attack.
"""

import re
import signal
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from re import _constants as codes  # type: ignore[attr-defined]
from types import FrameType
from typing import Any

from tests.expressions.javascript import parsed

LENGTH = 100_000
SECONDS = 0.4
"""Of processor time; a search that is linear takes some milliseconds, one that is not takes many seconds."""

SMALL = 3
"""Of a repeat with a bound, so many are looked at."""

LARGE = 256
"""A bound over this one is taken for none: how long a search takes is measured then."""

BEGIN = -1
PREFIXES = ("", "a")
"""An expression may have a branch for the beginning of a text alone, which reads all of the words there."""

SUFFIXES = ("", "\x00", "\n", "!", "a")
SOME = '\x00\t\n !"#-./0<>@A_aé\u4e00'


@dataclass
class Graph:
    """The characters of an expression by number, which may follow which, and which may come first.

    Each character is a list of codes as the parser of Python has them.
    """

    sets: list[list[Any]] = field(default_factory=list)
    follow: dict[int, set[int]] = field(default_factory=dict)

    def add(self, items: list[Any]) -> "Part":
        """Take one character."""
        self.sets.append(items)
        place = len(self.sets) - 1
        self.follow[place] = set()
        return Part({place}, {place}, is_empty=False)

    def join(self, one: "Part", other: "Part") -> "Part":
        """Let one part follow another."""
        for place in one.last:
            self.follow[place] |= other.first
        first = one.first | (other.first if one.is_empty else set())
        last = other.last | (one.last if other.is_empty else set())
        return Part(first, last, is_empty=one.is_empty and other.is_empty)


@dataclass(frozen=True)
class Part:
    """A part of a graph: where it begins and ends, and whether it may be nothing."""

    first: set[int]
    last: set[int]
    is_empty: bool


NOTHING = Part(set(), set(), is_empty=True)


class _Builder:
    def __init__(self) -> None:
        self.graph = Graph()

    def sequence(self, items: Any) -> Part:
        part = NOTHING
        for code, value in items:
            part = self.graph.join(part, self._item(code, value))
        return part

    def _item(self, code: Any, value: Any) -> Part:
        if code is codes.BRANCH:
            parts = [self.sequence(each) for each in value[1]]
        elif code is codes.GROUPREF_EXISTS:
            parts = [self.sequence(each or []) for each in value[1:]]
        elif code is codes.SUBPATTERN:
            return self.sequence(value[3])
        elif code is codes.ATOMIC_GROUP:
            return self.sequence(value)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            return self._repeat(*value)
        elif code in (codes.ASSERT, codes.ASSERT_NOT) and value[0] > 0:
            # What looks ahead reads, and leads nowhere.
            return Part(self.sequence(value[1]).first, set(), is_empty=True)
        elif code in (codes.ASSERT, codes.ASSERT_NOT, codes.AT, codes.GROUPREF):
            return NOTHING
        else:
            return self.graph.add(value if code is codes.IN else [(code, value)])
        first = set().union(*(part.first for part in parts))
        last = set().union(*(part.last for part in parts))
        return Part(first, last, is_empty=any(part.is_empty for part in parts))

    def _repeat(self, least: int, most: int, inner: Any) -> Part:
        part = NOTHING
        for _ in range(min(least, SMALL)):
            part = self.graph.join(part, self.sequence(inner))
        if most is codes.MAXREPEAT or most > LARGE:
            looped = self.sequence(inner)
            for place in looped.last:
                self.graph.follow[place] |= looped.first
            return self.graph.join(part, Part(looped.first, looped.last, is_empty=True))
        for _ in range(min(most - least, SMALL)):
            more = self.sequence(inner)
            part = self.graph.join(part, Part(more.first, more.last, is_empty=True))
        return part


def words(pattern: str | bytes, flags: int) -> set[str]:
    """Return the words that lead from the beginning into a repeat, and from there to itself."""
    tree = parsed(pattern, flags)
    builder = _Builder()
    builder.graph.follow[BEGIN] = builder.sequence(tree).first
    graph = builder.graph
    letters = _letters(graph, tree.state.flags)
    found: set[str] = set()
    for place in range(len(graph.sets)):
        if _reaches(graph, place):
            found |= set(_words(graph, letters, place))
    return found


def _reaches(graph: Graph, place: int) -> bool:
    seen: set[int] = set()
    waiting = [place]
    while waiting:
        for other in graph.follow[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return place in seen


def _words(graph: Graph, letters: dict[str, set[int]], place: int) -> Iterator[str]:
    """Yield the shortest word for each letter that it begins with."""
    goal = (place, place)
    for first in letters:
        seen: set[tuple[int, int]] = set()
        waiting = deque([((BEGIN, place), "")])
        while waiting:
            (one, other), word = waiting.popleft()
            for letter in letters if word else (first,):
                fitting = letters[letter]
                for pair in _pairs(graph.follow[one] & fitting, graph.follow[other] & fitting):
                    if pair == goal:
                        yield word + letter
                        waiting.clear()
                        break
                    if pair not in seen:
                        seen.add(pair)
                        waiting.append((pair, word + letter))
                else:
                    continue
                break


def _pairs(some: set[int], others: set[int]) -> Iterator[tuple[int, int]]:
    for one in some:
        for other in others:
            yield one, other


def _letters(graph: Graph, flags: int) -> dict[str, set[int]]:
    """Return letters that differ in what they fit, each with the places that it fits."""
    tried = set(SOME)
    for items in graph.sets:
        for code, value in items:
            if code in (codes.LITERAL, codes.NOT_LITERAL):
                tried.add(chr(value))
            elif code is codes.RANGE:
                tried |= {chr(value[0]), chr(value[1])}
    found: dict[tuple[bool, bool, frozenset[int]], str] = {}
    for letter in sorted(tried):
        fitting = frozenset(place for place, items in enumerate(graph.sets) if _fits(letter, items, flags))
        # Look-around, which is not in the graph, knows words and ends of lines.
        found.setdefault((letter == "\n", letter.isalnum(), fitting), letter)
    return {letter: set(fitting) for (*_, fitting), letter in found.items()}


def _fits(letter: str, items: list[Any], flags: int) -> bool:
    is_negated = items[0][0] is codes.NEGATE
    cases = {letter, letter.lower(), letter.upper()} if flags & re.IGNORECASE else {letter}
    numbers = [ord(one) for one in cases if len(one) == 1]
    return any(_is_member(number, *item, flags) for number in numbers for item in items) != is_negated


def _is_member(number: int, code: Any, value: Any, flags: int) -> bool:
    if code is codes.LITERAL:
        return bool(number == value)
    if code is codes.NOT_LITERAL:
        return bool(number != value)
    if code is codes.RANGE:
        return bool(value[0] <= number <= value[1])
    if code is codes.ANY:
        return bool(flags & re.DOTALL) or number != 10
    if code is codes.CATEGORY:
        kind = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[str(value).rpartition("_")[2]]
        has = re.match(kind, chr(number), flags & re.ASCII) is not None
        return has != ("NOT" in str(value))
    return False


class _TooLongError(Exception):
    pass


def _interrupt(_: int, __: FrameType | None) -> None:
    raise _TooLongError


def takes_long(work: Callable[[], object], seconds: float = SECONDS) -> bool:
    """Tell whether something takes more than so much processor time; it is interrupted then."""
    before = signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        work()
    except _TooLongError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return False


def attacked(pattern: str | bytes, flags: int, *, tried: set[str] | None = None) -> str | None:
    """Return a word that makes a search take long, None without one."""
    compiled: re.Pattern[Any] = re.compile(pattern, flags)
    for word in sorted(words(pattern, flags) if tried is None else tried):
        for prefix, suffix in product(PREFIXES, SUFFIXES):
            text: Any = prefix + word * (LENGTH // len(word)) + suffix
            if isinstance(pattern, bytes):
                text = text.encode("latin-1", "replace")
            if takes_long(lambda text=text: [None for _ in compiled.finditer(text)]):
                return word
    return None
