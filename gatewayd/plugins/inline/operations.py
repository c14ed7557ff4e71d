"""Operations of translated methods on JSON values, each with a bounded time.

Values have exactly the types of JSON, so no code of the plugin runs. Only plain values and new objects of
plain values are stored, so that a value remains a tree whose growth the step limit bounds.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from gatewayd.plugins.runtime.static_attributes import MISSING, find_shared, storage_of

MAX_INTEGER: Final = 2**63
MAX_TEXT_CHARACTERS: Final = 65_536
"""Longer texts, and larger integers than MAX_INTEGER, are handled in the thread of the plugin."""

MAX_ATTRIBUTES: Final = 100
"""Maximum number of attributes of an instance or its valves."""

CHARACTERS_PER_STEP: Final = 64
"""Characters read or written in one step."""

OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
}

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}

TEXT_METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    name: getattr(str, name)
    for name in (
        "count",
        "endswith",
        "find",
        "lower",
        "lstrip",
        "replace",
        "rstrip",
        "startswith",
        "strip",
        "upper",
    )
}
METHODS: Final = frozenset({*TEXT_METHODS, "get"})
BUILTINS: Final = frozenset({"bool", "len", "str"})
TYPES: Final = {one.__name__: one for one in (bool, dict, float, int, list, str)}

_SETTERS: Final = (object.__setattr__, BaseModel.__setattr__)
_ADDED: Final = object()
_NUMBERS: Final = frozenset({bool, float, int})
_PLAIN: Final = _NUMBERS | {str, type(None)}


class InlineAbortError(RuntimeError):
    """The run is aborted: the method must run in the thread of its plugin."""


class AttributeStorage:
    """Access to the attributes stored in instances of one class, without running code of the class.

    `names` are the attributes that will be read. The class is examined here, in the thread of its plugin.
    """

    def __init__(self, cls: type, names: Iterable[str]) -> None:
        self._cls = cls
        setter = find_shared(cls, "__setattr__")
        is_plain = find_shared(cls, "__getattribute__") is object.__getattribute__ and setter in _SETTERS
        self.takes_all = setter is object.__setattr__
        """Whether attributes can be set freely; pydantic models validate them."""
        shared = {name: find_shared(cls, name) for name in names}
        self._names = {name for name, one in shared.items() if one is MISSING or type(one) in _PLAIN}
        self._get = storage_of(cls) if is_plain else None

    def check(self, name: str) -> None:
        """Raise InlineAbortError for a name that the class computes."""
        if name not in self._names:
            raise InlineAbortError

    def find(self, instance: Any) -> dict[str, Any]:
        """Return the attribute dict of an instance, for writing."""
        if type(instance) is not self._cls or self._get is None:
            raise InlineAbortError
        found = self._get(instance)
        if type(found) is not dict or len(found) > MAX_ATTRIBUTES:
            raise InlineAbortError
        return found

    def read(self, instance: Any) -> dict[str, Any]:
        """Return a copy of the attributes, whose names are all exactly of type str."""
        found = self.find(instance).copy()
        if any(type(name) is not str for name in found):
            raise InlineAbortError
        return found


class InlineOperations:
    """The operations of one method, and the state of its run.

    Attributes set on the instance are buffered until the end of the run. `attributes` and `valves` read the
    instance and its valves; `shadowed` are the built-in names that the module redefines.
    """

    def __init__(
        self,
        instance: Any,
        attributes: AttributeStorage,
        valves: AttributeStorage | None,
        shadowed: frozenset[str],
        nodes: int,
    ) -> None:
        self._instance = instance
        self._attributes = attributes
        self._valves = valves
        self._shadowed = shadowed
        self._nodes = nodes
        self._most = self._steps = 0
        self._attributes_read: dict[str, Any] | None = None
        self._set: dict[str, Any] = {}
        self.fresh_valves: Any = None
        """Valves that code of the plugin cannot change; None to read the valves of the instance."""
        self._undo: list[tuple[Any, Any, Any]] = []
        self.has_stored = False
        """Whether the run has changed its value."""

    def begin(self, steps: int, characters: int = 0) -> None:
        """Start a run of at most `steps` steps; `characters` is the length of the JSON of its value."""
        self.end()
        self.has_stored = False
        self._most = self._steps = steps
        self._count_steps(self._nodes)
        self._count_characters(characters)

    @property
    def paid(self) -> int:
        """Number of steps of the run."""
        return self._most - self._steps

    def commit(self) -> None:
        """Write the buffered attributes to the instance."""
        if self._set:
            self._attributes.find(self._instance).update(self._set)

    def undo(self) -> None:
        """Revert the changes of the value."""
        while self._undo:
            holder, key, before = self._undo.pop()
            if before is MISSING or before is _ADDED:
                del holder[key]
            else:
                holder[key] = before

    def end(self) -> None:
        """Clear the state of the run."""
        self._set = {}
        self._undo = []
        self._attributes_read = None

    def leave(self) -> None:
        """Abort the run."""
        raise InlineAbortError

    def each(self, value: Any) -> Iterator[Any]:
        """Iterate over a list; abort when its length changes."""
        if type(value) is not list:
            raise InlineAbortError
        self._count_steps(1 + len(value) * self._nodes)
        return _elements(value)

    def binary(self, name: str, left: Any, right: Any) -> Any:
        """Concatenate two texts, or compute with two numbers."""
        if type(left) is str and type(right) is str and name == "Add":
            self._count_characters(len(left) + len(right))
            return self._bounded(left + right)
        if type(left) not in _NUMBERS or type(right) not in _NUMBERS:
            raise InlineAbortError
        self._count_steps(1)
        return self._bounded(OPERATORS[name](left, right))

    def compare(self, name: str, left: Any, right: Any) -> bool:
        """Compare two plain values."""
        if type(left) not in _PLAIN or type(right) not in _PLAIN:
            raise InlineAbortError
        self._count_characters(len(left) if type(left) is str else 1)
        return COMPARISONS[name](left, right)

    def has(self, one: Any, holder: Any) -> bool:
        """Whether a text contains a text, or an object has a key."""
        if type(one) not in _PLAIN:
            raise InlineAbortError
        if type(holder) is dict:
            self._count_characters(len(one) if type(one) is str else 1)
        elif type(holder) is str and type(one) is str:
            self._count_characters(len(holder) * len(one))
        else:
            raise InlineAbortError
        return one in holder

    def item(self, holder: Any, key: Any) -> Any:
        """Return a member of an object, an element of a list or a character of a text."""
        self._count_characters(len(key) if type(key) is str else 1)
        if (type(holder) is dict and type(key) is str) or (type(holder) in (list, str) and type(key) is int):
            return holder[key]
        raise InlineAbortError

    def part(self, text: Any, lower: Any, upper: Any) -> str:
        """Return a part of a text."""
        if type(text) is not str or {type(lower), type(upper)} - {int, type(None)}:
            raise InlineAbortError
        self._count_characters(len(text))
        return text[lower:upper]

    def store(self, value: Any, holder: Any, key: Any) -> None:
        """Set a member of an object or an element of a list to a plain value."""
        self._count_characters(sum(len(one) for one in (key, value) if type(one) is str))
        if type(value) not in _PLAIN:
            raise InlineAbortError
        is_member = type(holder) is dict and type(key) is str
        is_element = type(holder) is list and type(key) is int
        if not (is_member or is_element):
            raise InlineAbortError
        self.has_stored = True
        self._undo.append((holder, key, holder.get(key, MISSING) if is_member else holder[key]))
        holder[key] = value

    def add(self, holder: Any, place: Any, *members: Any) -> None:
        """Insert a new object into a list, at its end for `...`; `members` alternate names and plain values.

        Nothing else refers to the object, so that the value remains a tree.
        """
        if type(holder) is not list or (place is not ... and type(place) is not int):
            raise InlineAbortError
        if any(type(one) not in _PLAIN for one in members):
            raise InlineAbortError
        self._count_characters(len(holder) + sum(len(one) if type(one) is str else 1 for one in members))
        count = len(holder)
        place = count if place is ... else min(max(place + count, 0) if place < 0 else place, count)
        self.has_stored = True
        self._undo.append((holder, place, _ADDED))
        holder.insert(place, dict(zip(members[::2], members[1::2], strict=True)))

    def update(self, name: str, holder: Any, key: Any, value: Any) -> None:
        """Set a member or element to the result of an operation on it and another value."""
        self.store(self.binary(name, self.item(holder, key), value), holder, key)

    def method(self, name: str, holder: Any, *arguments: Any) -> Any:
        """Call a method of a text or an object."""
        if type(holder) is dict and name == "get" and 1 <= len(arguments) <= 2:
            if type(arguments[0]) is str:
                self._count_characters(len(arguments[0]))
                return holder.get(*arguments)
        elif type(holder) is str and name in TEXT_METHODS and all(type(one) is str for one in arguments):
            length = len(holder) * (1 + sum(map(len, arguments)))
            if name == "replace" and length > MAX_TEXT_CHARACTERS:
                raise InlineAbortError
            self._count_characters(length)
            return self._bounded(TEXT_METHODS[name](holder, *arguments))
        raise InlineAbortError

    def builtin(self, name: str, value: Any) -> Any:
        """Call a built-in function."""
        self._count_steps(1)
        if name in self._shadowed:
            raise InlineAbortError
        if name == "bool":
            return bool(value)
        if name == "len" and type(value) in (dict, list, str):
            return len(value)
        if name == "str" and type(value) in _PLAIN:
            return str(value)
        raise InlineAbortError

    def is_a(self, value: Any, name: str) -> bool:
        """Whether a value is an instance of a built-in type."""
        self._count_steps(1)
        if name in self._shadowed or "isinstance" in self._shadowed or name not in TYPES:
            raise InlineAbortError
        return isinstance(value, TYPES[name])

    def joined(self, *pieces: Any) -> str:
        """Return the texts of plain values, joined."""
        if any(type(one) not in _PLAIN for one in pieces):
            raise InlineAbortError
        texts = [one if type(one) is str else str(one) for one in pieces]
        length = sum(map(len, texts))
        self._count_characters(length)
        if length > MAX_TEXT_CHARACTERS:
            raise InlineAbortError
        return "".join(texts)

    def own(self, name: str) -> Any:
        """Return a plain attribute of the instance."""
        if name in self._set:
            self._count_steps(1)
            return self._set[name]
        self._attributes.check(name)
        return self._plain(self._stored().get(name, MISSING))

    def valve(self, name: str) -> Any:
        """Return a plain valve."""
        if self._valves is None:
            raise InlineAbortError
        self._attributes.check("valves")
        self._valves.check(name)
        own = self._stored().get("valves")
        stored = self._valves.read(own if self.fresh_valves is None or own is None else self.fresh_valves)
        self._count_steps(len(stored))
        return self._plain(stored.get(name, MISSING))

    def set_own(self, name: str, value: Any) -> None:
        """Set an attribute of the instance to a plain value."""
        if not self._attributes.takes_all or name == "valves":
            raise InlineAbortError
        self._attributes.check(name)
        self._stored()
        self._set[name] = self._plain(value)

    def _stored(self) -> dict[str, Any]:
        """Return the attributes of the instance at the start of the run."""
        if self._attributes_read is None:
            self._attributes_read = self._attributes.read(self._instance)
            self._count_steps(len(self._attributes_read))
        return self._attributes_read

    def _plain(self, value: Any) -> Any:
        self._count_steps(1)
        if type(value) not in _PLAIN:
            raise InlineAbortError
        return self._bounded(value)

    def _bounded(self, value: Any) -> Any:
        if type(value) is int and abs(value) >= MAX_INTEGER:
            raise InlineAbortError
        if type(value) is str and len(value) > MAX_TEXT_CHARACTERS:
            raise InlineAbortError
        return value

    def _count_characters(self, characters: int) -> None:
        self._count_steps(1 + characters // CHARACTERS_PER_STEP)

    def _count_steps(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise InlineAbortError


def _elements(value: list[Any]) -> Iterator[Any]:
    count = len(value)
    for place in range(count):
        yield value[place]
        if len(value) != count:
            raise InlineAbortError
