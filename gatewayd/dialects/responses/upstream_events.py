"""Converts the events of a Responses stream to OpenAI chunks; pure.

Providers differ in what they send: arguments only in the event that ends them, items only when they are
done, other ids at the end than at the start, or an empty output in the last event. So each item is known by
its place in the output, and every event that repeats a whole text gives the part of it that was not yet sent.
"""

from collections.abc import Mapping
from typing import Any

from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.limits import AnswerSizeError, check_calls
from gatewayd.completions.records import Body
from gatewayd.dialects.responses.reasoning_details import PARAGRAPH, detail_of
from gatewayd.dialects.responses.upstream_reply import (
    failure_of,
    finish_reason,
    head_of,
    to_annotation,
    to_call,
    to_usage,
)

MAX_PARTS = 10_000
"""Maximum number of items of an answer, and of their texts."""

HEADS = frozenset({"response.created", "response.in_progress", "response.queued"})
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})

_CONTENT = {"output_text": "text", "refusal": "refusal", "reasoning_text": "reasoning_text"}

_TEXTS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_summary_text": "summary_text",
    "response.reasoning_text": "reasoning_text",
}
"""Kinds of texts by the start of their event types, which end in `.delta` or `.done`."""

_FIELDS = {"text": "content", "refusal": "refusal"}
"""Fields of a delta by kinds of texts; all others are reasoning."""


class ResponseDecoder:
    """Converts the events of one stream, in order, to chat.completion.chunk objects.

    `error` holds the error of the stream, `is_done` and `is_complete` are set at its end. `origin` is the
    source, which alone can decrypt the reasoning. With `include_usage` a chunk with the usage is the last.
    """

    def __init__(self, created: int, origin: str, *, include_usage: bool) -> None:
        self._created = created
        self._origin = origin
        self._include_usage = include_usage
        self._head: Body = head_of({}, created)
        self._has_begun = False
        self._items: dict[object, _Item] = {}
        self._calls = 0
        self._details = 0
        self._text_length = 0
        self._has_reasoning = False
        self._parts = 0
        self.error: object = None
        self.is_done = False
        self.is_complete = False

    def decode(self, event: Mapping[str, Any]) -> list[Body]:
        """Return the chunks for one event; unknown events give none."""
        kind = as_text(event.get("type"))
        if kind in HEADS:
            return self._begin(as_mapping(event.get("response")))
        if kind in ENDS:
            return self._begin(as_mapping(event.get("response"))) + self._end(kind, event)
        if kind == "error":
            self.error = event.get("error") or event
            return []
        start, _, ending = kind.rpartition(".")
        if start in _TEXTS:
            return self._text_event(start, ending, event)
        return self._begin({}) + self._item_event(kind, event)

    def _begin(self, response: Mapping[str, Any]) -> list[Body]:
        if response.get("id"):
            self._head = head_of(response, self._created)
        if self._has_begun:
            return []
        self._has_begun = True
        return [self._chunk({"role": "assistant", "content": ""})]

    def _item_event(self, kind: str, event: Mapping[str, Any]) -> list[Body]:
        key = _key(event)
        match kind:
            case "response.output_item.added":
                return self._added(key, as_mapping(event.get("item")))
            case "response.output_item.done":
                return self._item_done(key, as_mapping(event.get("item")))
            case "response.function_call_arguments.delta":
                return self._arguments(self._item(key), as_text(event.get("delta")))
            case "response.function_call_arguments.done":
                item = self._item(key)
                return self._arguments(item, as_text(event.get("arguments"))[item.sent.get(_ARGUMENTS, 0) :])
            case "response.output_text.annotation.added":
                self._count_part()
                self._item(key).annotations.append(event.get("annotation"))
            case _:
                pass
        return []

    def _text_event(self, start: str, ending: str, event: Mapping[str, Any]) -> list[Body]:
        kind, item = _TEXTS[start], self._item(_key(event))
        place = "summary_index" if kind == "summary_text" else "content_index"
        part = (kind, as_count(event.get(place)))
        chunks = self._begin({})
        if ending == "delta":
            return chunks + self._text(item, part, as_text(event.get("delta")), event.get("logprobs"))
        if ending == "done":
            whole = as_text(event.get("refusal" if kind == "refusal" else "text"))
            return chunks + self._rest(item, part, whole)
        return chunks

    def _item(self, key: object) -> "_Item":
        item = self._items.get(key)
        if item is None:
            self._count_part()
            item = self._items[key] = _Item()
        return item

    def _count_part(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise AnswerSizeError(f"it has over {MAX_PARTS} parts")

    def _added(self, key: object, given: Mapping[str, Any]) -> list[Body]:
        item = self._item(key)
        if given.get("type") != "function_call" or item.is_call:
            return []
        item.call, self._calls = self._calls, self._calls + 1
        check_calls(self._calls)
        function = {"name": given.get("name"), "arguments": ""}
        call = {
            "index": item.call,
            "id": given.get("call_id") or given.get("id"),
            "type": "function",
            "function": function,
        }
        return [self._chunk({"tool_calls": [call]}), *self._arguments(item, as_text(given.get("arguments")))]

    def _arguments(self, item: "_Item", part: str) -> list[Body]:
        if not part or not item.is_call:
            return []
        item.count(_ARGUMENTS, part)
        return [self._chunk({"tool_calls": [{"index": item.call, "function": {"arguments": part}}]})]

    def _item_done(self, key: object, given: Mapping[str, Any]) -> list[Body]:
        item = self._item(key)
        if item.is_done:
            return []
        item.is_done = True
        match given.get("type"):
            case "function_call":
                chunks = self._added(key, given)
                whole = as_text(given.get("arguments")) or "{}"
                return chunks + self._arguments(item, whole[item.sent.get(_ARGUMENTS, 0) :])
            case "custom_tool_call":
                call = {"index": self._calls, **to_call(given)}
                self._calls += 1
                check_calls(self._calls)
                return [self._chunk({"tool_calls": [call]})]
            case "reasoning":
                return self._reasoning_done(item, given)
            case "message":
                return self._message_done(item, given)
            case _:
                return []

    def _message_done(self, item: "_Item", given: Mapping[str, Any]) -> list[Body]:
        chunks: list[Body] = []
        annotations: list[Any] = []
        for index, part in enumerate(map(as_mapping, as_sequence(given.get("content")))):
            kind = _CONTENT.get(as_text(part.get("type")), "text")
            whole = as_text(part.get("refusal" if kind == "refusal" else "text"))
            chunks += self._rest(item, (kind, index), whole)
            annotations += as_sequence(part.get("annotations"))
        found = [to_annotation(each, item.start) for each in annotations or item.annotations]
        return [*chunks, self._chunk({"annotations": found})] if found else chunks

    def _reasoning_done(self, item: "_Item", given: Mapping[str, Any]) -> list[Body]:
        chunks: list[Body] = []
        for name, kind in (("content", "reasoning_text"), ("summary", "summary_text")):
            for index, part in enumerate(map(as_mapping, as_sequence(given.get(name)))):
                chunks += self._rest(item, (kind, index), as_text(part.get("text")))
        detail = detail_of(given, self._origin, self._details, self._calls)
        if detail is None:
            return chunks
        self._details += 1
        return [*chunks, self._chunk({"reasoning_details": [detail]})]

    def _rest(self, item: "_Item", part: tuple[str, int], whole: str) -> list[Body]:
        return self._text(item, part, whole[item.sent.get(part, 0) :], None)

    def _text(self, item: "_Item", part: tuple[str, int], text: str, logprobs: Any) -> list[Body]:
        """Return the chunk for a piece of one text of an item, with a paragraph where another text ends."""
        kind = part[0]
        if part not in item.sent:
            self._count_part()
        field = _FIELDS.get(kind, "reasoning_content")
        # Open models may send their reasoning and a summary of it: the one that came first is enough.
        if not text or (field == "reasoning_content" and item.reasoning not in ("", kind)):
            return []
        piece = text
        if field == "reasoning_content":
            item.reasoning = kind
            if self._has_reasoning and part not in item.sent:
                piece = PARAGRAPH + text
            self._has_reasoning = True
        elif field == "content":
            piece = self._joined(item, text)
        item.count(part, text)
        chunk = self._chunk({field: piece})
        if logprobs and isinstance(logprobs, list):
            chunk["choices"][0]["logprobs"] = {"content": logprobs, "refusal": None}
        return [chunk]

    def _joined(self, item: "_Item", text: str) -> str:
        """Return a piece of the answer, with a paragraph before it where another message begins."""
        piece = text
        if not item.has_text:
            piece = PARAGRAPH + text if self._text_length else text
            item.has_text, item.start = True, self._text_length + len(piece) - len(text)
        self._text_length += len(piece)
        return piece

    def _end(self, kind: str, event: Mapping[str, Any]) -> list[Body]:
        status = {"response.failed": "failed", "response.cancelled": "cancelled"}.get(kind, "completed")
        response = {"status": status, **as_mapping(event.get("response"))}
        if kind == "response.incomplete":
            response["status"] = "incomplete"
        self.error = failure_of(response)
        if self.error is not None:
            return []
        chunks: list[Body] = []
        for index, item in enumerate(map(as_mapping, as_sequence(response.get("output")))):
            item_id = as_text(item.get("id"))
            is_known_by_id = index not in self._items and item_id in self._items
            chunks += self._item_done(item_id if is_known_by_id else index, item)
        last = self._chunk({})
        last["choices"][0]["finish_reason"] = finish_reason(response, calls=self._calls)
        chunks.append(last)
        if self._include_usage:
            usage = to_usage(as_mapping(response.get("usage")))
            chunks.append({**self._chunk({}), "choices": [], "usage": usage})
        self.is_complete = self.is_done = True
        return chunks

    def _chunk(self, delta: Body) -> Body:
        return {
            **self._head,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}],
        }


_ARGUMENTS = ("arguments", 0)


class _Item:
    """One item of the output, with the characters of its texts that were sent; `call` numbers a call."""

    def __init__(self) -> None:
        self.call: int | None = None
        self.sent: dict[tuple[str, int], int] = {}
        self.annotations: list[Any] = []
        self.reasoning = ""
        self.has_text = False
        self.start = 0
        self.is_done = False

    @property
    def is_call(self) -> bool:
        """Whether the item is a call of a function."""
        return self.call is not None

    def count(self, part: tuple[str, int], text: str) -> None:
        """Add a piece to what was sent of a part."""
        self.sent[part] = self.sent.get(part, 0) + len(text)


def _key(event: Mapping[str, Any]) -> object:
    """Return the place of an item in the output, or its id where a provider numbers nothing."""
    index = event.get("output_index")
    return (
        index
        if type(index) is int
        else as_text(event.get("item_id") or as_mapping(event.get("item")).get("id"))
    )
