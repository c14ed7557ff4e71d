"""The tool calls of an OpenAI answer, put together from pieces as providers send them; pure.

Pieces find their call by `id`, by `index`, or by their place; what is known of providers that get these wrong
is decided in `Calls` and nowhere else.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from gatewayd.catalog.replies import Body
from gatewayd.completions.foreign import mapping, text
from gatewayd.completions.json_end import JsonEnd

INVALID_INPUT: Final = "INVALID_JSON"
"""The only key of the `input` of a whole answer's tool call whose arguments are not a JSON object."""

MAX_DEPTH: Final = 200
"""Levels of arguments that are certainly written again."""

_HELD: Final = frozenset({"", "{", "{}", "null"})
"""Arguments that say nothing: some providers put them before those that count."""

_HELD_PIECES: Final = 8
"""In more pieces than these nobody says nothing."""

_LONGER: Final = 8
"""How many times longer the same JSON can be written."""


class Call:
    """One tool call; `id` is the provider's, empty while it gave none."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self._pieces: list[str] = []
        self._sent = 0
        self._size = 0
        self._end = JsonEnd()

    @property
    def arguments(self) -> str:
        """Everything said so far."""
        return "".join(self._pieces)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are a closed object, be it an empty one."""
        return self._end.is_whole

    @property
    def is_held(self) -> bool:
        """Whether the arguments so far may be no more than a place for those to come."""
        return len(self._pieces) <= _HELD_PIECES and self.arguments.strip() in _HELD

    @property
    def is_ended(self) -> bool:
        """Whether nothing more is expected."""
        return self.is_whole and not self.is_held

    def add(self, name: str, arguments: str) -> None:
        """Add a piece; a name repeated, growing or split and arguments sent twice count once."""
        if name and not self.name:
            self.name = name
        elif name != self.name and not self._pieces:
            self.name = name if name.startswith(self.name) else self.name + name
        if not arguments or (self.is_whole and (not arguments.strip() or self.says(arguments))):
            return
        if self.is_whole and self.is_held and arguments.lstrip().startswith("{"):
            self._pieces, self._size, self._end = [], 0, JsonEnd()
        self._pieces.append(arguments)
        self._size += len(arguments)
        self._end.feed(arguments)

    def says(self, arguments: str) -> bool:
        """Whether the arguments so far say just this, be it written in another way.

        What is far shorter cannot: so a comparison costs no more than the piece deserves.
        """
        if len(arguments) * _LONGER < self._size or not arguments.rstrip().endswith("}"):
            return False
        return arguments == self.arguments or _parsed(arguments) == _parsed(self.arguments) is not None

    def take(self) -> str:
        """Return the arguments not yet taken; none for those that say nothing at all."""
        if not self._sent and self.is_held and self.arguments.strip() in ("", "null"):
            return ""
        new = "".join(self._pieces[self._sent :])
        self._sent = len(self._pieces)
        return new

    def input(self) -> Body:
        """Return the arguments as an object; what is none is kept as text under `INVALID_INPUT`."""
        said = self.arguments
        if said.strip() in _HELD:
            return {}
        parsed = _parsed(said)
        return {INVALID_INPUT: said} if parsed is None else parsed


class Calls:
    """The calls of one answer."""

    def __init__(self) -> None:
        self._by_id: dict[str, Call] = {}
        self._by_index: dict[int, Call] = {}
        self._last: Call | None = None

    def add(self, entry: Mapping[str, Any], place: int) -> Call | None:
        """Add one element of a delta's `tool_calls`; returns the call if it is a new one.

        `place` is where the element stands in its list, which counts for providers that give no index.
        """
        function = mapping(entry.get("function")) or entry
        name, arguments = text(function.get("name")), _arguments(function.get("arguments"))
        call_id, index = text(entry.get("id")), entry.get("index")
        if not (name or arguments or call_id):
            return None
        known = self._find(entry, place, name, arguments)
        call = known or Call(index if isinstance(index, int) else place)
        before = self._by_index.get(call.index)
        if known is None and before is not None:
            # More arguments for a call that is complete: it is called again.
            name = name or before.name
        self._by_index[call.index] = self._last = call
        if call_id:
            call.id = call.id or call_id
            self._by_id.setdefault(call_id, call)
        call.add(name, arguments)
        return call if known is None else None

    def _find(self, entry: Mapping[str, Any], place: int, name: str, arguments: str) -> Call | None:
        call_id, index = text(entry.get("id")), entry.get("index")
        has_index = isinstance(index, int)
        named = self._by_id.get(call_id)
        if named is not None and not (has_index and index != named.index and name):
            return named
        call = self._by_index.get(index if has_index and isinstance(index, int) else place)
        if call is None and not (has_index or call_id or name):
            call = self._last
        if call is None or _is_other(call, call_id, name, arguments, has_index=has_index):
            return None
        return call


def _is_other(call: Call, call_id: str, name: str, arguments: str, *, has_index: bool) -> bool:
    """Tell whether a piece at the place of `call` begins another one.

    An index used again with another id does, unless the piece has no name and `call` waits for more: some
    providers make up an id for each piece. Without an id, a piece with arguments begins another call when
    those of `call` are complete.
    """
    if call_id and call.id and call_id != call.id:
        return bool(name) or not has_index or call.is_whole
    is_same = name == call.name or not (name and call.name)
    if not is_same:
        return call.is_whole or not has_index
    if not call.is_whole or call.is_held or not arguments.lstrip().startswith("{"):
        return False
    return not call.says(arguments)


def _parsed(arguments: str) -> Body | None:
    """Return the object that arguments are, None when they are none or nest too deep to be written again."""
    if arguments.count("{") + arguments.count("[") > MAX_DEPTH:
        return None
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _arguments(value: object) -> str:
    """Return arguments as text; some providers send the object itself."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()
