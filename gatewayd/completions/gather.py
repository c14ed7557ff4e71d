"""Puts together what providers cut into pieces, or call by several names, whatever shape they gave it; pure.

`ToolCalls` takes the `tool_calls` of deltas; `said`, `thought` and `usage_of` read one delta or event.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from gatewayd import ids
from gatewayd.completions.foreign import mapping, sequence, text
from gatewayd.completions.json_end import JsonEnd

Body = dict[str, Any]

REASONING = ("reasoning_content", "reasoning", "thinking")
"""Where providers put the text of their reasoning, the most usual first; several may say the same."""


class _Call:
    """One tool call while its pieces come in."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.parts: list[str] = []
        self.extra: Body = {}
        self.is_over = False
        """Whether its arguments are a whole JSON object, to which no piece can belong."""
        self._end = JsonEnd()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said of it."""
        return not (self.id or self.name or self.parts)

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take one piece of this call."""
        self.id = self.id or _id_of(piece)
        function = mapping(piece.get("function"))
        name = _name_of(piece)
        if name.startswith(self.name):
            self.name = name
        elif not self.parts:
            self.name += name
        self._add_arguments(function.get("arguments"))
        named = {"id", "index", "function"}
        self.extra.update(
            {key: value for key, value in piece.items() if key not in named and value is not None}
        )

    def body(self, new_id: ids.NewId) -> Body:
        """Return the call as a message has it."""
        self.id = self.id or f"call_{new_id()}"
        arguments = "".join(self.parts)
        function = {"name": self.name, "arguments": arguments if arguments.strip() else "{}"}
        return {"id": self.id, "type": "function", **self.extra, "function": function}

    def _add_arguments(self, arguments: object) -> None:
        if arguments is None or arguments == "":
            return
        if not isinstance(arguments, str):
            self._begin(orjson.dumps(arguments).decode())
        elif arguments.lstrip().startswith("{") and self.is_over:
            # A whole object after a whole object: "{}" as a start, or everything once more at the end.
            self._begin(arguments)
        else:
            self._append(arguments)

    def _begin(self, arguments: str) -> None:
        self.parts, self.is_over, self._end = [], False, JsonEnd()
        self._append(arguments)

    def _append(self, arguments: str) -> None:
        """Add a piece; the whole is looked at once, when what was opened is closed."""
        was_whole = self._end.is_whole
        self.parts.append(arguments)
        self._end.feed(arguments)
        if was_whole:
            self.is_over = self.is_over and not arguments.strip()
        elif self._end.is_whole:
            self.is_over = _is_object("".join(self.parts))


class ToolCalls:
    """Puts tool calls together from the `tool_calls` of deltas.

    A piece belongs to the call of its index, or without one of its id, or without both to the last call. An
    index is used again for a new call by some providers: a piece with another id and a name, or with a name
    after arguments that are whole, begins one. Names may come in pieces or again with each piece; arguments
    in pieces, at the end, again at the end, or as an object.
    """

    def __init__(self, new_id: ids.NewId = ids.new_id) -> None:
        self._new_id = new_id
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._next_index = 0
        self._numbers: dict[_Call, int] = {}

    def __bool__(self) -> bool:
        """Whether there is any call."""
        return any(not call.is_empty for call in self._calls)

    def add(self, deltas: object) -> None:
        """Take the `tool_calls` of one delta; what is not a list of objects counts as absent."""
        for position, piece in enumerate(sequence(deltas)):
            if isinstance(piece, dict):
                self._add(piece, is_first=position == 0)

    def calls(self) -> list[Body]:
        """Return `{"id", "type", "function": {"name", "arguments": JSON text}}` per call, by index.

        A missing id is made up, missing arguments are `{}`; other fields of the pieces are kept.
        """
        found = [call for call in self._calls if not call.is_empty]
        return [call.body(self._new_id) for call in sorted(found, key=lambda call: call.index)]

    def place(self, piece: Mapping[str, Any], *, is_first: bool) -> int:
        """Take one piece and return the index of its call: the one it came with, unless that is taken."""
        call = self._add(piece, is_first=is_first)
        if call not in self._numbers:
            taken = self._numbers.values()
            self._numbers[call] = call.index if call.index not in taken else max(taken) + 1
        return self._numbers[call]

    def _add(self, piece: Mapping[str, Any], *, is_first: bool) -> _Call:
        index = piece.get("index")
        if type(index) is not int or index < 0:
            index = None
        call = self._find(index, piece, is_first=is_first)
        if call is None:
            call = _Call(index if index is not None else self._next_index)
            self._next_index = max(self._next_index, call.index + 1)
            self._calls.append(call)
        call.add(piece)
        if index is not None:
            self._by_index[index] = call
        if _id_of(piece):
            self._by_id[_id_of(piece)] = call
        return call

    def _find(self, index: int | None, piece: Mapping[str, Any], *, is_first: bool) -> _Call | None:
        """Return the call that a piece belongs to, None when it begins one."""
        by_id = self._by_id.get(_id_of(piece))
        by_index = None if index is None else self._by_index.get(index)
        if index is None:
            last = self._calls[-1] if self._calls and (is_first or not _name_of(piece)) else None
            call = by_id or last
        elif by_index is None:
            call = None if _name_of(piece) else by_id
        else:
            call = by_index if by_index.id == _id_of(piece) else by_id or by_index
        return None if call is not None and _begins_another(piece, call) else call


def _begins_another(piece: Mapping[str, Any], call: _Call) -> bool:
    """Whether a piece that stands where those of `call` stand is the first of another call."""
    name, own_id = _name_of(piece), _id_of(piece)
    if not name or not call.name:
        return False
    if call.parts and name != call.name:
        return True
    if own_id and call.id:
        return own_id != call.id and (not call.parts or call.is_over)
    arguments = mapping(piece.get("function")).get("arguments")
    return bool(arguments) and call.is_over and arguments != "".join(call.parts)


def _name_of(piece: Mapping[str, Any]) -> str:
    return text(mapping(piece.get("function")).get("name"))


def _id_of(piece: Mapping[str, Any]) -> str:
    return text(piece.get("id"))


def _is_object(value: str) -> bool:
    try:
        return isinstance(orjson.loads(value), dict)
    except orjson.JSONDecodeError:
        return False


def message_of(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of the first choice of a whole answer; empty when there is none."""
    choices = sequence(completion.get("choices"))
    return dict(mapping(mapping(choices[0]).get("message"))) if choices else {}


def said(delta: Mapping[str, Any]) -> str:
    """Return the text of a delta or message, also of one whose content is a list of parts."""
    content = delta.get("content")
    if isinstance(content, str):
        return content
    return "".join(text(mapping(part).get("text")) for part in sequence(content))


def thought(delta: Mapping[str, Any]) -> str:
    """Return the reasoning of a delta or message, once, under whatever names it came."""
    for name in REASONING:
        if text(delta.get(name)):
            return text(delta[name])
    details = [mapping(detail) for detail in sequence(delta.get("reasoning_details"))]
    found = [text(detail.get("text")) or text(detail.get("summary")) for detail in details]
    for part in sequence(delta.get("content")):
        thinking = mapping(part).get("thinking")
        found.append(text(thinking) or said({"content": thinking}))
    return "".join(found)


def usage_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the usage in an event, also where some providers hide it; empty when there is none."""
    usage = mapping(event.get("usage")) or mapping(mapping(event.get("x_groq")).get("usage"))
    for choice in sequence(event.get("choices")):
        usage = usage or mapping(mapping(choice).get("usage"))
    return usage
