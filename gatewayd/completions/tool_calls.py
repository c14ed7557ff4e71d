"""Assembles tool calls from the pieces that providers stream; pure.

What is known of providers that name their pieces wrongly is decided in `ToolCallAssembler` and nowhere else.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from gatewayd import ids
from gatewayd.completions.embedded_json import count_marks, has_too_many_values, nests_too_deep
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.json_end import JsonEndFinder
from gatewayd.completions.limits import (
    MAX_ARGUMENT_CHARACTERS,
    MAX_ARGUMENT_MARKS,
    MAX_NAME_CHARACTERS,
    AnswerSizeError,
    check_calls,
)

PLACEHOLDERS: Final = frozenset({"", "{", "{}", "null"})
"""Arguments that say nothing yet: some providers send them before the arguments."""

_MAX_PLACEHOLDER_PIECES: Final = 8
_MAX_PLACEHOLDER_CHARACTERS: Final = 64

_MAX_RATIO: Final = 8
"""How many times longer the same JSON can be written."""

_OWN_FIELDS: Final = frozenset({"id", "index", "function"})


class ToolCall:
    """One tool call; `id` is the provider's, empty while it gave none, `index` its number in the answer."""

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
        """Whether the arguments are a whole JSON object, be it an empty one."""

    @property
    def arguments(self) -> str:
        """All arguments so far."""
        return "".join(self._pieces)

    @property
    def has_arguments(self) -> bool:
        """Whether any argument came."""
        return bool(self._pieces)

    @property
    def is_held(self) -> bool:
        """Whether the arguments so far may be no more than a placeholder."""
        if len(self._pieces) > _MAX_PLACEHOLDER_PIECES or self._size > _MAX_PLACEHOLDER_CHARACTERS:
            return False
        return self.arguments.strip() in PLACEHOLDERS

    @property
    def is_ended(self) -> bool:
        """Whether nothing more is expected."""
        return self.is_over and not self.is_held

    def add(self, name: str, arguments: str) -> int:
        """Add a piece and return how many characters of arguments it added.

        A name repeated, growing or split and arguments sent twice count once.
        """
        if name and not self._pieces:
            self.name = name if name.startswith(self.name) else self.name + name
            if len(self.name) > MAX_NAME_CHARACTERS:
                raise AnswerSizeError(f"the name of a tool call is over {MAX_NAME_CHARACTERS} characters")
        self.name = self.name or name
        if not arguments or (self.is_over and (not arguments.strip() or self.says(arguments))):
            return 0
        if self.is_held and not self._taken and arguments.lstrip().startswith("{"):
            self._pieces, self._size, self._end, self.is_over = [], 0, JsonEndFinder(), False
        was_whole = self._end.is_whole
        self._pieces.append(arguments)
        self._size += len(arguments)
        self._end.feed(arguments)
        if was_whole:
            self.is_over = False
        elif self._end.is_whole:
            # Looked at once, when what was opened is closed.
            self.is_over = parse_object(self.arguments, is_written=False) is not None
        return len(arguments)

    def says(self, arguments: str) -> bool:
        """Whether the arguments so far say just this, be it written in another way.

        What is far shorter cannot: a comparison costs no more than the piece deserves.
        """
        if len(arguments) * _MAX_RATIO < self._size or not arguments.rstrip().endswith("}"):
            return False
        said = self.arguments
        return arguments == said or parse_object(arguments) == parse_object(said) is not None

    def take(self) -> str:
        """Return the arguments not yet taken; none for those that say nothing at all."""
        if not self._taken and self.is_held and self.arguments.strip() in ("", "null"):
            return ""
        new = "".join(self._pieces[self._taken :])
        self._taken = len(self._pieces)
        return new

    def body(self, new_id: ids.NewId) -> dict[str, Any]:
        """Return the call as a message has it: a missing id is made up, missing arguments are `{}`."""
        self.id = self.id or f"call_{new_id()}"
        arguments = self.arguments
        function = {"name": self.name, "arguments": arguments if arguments.strip() else "{}"}
        return {"id": self.id, "type": "function", **self.extra, "function": function}


class ToolCallPiece(NamedTuple):
    """An element of a `tool_calls` list, and the call that it belongs to."""

    given: dict[str, Any]
    call: ToolCall
    is_first: bool
    """Whether it begins the call."""
    is_repeated: bool = False
    """Whether its arguments are those that the call has already."""


def whole_calls(value: object, new_id: ids.NewId = ids.new_id) -> list[dict[str, Any]]:
    """Return the tool calls of a whole message, each for itself, as `ToolCallAssembler.calls` does."""
    calls = ToolCallAssembler(new_id)
    found = (call for call in as_sequence(value) if isinstance(call, dict))
    calls.add([{**call, "index": index} for index, call in enumerate(found)])
    return calls.calls()


class _Said(NamedTuple):
    """What an element of a `tool_calls` list says."""

    given_index: int | None
    id: str
    name: str
    arguments: str


class ToolCallAssembler:
    """Takes the `tool_calls` of the deltas of one choice.

    A piece belongs to the call of its id and index; without an index to the call of its id, of its place in
    a list of several, or to the last call. These begin another call at a place that is taken: another id with
    a name, or after whole arguments; another name after arguments; another JSON object after a whole one.
    Names may come in pieces or again with each piece; arguments in pieces, at the end, once more at the end,
    after a placeholder, or as an object; `name` and `arguments` in `function` or beside it.

    Raises AnswerSizeError over `MAX_TOOL_CALLS`, `MAX_ARGUMENT_CHARACTERS` and `MAX_ARGUMENT_MARKS`.
    """

    def __init__(self, new_id: ids.NewId = ids.new_id) -> None:
        self._new_id = new_id
        self._calls: list[ToolCall] = []
        self._by_index: dict[int, ToolCall] = {}
        self._by_id: dict[str, ToolCall] = {}
        self._by_place: dict[int, ToolCall] = {}
        self._taken: set[int] = set()
        self._next = 0
        self._size = 0
        self._marks = 0

    def __bool__(self) -> bool:
        """Whether there is any call."""
        return bool(self._calls)

    def add(self, deltas: object) -> list[ToolCallPiece]:
        """Take the `tool_calls` of one delta; what is not a list of objects counts as absent.

        Elements that say nothing of a call that is not known are left out of the pieces returned.
        """
        given = as_sequence(deltas)
        check_calls(len(given))
        found = [
            self._add(piece, place, is_alone=len(given) == 1)
            for place, piece in enumerate(given)
            if isinstance(piece, dict)
        ]
        return [piece for piece in found if piece is not None]

    def calls(self) -> list[dict[str, Any]]:
        """Return `{"id", "type", "function": {"name", "arguments": JSON text}}` per call, by index.

        Other fields of the pieces are kept.
        """
        return [call.body(self._new_id) for call in sorted(self._calls, key=lambda call: call.index)]

    def _add(self, given: dict[str, Any], place: int, *, is_alone: bool) -> ToolCallPiece | None:
        said = _read(given)
        call = self._find(said, place, is_alone=is_alone)
        if not (said.id or said.name or said.arguments):
            if call is not None:
                call.extra.update(_extra(given))
            return None if call is None else ToolCallPiece(given, call, is_first=False)
        is_first = call is None or _is_other(call, said)
        if call is None or is_first:
            # Whole arguments again, for a call without a name: it is called again.
            name = said.name or (call.name if call is not None else "")
            call = self._begin(said.given_index)
            said = said._replace(name=name)
        if said.given_index is None:
            self._by_place[place] = call
        else:
            self._by_index[said.given_index] = call
        if said.id:
            call.id = call.id or said.id
            self._by_id[said.id] = call
        self._marks += count_marks(said.arguments)
        if self._marks > MAX_ARGUMENT_MARKS:
            raise AnswerSizeError(
                f"the arguments of its tool calls have over {MAX_ARGUMENT_MARKS} brackets and commas"
            )
        added = call.add(said.name, said.arguments)
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

    def _find(self, said: _Said, place: int, *, is_alone: bool) -> ToolCall | None:
        """Return the call that stands where a piece stands, None when there is none."""
        by_id = self._by_id.get(said.id)
        if said.given_index is not None:
            by_index = self._by_index.get(said.given_index)
            if by_index is None:
                return None if said.name else by_id
            return by_index if by_index.id == said.id else by_id or by_index
        if by_id is not None:
            return by_id
        if is_alone:
            return self._calls[-1] if self._calls else None
        return self._by_place.get(place)


def _is_other(call: ToolCall, said: _Said) -> bool:
    """Whether a piece at the place of `call` begins another one."""
    if said.id and call.id and said.id != call.id:
        # Some providers make up an id for each piece: then it has no name.
        return bool(said.name) or call.is_over
    if said.name and call.name and said.name != call.name:
        return call.has_arguments or said.given_index is None
    if not call.is_over or not said.arguments.strip():
        return False
    if call.is_held and (said.id or call.id or not said.name):
        return False
    return said.arguments.lstrip().startswith("{") and not call.says(said.arguments)


def _read(given: Mapping[str, Any]) -> _Said:
    index = given.get("index")
    function = as_mapping(given.get("function")) or given
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = orjson.dumps(arguments).decode()
    return _Said(
        index if type(index) is int and index >= 0 else None,
        as_text(given.get("id")),
        as_text(function.get("name")),
        as_text(arguments),
    )


def _extra(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a piece that are kept as they are."""
    if len(given) <= len(_OWN_FIELDS) and _OWN_FIELDS.issuperset(given):
        return {}
    own = _OWN_FIELDS if as_mapping(given.get("function")) else _OWN_FIELDS | {"name", "arguments"}
    return {name: value for name, value in given.items() if name not in own and value is not None}


def parse_object(arguments: str, *, is_written: bool = True) -> dict[str, Any] | None:
    """Return the object that arguments are.

    None when they are none, hold too much to be decoded or, for one that is written again, nest too deep.
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
