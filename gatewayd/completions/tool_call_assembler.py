"""Assembles tool calls from streamed pieces; pure.

All workarounds for wrong ids and indices of providers live in `ToolCallAssembler`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from gatewayd import ids
from gatewayd.completions.embedded_json import count_marks, has_too_many_values, nests_too_deep
from gatewayd.completions.json_access import MAX_COUNT, as_mapping, as_sequence, as_text
from gatewayd.completions.json_end import JsonEndFinder
from gatewayd.completions.limits import (
    MAX_ARGUMENT_CHARACTERS,
    MAX_ARGUMENT_MARKS,
    MAX_NAME_CHARACTERS,
    AnswerSizeError,
    check_calls,
)

PLACEHOLDERS: Final = frozenset({"", "{", "{}", "null"})
"""Placeholder arguments that some providers send before the real ones."""

_MAX_PLACEHOLDER_PIECES: Final = 8
_MAX_PLACEHOLDER_CHARACTERS: Final = 64

_MAX_RATIO: Final = 8
"""Maximum ratio of lengths of two texts with the same JSON value."""

_OWN_FIELDS: Final = frozenset({"id", "index", "function"})


class ToolCall:
    """One tool call; `id` is the provider's (empty until it gives one), `index` its number in the answer."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.extra: dict[str, Any] = {}
        self._pieces: list[str] = []
        self._taken = 0
        self._size = 0
        self._end = JsonEndFinder()
        self.is_over = False
        """Whether the arguments are a whole JSON object, even an empty one."""

    @property
    def arguments(self) -> str:
        """All argument text so far."""
        return "".join(self._pieces)

    @property
    def has_arguments(self) -> bool:
        """Whether any argument text arrived."""
        return bool(self._pieces)

    @property
    def is_placeholder(self) -> bool:
        """Whether the arguments so far may be a mere placeholder."""
        if len(self._pieces) > _MAX_PLACEHOLDER_PIECES or self._size > _MAX_PLACEHOLDER_CHARACTERS:
            return False
        return self.arguments.strip() in PLACEHOLDERS

    @property
    def is_ended(self) -> bool:
        """Whether the call is complete."""
        return self.is_over and not self.is_placeholder

    def add(self, name: str, arguments: str) -> int:
        """Add a piece and return the number of argument characters added.

        A repeated, growing or split name and repeated arguments count once.
        """
        if name and not self._pieces:
            self.name = name if name.startswith(self.name) else self.name + name
            if len(self.name) > MAX_NAME_CHARACTERS:
                raise AnswerSizeError(f"the name of a tool call is over {MAX_NAME_CHARACTERS} characters")
        self.name = self.name or name
        if not arguments or (self.is_over and (not arguments.strip() or self.repeats(arguments))):
            return 0
        if self.is_placeholder and not self._taken and arguments.lstrip().startswith("{"):
            self._pieces, self._size, self._end, self.is_over = [], 0, JsonEndFinder(), False
        was_whole = self._end.is_whole
        self._pieces.append(arguments)
        self._size += len(arguments)
        self._end.feed(arguments)
        if was_whole:
            self.is_over = False
        elif self._end.is_whole:
            # Parse once, when the outermost bracket is closed.
            self.is_over = parse_object(self.arguments, is_written=False) is not None
        return len(arguments)

    def repeats(self, arguments: str) -> bool:
        """Return True if `arguments` has the same JSON value as the arguments so far.

        A far shorter text cannot be equal, so the comparison costs no more than the piece is long.
        """
        if len(arguments) * _MAX_RATIO < self._size or not arguments.rstrip().endswith("}"):
            return False
        own = self.arguments
        return arguments == own or parse_object(arguments) == parse_object(own) is not None

    def take(self) -> str:
        """Return the argument text not yet taken; "" while it is empty or "null"."""
        if not self._taken and self.is_placeholder and self.arguments.strip() in ("", "null"):
            return ""
        new = "".join(self._pieces[self._taken :])
        self._taken = len(self._pieces)
        return new

    def body(self, new_id: ids.NewId) -> dict[str, Any]:
        """Return the call as a message holds it: a missing id is generated, missing arguments become `{}`."""
        self.id = self.id or f"call_{new_id()}"
        arguments = self.arguments
        function = {"name": self.name, "arguments": arguments if arguments.strip() else "{}"}
        return {"id": self.id, "type": "function", **self.extra, "function": function}


class ToolCallPiece(NamedTuple):
    """An element of a `tool_calls` list and the call that it belongs to."""

    given: dict[str, Any]
    call: ToolCall
    is_first: bool
    """Whether the piece starts the call."""
    is_repeated: bool = False
    """Whether the piece only repeats arguments that the call already has."""


def whole_calls(value: object, new_id: ids.NewId = ids.new_id) -> list[dict[str, Any]]:
    """Return the tool calls of a whole message in the form of `ToolCallAssembler.calls`."""
    calls = ToolCallAssembler(new_id)
    found = (call for call in as_sequence(value) if isinstance(call, dict))
    calls.add([{**call, "index": index} for index, call in enumerate(found)])
    return calls.calls()


class _CallFragment(NamedTuple):
    """The parsed fields of an element of a `tool_calls` list."""

    given_index: int | None
    id: str
    name: str
    arguments: str


class ToolCallAssembler:
    """Assembles the `tool_calls` of the deltas of one choice.

    A piece belongs to the call with its id and index. A piece without an index belongs to the call with its
    id, with its position in a list of several, or to the last call. A piece at a used position starts another
    call in these cases: another id with a name or after whole arguments; another name after arguments;
    another JSON object after a whole one. A name may arrive in pieces or be repeated by each piece. Arguments
    may arrive in pieces, at the end, again at the end, after a placeholder, or as an object. `name` and
    `arguments` may stand in `function` or beside it.

    Raises AnswerSizeError over `MAX_TOOL_CALLS`, `MAX_ARGUMENT_CHARACTERS` and `MAX_ARGUMENT_MARKS`.
    """

    def __init__(self, new_id: ids.NewId = ids.new_id) -> None:
        self._new_id = new_id
        self._calls: list[ToolCall] = []
        self._by_index: dict[int, ToolCall] = {}
        self._by_id: dict[str, ToolCall] = {}
        self._by_position: dict[int, ToolCall] = {}
        self._taken: set[int] = set()
        self._next = 0
        self._size = 0
        self._marks = 0

    def __bool__(self) -> bool:
        """Return True if there is any call."""
        return bool(self._calls)

    def add(self, deltas: object) -> list[ToolCallPiece]:
        """Add the `tool_calls` of one delta; anything but a list of objects counts as absent.

        Empty elements without a known call are omitted from the returned pieces.
        """
        given = as_sequence(deltas)
        check_calls(len(given))
        found = [
            self._add(piece, position, is_alone=len(given) == 1)
            for position, piece in enumerate(given)
            if isinstance(piece, dict)
        ]
        return [piece for piece in found if piece is not None]

    def calls(self) -> list[dict[str, Any]]:
        """Return `{"id", "type", "function": {"name", "arguments": JSON text}}` per call, by index.

        Other fields of the pieces are preserved.
        """
        return [call.body(self._new_id) for call in sorted(self._calls, key=lambda call: call.index)]

    def _add(self, given: dict[str, Any], position: int, *, is_alone: bool) -> ToolCallPiece | None:
        fragment = _read(given)
        call = self._find(fragment, position, is_alone=is_alone)
        if not (fragment.id or fragment.name or fragment.arguments):
            if call is not None:
                call.extra.update(_extra(given))
            return None if call is None else ToolCallPiece(given, call, is_first=False)
        is_first = call is None or _is_other(call, fragment)
        if call is None or is_first:
            # Whole arguments again without a name: the same tool is called again.
            name = fragment.name or (call.name if call is not None else "")
            call = self._begin(fragment.given_index)
            fragment = fragment._replace(name=name)
        if fragment.given_index is None:
            self._by_position[position] = call
        else:
            self._by_index[fragment.given_index] = call
        if fragment.id:
            call.id = call.id or fragment.id
            self._by_id[fragment.id] = call
        self._marks += count_marks(fragment.arguments)
        if self._marks > MAX_ARGUMENT_MARKS:
            raise AnswerSizeError(
                f"the arguments of its tool calls have over {MAX_ARGUMENT_MARKS} brackets and commas"
            )
        added = call.add(fragment.name, fragment.arguments)
        self._size += added
        if self._size > MAX_ARGUMENT_CHARACTERS:
            raise AnswerSizeError(
                f"the arguments of its tool calls are over {MAX_ARGUMENT_CHARACTERS} characters"
            )
        call.extra.update(_extra(given))
        return ToolCallPiece(given, call, is_first, is_repeated=not added)

    def _begin(self, index: int | None) -> ToolCall:
        check_calls(len(self._calls) + 1)
        number = self._next if index is None or index in self._taken else index
        self._taken.add(number)
        self._next = max(self._next, number + 1)
        call = ToolCall(number)
        self._calls.append(call)
        return call

    def _find(self, fragment: _CallFragment, position: int, *, is_alone: bool) -> ToolCall | None:
        """Return the call at the position of a fragment, or None."""
        by_id = self._by_id.get(fragment.id)
        if fragment.given_index is not None:
            by_index = self._by_index.get(fragment.given_index)
            if by_index is None:
                return None if fragment.name else by_id
            return by_index if by_index.id == fragment.id else by_id or by_index
        if by_id is not None:
            return by_id
        if is_alone:
            return self._calls[-1] if self._calls else None
        return self._by_position.get(position)


def _is_other(call: ToolCall, fragment: _CallFragment) -> bool:
    """Return True if a fragment at the position of `call` starts another call."""
    if fragment.id and call.id and fragment.id != call.id:
        # Some providers generate an id for each piece; such a piece has no name.
        return bool(fragment.name) or call.is_over
    if fragment.name and call.name and fragment.name != call.name:
        return call.has_arguments or fragment.given_index is None
    if not call.is_over or not fragment.arguments.strip():
        return False
    if call.is_placeholder and (fragment.id or call.id or not fragment.name):
        return False
    return fragment.arguments.lstrip().startswith("{") and not call.repeats(fragment.arguments)


def _read(given: Mapping[str, Any]) -> _CallFragment:
    index = given.get("index")
    function = as_mapping(given.get("function")) or given
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = orjson.dumps(arguments).decode()
    return _CallFragment(
        index if type(index) is int and 0 <= index < MAX_COUNT else None,
        as_text(given.get("id")),
        as_text(function.get("name")),
        as_text(arguments),
    )


def _extra(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a piece that are passed through."""
    if len(given) <= len(_OWN_FIELDS) and _OWN_FIELDS.issuperset(given):
        return {}
    own = _OWN_FIELDS if as_mapping(given.get("function")) else _OWN_FIELDS | {"name", "arguments"}
    return {name: value for name, value in given.items() if name not in own and value is not None}


def parse_object(arguments: str, *, is_written: bool = True) -> dict[str, Any] | None:
    """Parse arguments into an object.

    Returns None if they are no object, have too many values, or (with `is_written`) nest too deep to be
    encoded.
    """
    if has_too_many_values(arguments):
        return None
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(parsed, dict):
        return None
    too_deep = is_written and nests_too_deep(parsed, arguments.count("{") + arguments.count("["))
    return None if too_deep else parsed
