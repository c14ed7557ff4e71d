"""Applies stream filters to forwarded replies of the completions and responses endpoints."""

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeGuard

import orjson

from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.completions.json_access import as_count, as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.filters.conversions import RequestConversion, content_deltas
from gatewayd.pipeline.filters.forwarded_answers import PassedAnswer
from gatewayd.pipeline.interfaces import ChatFilter

MAX_WHOLE_BYTES: Final = 32 * 1024 * 1024
"""Maximum size of a reply that is buffered to be changed."""

MAX_TYPE_CHARACTERS: Final = 64
"""Maximum length of an event type that is repeated in an `event:` line."""

EVENT_STREAM_TYPE: Final = "text/event-stream"

UNFINISHED_TYPE_ENDINGS: Final = (".added", ".created", ".queued", ".in_progress")
"""Endings of the event types whose texts may continue."""

TextPosition = tuple[int | None, int | None]
"""Position of a text in a reply of the Responses protocol: the indexes of item and part."""


class ChangedAnswer(PassedAnswer):
    """A `catalog.interfaces.ForwardedAnswer` that wraps another one and changes its events or object.

    `own` holds reply fields that echo the request, with the caller's values. If a stream was requested,
    filters process an unstreamed reply as they would have processed the stream.
    """

    def __init__(
        self,
        answer: ForwardedAnswer,
        conversion: RequestConversion,
        filters: Sequence[ChatFilter],
        own: Mapping[str, Any] | None = None,
        *,
        is_stream_asked: bool = True,
    ) -> None:
        super().__init__(answer)
        self._conversion = conversion
        self._filters = filters
        self._echoed = own
        self._is_stream_asked = is_stream_asked
        self._number = 0
        self._texts: dict[TextPosition, list[str]] = defaultdict(list)
        self._open: set[TextPosition] = set()

    async def _body(self) -> AsyncGenerator[bytes, None]:
        is_stream = self.content_type.lower().startswith(EVENT_STREAM_TYPE)
        async with aclosing(self._answer) as reads:
            if not is_stream:
                yield await self._whole(await _read(reads))
                return
            async for read in reads:
                changed = b"".join([part async for part in self._frames(read)])
                if changed:
                    yield changed

    async def _frames(self, read: bytes) -> AsyncIterator[bytes]:
        """Yield the frames of a read, which holds whole frames."""
        for frame in filter(None, read.split(b"\n\n")):
            event = _event_in(frame)
            if event is None:
                yield frame + b"\n\n"
                continue
            for changed in await self._events(event):
                yield _frame(self._renumber(self._restore_echo(await self._with_filtered_texts(changed))))

    async def _events(self, event: Body) -> list[Body]:
        """Return an event after the filters: several, one or none."""
        position, is_end = _position(event), event.get("type") == "response.output_text.done"
        if self._filters and is_end and position not in self._texts:
            await self._filtered_text(position, event.get("text"))
        changed = await self._filtered(event)
        for one in changed:
            if one.get("type") == "response.output_text.delta":
                self._texts[position].append(as_text(one["delta"]))
                self._open.add(position)
        if is_end:
            self._open.discard(position)
        return changed

    async def _filtered(self, event: Body) -> list[Body]:
        chunk = self._conversion.to_chunk(event) if self._filters else None
        if chunk is None:
            return [event]
        events = await self._run_filters([chunk])
        return [made for one in events for made in self._conversion.from_chunk(event, one)]

    async def _run_filters(self, events: list[Body]) -> list[Body]:
        """Return the events of a chunk after the filters."""
        chunk = CompletionChunk(events=events)
        for item in self._filters:
            chunk = await item.stream(chunk)
        return chunk.events

    def _renumber(self, event: Body) -> Body:
        """Return an event with a new sequence number, since filters may add and remove events."""
        if not self._filters or "sequence_number" not in event:
            return event
        self._number += 1
        return {**event, "sequence_number": self._number - 1}

    async def _with_filtered_texts(self, event: Body) -> Body:
        """Return an event with whole texts replaced by their filtered versions."""
        if not self._filters:
            return event
        kind, position = as_text(event.get("type")), _position(event)
        is_over = not kind.endswith(UNFINISHED_TYPE_ENDINGS)
        if kind == "response.output_text.done":
            return _with_text(event, await self._filtered_text(position, event.get("text")))
        if "part" in event:
            return {**event, "part": await self._part(position, event["part"], is_over=is_over)}
        if "item" in event:
            return {**event, "item": await self._item(position[0], event["item"], is_over=is_over)}
        if isinstance(event.get("response"), dict):
            response = await self._response(event["response"], is_over=is_over)
            return {**event, "response": response}
        return event

    async def _response(self, response: Body, *, is_over: bool = True) -> Body:
        if not isinstance(response.get("output"), list):
            return response
        items = enumerate(response["output"])
        output = [await self._item(position, item, is_over=is_over) for position, item in items]
        return {**response, "output": output}

    async def _item(self, position: int | None, item: object, *, is_over: bool) -> object:
        if not isinstance(item, dict) or item.get("type") != "message":
            return item
        parts = enumerate(as_sequence(item.get("content")))
        content = [await self._part((position, index), part, is_over=is_over) for index, part in parts]
        return {**item, "content": content}

    async def _part(self, position: TextPosition, part: object, *, is_over: bool) -> object:
        if not isinstance(part, dict) or part.get("type") != "output_text":
            return part
        return _with_text(part, await self._filtered_text(position, part.get("text"), is_over=is_over))

    async def _filtered_text(self, position: TextPosition, given: object, *, is_over: bool = True) -> str:
        """Return the filtered version of a text: of its pieces, or of the whole if no pieces came."""
        text = as_text(given)
        is_new = position not in self._texts
        if is_new and not text:
            return text
        if is_new or (is_over and position in self._open):
            choice = {
                "index": as_count(position[0]),
                "delta": {"content": text} if is_new else {},
                "finish_reason": "stop" if is_over else None,
            }
            events = await self._run_filters([{"object": "chat.completion.chunk", "choices": [choice]}])
            self._texts[position].extend(content_deltas(event) for event in events)
            (self._open.discard if is_over else self._open.add)(position)
        return "".join(self._texts[position])

    def _restore_echo(self, event: Body) -> Body:
        """Return an event whose response echoes only the caller's own values."""
        response = event.get("response")
        if self._echoed is None or not isinstance(response, dict):
            return event
        return {**event, "response": {**response, **self._echoed}}

    async def _whole(self, raw: bytes) -> bytes:
        filters_read = bool(self._filters) and self._is_stream_asked
        if self._echoed is None and not filters_read:
            return raw
        try:
            whole = {**orjson.loads(raw), **(self._echoed or {})}
        except (orjson.JSONDecodeError, TypeError) as error:
            raise GatewayError(
                ErrorKind.UPSTREAM_FAILED, "cannot pass an answer on: it is not a JSON object"
            ) from error
        if filters_read:
            whole = await self._filtered_whole(whole)
        return orjson.dumps(whole)

    async def _filtered_whole(self, whole: Body) -> Body:
        """Return a whole reply to a stream request after the filters."""
        choices = [as_mapping(choice) for choice in as_sequence(whole.get("choices"))]
        if not choices:
            return await self._response(whole)
        ended = [{**choice, "finish_reason": choice.get("finish_reason") or "stop"} for choice in choices]
        (changed,) = await self._filtered({**whole, "choices": ended})
        return changed


async def _read(reads: ForwardedAnswer) -> bytes:
    data = bytearray()
    async for read in reads:
        data += read
        if len(data) > MAX_WHOLE_BYTES:
            raise GatewayError(
                ErrorKind.UPSTREAM_FAILED, f"cannot pass an answer on: it is over {MAX_WHOLE_BYTES} bytes"
            )
    return bytes(data)


def _event_in(frame: bytes) -> Body | None:
    """Return the JSON object of a frame; None if it holds none."""
    data = next(_data_of(frame), b"")
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return event if isinstance(event, dict) else None


def _data_of(frame: bytes) -> Iterator[bytes]:
    for line in frame.split(b"\n"):
        if line.startswith(b"data:"):
            yield line[5:]


def _frame(event: Body) -> bytes:
    kind = event.get("type")
    name = b"event: %s\n" % kind.encode() if _is_name(kind) else b""
    return b"%sdata: %s\n\n" % (name, orjson.dumps(event))


def _is_name(kind: object) -> TypeGuard[str]:
    """Return True if a provider's event type is safe inside an `event:` line."""
    if not isinstance(kind, str) or len(kind) > MAX_TYPE_CHARACTERS:
        return False
    return kind.isascii() and kind.replace(".", "_").isidentifier()


def _position(event: Mapping[str, Any]) -> TextPosition:
    return _index(event.get("output_index")), _index(event.get("content_index"))


def _index(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _with_text(holder: Body, text: str) -> Body:
    """Return an object with another text; drop the token probabilities of the old text."""
    if "logprobs" in holder and text != holder.get("text"):
        holder = {**holder, "logprobs": []}
    return {**holder, "text": text}
