"""Makes the tool calls of a passed-on stream fit to be put together by index, which clients go by; pure."""

from typing import Any

import orjson

from gatewayd.completions.deltas import calls_of
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.limits import check_choices
from gatewayd.completions.tool_calls import ToolCallAssembler, ToolCallPiece

CHUNK = "chat.completion.chunk"


class ToolCallNumbering:
    """Looks at the events of one stream in order and changes those that clients would put together wrongly.

    Some providers give every call the same index or none, arguments as an object, all of a call once more, or
    its name and arguments outside of `function`; each call gets an index of its own here, and a name and
    arguments as text where clients look. Clients drop what is not called a `chat.completion.chunk`, and
    break over a choice without an index. Raises AnswerSizeError for too many choices or tool calls.
    """

    def __init__(self) -> None:
        self._calls: dict[int, ToolCallAssembler] = {}

    def mend(self, event: dict[str, Any]) -> bool:
        """Change an event where it must be; whether anything was changed."""
        changed = event.get("object") != CHUNK
        event["object"] = CHUNK
        choices = as_sequence(event.get("choices"))
        check_choices(len(choices))
        for position, choice in enumerate(choices):
            if not isinstance(choice, dict):
                continue
            if type(choice.get("index")) is not int:
                choice["index"] = position
                changed = True
            if as_mapping(choice.get("delta")).get("tool_calls") is not None:
                changed = self._mend_calls(choice) or changed
        return changed

    def _mend_calls(self, choice: dict[str, Any]) -> bool:
        given = choice["delta"]["tool_calls"]
        pieces = calls_of({"tool_calls": given})
        changed = not isinstance(given, list) or len(pieces) < len(given)
        if changed:
            # Clients break over what is no list of objects.
            choice["delta"]["tool_calls"] = pieces
        if pieces:
            calls = self._calls.setdefault(choice["index"], ToolCallAssembler())
            check_choices(len(self._calls))
            for piece in calls.add(pieces):
                changed = _mend_piece(piece) or changed
        return changed


def _mend_piece(piece: ToolCallPiece) -> bool:
    given, call = piece.given, piece.call
    changed = type(given.get("index")) is not int or given["index"] != call.index
    given["index"] = call.index
    function = given.get("function")
    if not (isinstance(function, dict) and function) and ("name" in given or "arguments" in given):
        function = {name: given.pop(name) for name in ("name", "arguments") if name in given}
        given["function"] = function
        changed = True
    if piece.is_first and call.name and not as_mapping(function).get("name"):
        function = given["function"] = {**as_mapping(function), "name": call.name}
        changed = True
    if not isinstance(function, dict):
        return changed
    if not isinstance(function.get("arguments"), str | None):
        function["arguments"] = orjson.dumps(function["arguments"]).decode()
        changed = True
    if piece.is_repeated and function.get("arguments"):
        function["arguments"] = ""
        changed = True
    return changed
