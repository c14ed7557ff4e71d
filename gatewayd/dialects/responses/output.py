"""Output items of a response, and the events of each; pure.

An item is written by `begin`, any number of `flush`, and `end`, which returns it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gatewayd.completions.json_access import as_count, as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import ToolCall
from gatewayd.dialects.responses.envelope import item_id
from gatewayd.dialects.responses.event_writer import EventWriter
from gatewayd.dialects.responses.tools import ToolNames, custom_input

COMPLETED: Final = "completed"
INCOMPLETE: Final = "incomplete"


class OutputItem:
    """The common part of all items: their place, and the state of their writing."""

    kind = ""

    def __init__(self) -> None:
        self.id = ""
        self.index = 0
        self.is_open = False

    @property
    def is_ready(self) -> bool:
        """Whether the item can begin."""
        return True

    @property
    def is_ended(self) -> bool:
        """Whether the item can end when another one follows."""
        return True

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return False

    def begin(self, events: EventWriter, response_id: str, index: int) -> None:
        """Write the event that adds the item."""
        self.index, self.is_open = index, True
        self.id = item_id(response_id, self.kind, index)
        events.write("response.output_item.added", output_index=index, item=self.head())

    def head(self) -> Body:
        """Return the item without content."""
        raise NotImplementedError

    def flush(self, events: EventWriter) -> None:
        """Write what has arrived."""
        raise NotImplementedError

    def end(self, events: EventWriter, status: str, **extra: Any) -> Body:
        """Write the remaining events of the item and return it, with `extra` fields."""
        self.flush(events)
        whole = {**self.close(events, status), **extra}
        events.write("response.output_item.done", output_index=self.index, item=whole)
        self.is_open = False
        return whole

    def close(self, events: EventWriter, status: str) -> Body:
        """Write the events that end the parts of the item, and return it with its content."""
        raise NotImplementedError

    def place(self) -> Body:
        """Return the fields of all events about the item."""
        return {"item_id": self.id, "output_index": self.index}


class ReasoningItem(OutputItem):
    """Reasoning: its text as a summary; `content` is what the next turn needs, for `encrypted_content`."""

    kind = "reasoning"

    def __init__(self) -> None:
        super().__init__()
        self._pending: list[str] = []
        self._texts: list[str] = []
        self._has_part = False
        self.content: Body = {}
        """`text`, `signature`, `data`, `details` of the source, and extra members of `calls` by their id."""

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._texts)

    def whole_content(self) -> Body:
        """Return the content with the text."""
        return {**self.content, "text": self.text} if self._texts else self.content

    @property
    def is_signed(self) -> bool:
        """Whether the reasoning is complete, so that further text belongs to another item."""
        return bool(self.content.get("signature") or self.content.get("data") or self.content.get("calls"))

    def add(self, text: str) -> None:
        """Add a piece of text."""
        self._pending.append(text)
        self._texts.append(text)

    def head(self) -> Body:
        """Return the item without summary."""
        return {"id": self.id, "type": self.kind, "summary": []}

    def flush(self, events: EventWriter) -> None:
        """Write the pieces of the summary."""
        for piece in self._pending:
            if not self._has_part:
                self._has_part = True
                self._write(events, "response.reasoning_summary_part.added", part=_summary(""))
            place = {**self.place(), "summary_index": 0}
            events.delta("response.reasoning_summary_text.delta", len(piece), **place, delta=piece)
        self._pending.clear()

    def close(self, events: EventWriter, status: str) -> Body:
        """Write the end of the summary."""
        text = self.text
        if self._has_part:
            self._write(events, "response.reasoning_summary_text.done", text=text)
            self._write(events, "response.reasoning_summary_part.done", part=_summary(text))
        return {**self.head(), "summary": [_summary(text)] if self._has_part else []}

    def _write(self, events: EventWriter, kind: str, **fields: Any) -> None:
        events.write(kind, **self.place(), summary_index=0, **fields)


class MessageItem(OutputItem):
    """A message with parts of text and refusal."""

    kind = "message"

    def __init__(self) -> None:
        super().__init__()
        self._pending: list[tuple[str, Any, list[Any]]] = []
        self._parts: list[Body] = []
        self._open: Body | None = None
        self._texts: list[str] = []

    def add(self, kind: str, piece: Any, logprobs: Iterable[Any] = ()) -> None:
        """Add a piece of `output_text` or `refusal`, or an `annotation` of the text."""
        self._pending.append((kind, piece, list(logprobs)))

    def head(self) -> Body:
        """Return the message without parts."""
        return {"id": self.id, "type": self.kind, "status": "in_progress", "role": "assistant", "content": []}

    def flush(self, events: EventWriter) -> None:
        """Write the pieces of the parts."""
        for kind, piece, logprobs in self._pending:
            if kind == "annotation":
                self._annotate(events, piece)
                continue
            part = self._part(events, kind)
            self._texts.append(piece)
            if kind == "refusal":
                events.delta("response.refusal.delta", len(piece), **self._place(), delta=piece)
            else:
                part["logprobs"] += logprobs
                place = {**self._place(), "logprobs": logprobs}
                events.delta("response.output_text.delta", len(piece), **place, delta=piece)
        self._pending.clear()

    def close(self, events: EventWriter, status: str) -> Body:
        """Write the end of the last part."""
        self._end_part(events)
        return {**self.head(), "status": status, "content": self._parts}

    def _part(self, events: EventWriter, kind: str) -> Body:
        if self._open is not None and self._open["type"] == kind:
            return self._open
        self._end_part(events)
        self._open = (
            {"type": kind, "refusal": ""}
            if kind == "refusal"
            else {"type": kind, "text": "", "annotations": [], "logprobs": []}
        )
        events.write("response.content_part.added", **self._place(), part=self._open)
        return self._open

    def _end_part(self, events: EventWriter) -> None:
        if self._open is None:
            return
        part, text = self._open, "".join(self._texts)
        if part["type"] == "refusal":
            part["refusal"] = text
            events.write("response.refusal.done", **self._place(), refusal=text)
        else:
            part["text"] = text
            events.write("response.output_text.done", **self._place(), text=text, logprobs=part["logprobs"])
        events.write("response.content_part.done", **self._place(), part=part)
        self._parts.append(part)
        self._open, self._texts = None, []

    def _annotate(self, events: EventWriter, annotation: Body) -> None:
        if self._open is None or self._open["type"] != "output_text":
            return
        number = len(self._open["annotations"])
        self._open["annotations"].append(annotation)
        place = {**self._place(), "annotation_index": number}
        events.delta("response.output_text.annotation.added", 0, **place, annotation=annotation)

    def _place(self) -> Body:
        return {**self.place(), "content_index": len(self._parts)}


class CallItem(OutputItem):
    """A call of a function, or of a custom tool, whose input is written whole at its end."""

    kind = "function_call"

    def __init__(self, call: ToolCall, names: ToolNames) -> None:
        super().__init__()
        self.call = call
        self.call_id = ""
        self._names = names
        self._written = 0

    @property
    def is_ready(self) -> bool:
        """Whether the name is complete, which real arguments prove."""
        return bool(self.call.name) and not self.call.is_placeholder

    @property
    def is_ended(self) -> bool:
        """Whether the arguments are complete."""
        return self.call.is_ended

    @property
    def is_empty(self) -> bool:
        """Whether it is a call without a name and arguments, which cannot be run."""
        return not self.call.name and self.call.is_placeholder

    def begin(self, events: EventWriter, response_id: str, index: int) -> None:
        """Write the event that adds the call."""
        if self._names.tool(self.call.name).is_custom:
            self.kind = "custom_tool_call"
        super().begin(events, response_id, index)

    def head(self) -> Body:
        """Return the call without arguments."""
        tool = self._names.tool(self.call.name)
        field = "input" if tool.is_custom else "arguments"
        status = {} if tool.is_custom else {"status": "in_progress"}
        space = {} if tool.namespace is None else {"namespace": tool.namespace}
        named = {"call_id": self.call_id, "name": tool.name, **space}
        return {"id": self.id, "type": self.kind, **status, **named, field: ""}

    def flush(self, events: EventWriter) -> None:
        """Write the pieces of the arguments of a function."""
        piece = "" if self.kind == "custom_tool_call" else self.call.take()
        if piece:
            self._written += len(piece)
            kind = "response.function_call_arguments.delta"
            events.delta(kind, len(piece), **self.place(), delta=piece)

    def close(self, events: EventWriter, status: str) -> Body:
        """Write the end of the arguments or of the input."""
        arguments = self.call.arguments
        if self.kind == "custom_tool_call":
            given = custom_input(arguments)
            kind = "response.custom_tool_call_input"
            if given:
                events.delta(f"{kind}.delta", len(given), **self.place(), delta=given)
            events.write(f"{kind}.done", **self.place(), input=given)
            return {**self.head(), "input": given}
        kind = "response.function_call_arguments"
        if not self._written:
            # Clients expect JSON, and some read the deltas only.
            arguments = "{}"
            events.delta(f"{kind}.delta", len(arguments), **self.place(), delta=arguments)
        name = self._names.tool(self.call.name).name
        events.write(f"{kind}.done", **self.place(), name=name, arguments=arguments)
        return {**self.head(), "status": status, "arguments": arguments}


def to_annotation(given: object) -> Body | None:
    """Return the citation of a web page in a chat answer as an annotation; None for anything else."""
    cited = as_mapping(as_mapping(given).get("url_citation"))
    url = as_text(cited.get("url"))
    if not url:
        return None
    return {
        "type": "url_citation",
        "start_index": as_count(cited.get("start_index")),
        "end_index": as_count(cited.get("end_index")),
        "url": url,
        "title": as_text(cited.get("title")),
    }


def to_logprobs(given: Mapping[str, Any]) -> list[Body]:
    """Return the log probabilities of a choice in the form of this protocol."""
    content = given.get("content")
    found = (as_mapping(each) for each in content) if isinstance(content, list) else ()
    return [
        {
            "token": as_text(each.get("token")),
            "bytes": each.get("bytes") or [],
            "logprob": each.get("logprob") or 0.0,
            "top_logprobs": each.get("top_logprobs") or [],
        }
        for each in found
    ]


def _summary(text: str) -> Body:
    return {"type": "summary_text", "text": text}
