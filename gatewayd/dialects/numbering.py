"""Makes the tool calls of a passed-on stream fit to be put together by index, which clients go by; pure."""

from typing import Any

import orjson

from gatewayd.catalog.replies import Body
from gatewayd.completions.foreign import mapping, sequence
from gatewayd.completions.gather import ToolCalls

CHUNK = "chat.completion.chunk"


class CallNumbers:
    """Looks at the events of one stream in order and mends those that clients would put together wrongly.

    Some providers give every call the same index or none, or arguments as an object; each call gets an index
    of its own here, and arguments are text. Clients drop what is not called a `chat.completion.chunk`, and
    break over a choice without an index.
    """

    def __init__(self) -> None:
        self._calls: dict[int, ToolCalls] = {}

    def mend(self, event: Body) -> bool:
        """Change an event where it must be; whether anything was changed."""
        changed = event.get("object") != CHUNK
        event["object"] = CHUNK
        for position, choice in enumerate(sequence(event.get("choices"))):
            if not isinstance(choice, dict):
                continue
            if type(choice.get("index")) is not int:
                choice["index"] = position
                changed = True
            pieces = sequence(mapping(choice.get("delta")).get("tool_calls"))
            if pieces:
                calls = self._calls.setdefault(choice["index"], ToolCalls())
                changed = self._mend_pieces(pieces, calls) or changed
        return changed

    def _mend_pieces(self, pieces: Any, calls: ToolCalls) -> bool:
        changed = False
        for position, piece in enumerate(pieces):
            if not isinstance(piece, dict):
                continue
            index = calls.place(piece, is_first=position == 0)
            if type(piece.get("index")) is not int or piece["index"] != index:
                piece["index"] = index
                changed = True
            function = piece.get("function")
            if isinstance(function, dict) and not isinstance(function.get("arguments"), str | None):
                function["arguments"] = orjson.dumps(function["arguments"]).decode()
                changed = True
        return changed
