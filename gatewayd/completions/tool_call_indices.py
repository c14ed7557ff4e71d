"""Corrects the tool call indices of a passed-on stream, by which clients assemble the calls; pure."""

from typing import Any

import orjson

from gatewayd.completions.deltas import calls_of
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.limits import check_choices
from gatewayd.completions.tool_call_assembler import ToolCallAssembler, ToolCallPiece

CHUNK = "chat.completion.chunk"


class ToolCallNumbering:
    """Corrects the events of one stream, in order, that clients would assemble wrongly.

    Some providers give every call the same index or none, arguments as an object, a whole call twice, or name
    and arguments outside of `function`. Each call gets its own index, and its name and its arguments as text
    inside `function`. `object` becomes `chat.completion.chunk`, because clients drop other events, and each
    choice gets an index, because clients fail without one. Raises AnswerSizeError for too many choices or
    tool calls.
    """

    def __init__(self) -> None:
        self._calls: dict[int, ToolCallAssembler] = {}

    def normalise(self, event: dict[str, Any]) -> bool:
        """Correct an event in place; return True if it changed."""
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
                changed = self._normalise_calls(choice) or changed
        return changed

    def _normalise_calls(self, choice: dict[str, Any]) -> bool:
        given = choice["delta"]["tool_calls"]
        pieces = calls_of({"tool_calls": given})
        changed = not isinstance(given, list) or len(pieces) < len(given)
        if changed:
            # Clients fail on anything but a list of objects.
            choice["delta"]["tool_calls"] = pieces
        if pieces:
            calls = self._calls.setdefault(choice["index"], ToolCallAssembler())
            check_choices(len(self._calls))
            for piece in calls.add(pieces):
                changed = _normalise_piece(piece) or changed
        return changed


def _normalise_piece(piece: ToolCallPiece) -> bool:
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
