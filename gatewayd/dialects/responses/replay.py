"""Replays a stored response as the events of its stream, with their numbers; pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.json_access import as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import ToolCall
from gatewayd.dialects.responses.event_writer import EventWriter
from gatewayd.dialects.responses.output import COMPLETED, CallItem, MessageItem, OutputItem, ReasoningItem
from gatewayd.dialects.responses.tools import ToolIdentity, ToolNames, custom_arguments

SLICE_PIECES: Final = 200
"""Number of deltas after which the frames so far are yielded."""

_UNFINISHED: Final[Body] = {
    "status": "in_progress",
    "output": [],
    "usage": None,
    "completed_at": None,
    "error": None,
    "incomplete_details": None,
}


class ResponseReplay:
    """The events of a stored response.

    `pieces` and `pings` are those of its `EventWriter`; without pieces each text is one delta.
    """

    def __init__(self, response: Mapping[str, Any], pieces: Sequence[int], pings: Sequence[int]) -> None:
        self._response = response
        self._pieces = iter(pieces)
        self._events = EventWriter(pings)
        self._events.head = {**response, **_UNFINISHED}

    def frames(self, after: int | None = None) -> Iterator[bytes]:
        """Yield the frames after the event with a number, all of them for None."""
        self._events.skip_to(0 if after is None else after + 1)
        self._events.write("response.created", response=self._events.head)
        self._events.write("response.in_progress", response=self._events.head)
        for index, item in enumerate(as_sequence(self._response.get("output"))):
            yield from self._item(item, index)
        self._events.write(f"response.{self._response['status']}", response=self._response)
        yield self._events.take()

    def _item(self, item: Body, index: int) -> Iterator[bytes]:
        match item["type"]:
            case "message":
                yield from self._message(item, index)
            case "reasoning":
                texts = "".join(as_text(part.get("text")) for part in item["summary"])
                thought = ReasoningItem()
                thought.begin(self._events, self._response["id"], index)
                for piece in self._cut(texts):
                    thought.add(piece)
                    yield from self._flushed(thought)
                extra = {name: item[name] for name in ("encrypted_content",) if name in item}
                thought.end(self._events, COMPLETED, **extra)
            case _:
                yield from self._call(item, index)

    def _message(self, item: Body, index: int) -> Iterator[bytes]:
        message = MessageItem()
        message.begin(self._events, self._response["id"], index)
        for part in item["content"]:
            is_refusal = part["type"] == "refusal"
            logprobs = as_sequence(part.get("logprobs"))
            for piece in self._cut(
                part["refusal" if is_refusal else "text"], as_sequence(part.get("annotations"))
            ):
                if isinstance(piece, str):
                    message.add(part["type"], piece, logprobs)
                    logprobs = ()
                else:
                    message.add("annotation", piece)
                yield from self._flushed(message)
        message.end(self._events, item["status"])

    def _call(self, item: Body, index: int) -> Iterator[bytes]:
        names, is_custom = ToolNames(), item["type"] == "custom_tool_call"
        name = names.add(ToolIdentity(item["name"], item.get("namespace"), is_custom))
        call = _StoredCall(name)
        made = CallItem(call, names)
        made.call_id = item["call_id"]
        made.begin(self._events, self._response["id"], index)
        for piece in self._cut(item["input" if is_custom else "arguments"]):
            call.append(custom_arguments(piece) if is_custom else piece)
            yield from self._flushed(made)
        made.end(self._events, item.get("status", COMPLETED))

    def _flushed(self, item: OutputItem) -> Iterator[bytes]:
        item.flush(self._events)
        if len(self._events.pieces) % SLICE_PIECES == 0:
            yield self._events.take()

    def _cut(self, text: str, cited: Sequence[Body] = ()) -> Iterator[Any]:
        """Yield the pieces of a text as they came, and an annotation for each 0."""
        at, annotations = 0, iter(cited)
        while at < len(text):
            length = next(self._pieces, len(text))
            if length == 0:
                annotation = next(annotations, None)
                if annotation is not None:
                    yield annotation
                continue
            yield text[at : at + length]
            at += length
        yield from annotations


class _StoredCall(ToolCall):
    """A call whose arguments are known, in pieces."""

    def __init__(self, name: str) -> None:
        super().__init__(0)
        self.name = name
        self._new: list[str] = []
        self._all: list[str] = []

    @property
    def arguments(self) -> str:
        """All argument text so far."""
        return "".join(self._all)

    def append(self, piece: str) -> None:
        """Add a piece."""
        self._new.append(piece)
        self._all.append(piece)

    def take(self) -> str:
        """Return the text not yet taken."""
        taken = "".join(self._new)
        self._new.clear()
        return taken
