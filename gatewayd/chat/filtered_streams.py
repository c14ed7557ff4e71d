"""A streamed answer that is passed on, as stream filters let its text through."""

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Self, TypeGuard

import orjson

from gatewayd.catalog.interfaces import Forwarded
from gatewayd.catalog.replies import Body, Chunk
from gatewayd.chat.conversions import Conversion
from gatewayd.chat.interfaces import ChatFilter
from gatewayd.completions.foreign import mapping, sequence, text
from gatewayd.errors import GatewayError, Kind

MAX_WHOLE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of an answer that is read whole to be changed."""

MAX_TYPE_CHARACTERS: Final = 64
"""Characters of the type of an event that stands in its `event:` line, too."""

EVENTS: Final = "text/event-stream"

Place = tuple[object, object]
"""Where a text stands in an answer of the Responses protocol: the indexes of item and part."""


class ChangedAnswer:
    """A `catalog.interfaces.Forwarded` over another one, whose events or object are changed on their way.

    `own` are fields of the answer that repeat the request, as the caller has sent them.
    """

    def __init__(
        self,
        answer: Forwarded,
        conversion: Conversion,
        filters: Sequence[ChatFilter],
        own: Mapping[str, Any] | None = None,
    ) -> None:
        self._answer = answer
        self._conversion = conversion
        self._filters = filters
        self._own = own
        self._number = 0
        self._texts: dict[Place, list[str]] = defaultdict(list)
        self._parts = self._changed()

    @property
    def status(self) -> int:
        """The HTTP status, below 300."""
        return self._answer.status

    @property
    def content_type(self) -> str:
        """The media type with its parameters, empty when none was named."""
        return self._answer.content_type

    def __aiter__(self) -> Self:
        """Return itself: a body is read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return what came since, changed; raises what the answer raises."""
        return await anext(self._parts)

    async def aclose(self) -> None:
        """Close the provider's connection at once unless the body was read to its end."""
        await self._parts.aclose()
        await self._answer.aclose()

    async def _changed(self) -> AsyncGenerator[bytes, None]:
        is_stream = self.content_type.lower().startswith(EVENTS)
        async with aclosing(self._answer) as reads:
            if not is_stream:
                yield self._whole(await _read(reads))
                return
            async for read in reads:
                changed = b"".join([part async for part in self._frames(read)])
                if changed:
                    yield changed

    async def _frames(self, read: bytes) -> AsyncIterator[bytes]:
        """Yield the frames of a read, which holds whole ones."""
        for frame in filter(None, read.split(b"\n\n")):
            event = _event_in(frame)
            if event is None:
                yield frame + b"\n\n"
                continue
            for changed in await self._events(event):
                yield _frame(self._numbered(self._repeated(self._told(changed))))

    async def _events(self, event: Body) -> list[Body]:
        """Return an event as the filters let it through: several, or none."""
        shown = self._conversion.to_chunk(event) if self._filters else None
        if shown is None:
            return [event]
        chunk = Chunk(events=[shown])
        for item in self._filters:
            chunk = await item.stream(chunk)
        changed = [made for one in chunk.events for made in self._conversion.from_chunk(event, one)]
        for one in changed:
            if "delta" in one:
                self._texts[_place(one)].append(text(one["delta"]))
        return changed

    def _numbered(self, event: Body) -> Body:
        """Return an event with its place in the stream, which filters may have made longer or shorter."""
        if not self._filters or "sequence_number" not in event:
            return event
        self._number += 1
        return {**event, "sequence_number": self._number - 1}

    def _told(self, event: Body) -> Body:
        """Return an event that repeats texts with what the filters made of them."""
        if not self._filters:
            return event
        match event.get("type"):
            case "response.output_text.done":
                return {**event, "text": self._said(_place(event), event.get("text"))}
            case "response.content_part.done":
                return {**event, "part": self._part(_place(event), mapping(event.get("part")))}
            case "response.output_item.done":
                item = self._item(event.get("output_index"), mapping(event.get("item")))
                return {**event, "item": item}
            case "response.completed" | "response.incomplete" | "response.failed":
                response = mapping(event.get("response"))
                output = [
                    self._item(place, mapping(item))
                    for place, item in enumerate(sequence(response.get("output")))
                ]
                return {**event, "response": {**response, "output": output}}
            case _:
                return event

    def _item(self, place: object, item: Mapping[str, Any]) -> Body:
        if item.get("type") != "message":
            return dict(item)
        parts = enumerate(map(mapping, sequence(item.get("content"))))
        return {**item, "content": [self._part((place, index), part) for index, part in parts]}

    def _part(self, place: Place, part: Mapping[str, Any]) -> Body:
        if part.get("type") != "output_text":
            return dict(part)
        return {**part, "text": self._said(place, part.get("text"))}

    def _said(self, place: Place, given: object) -> str:
        return "".join(self._texts[place]) if place in self._texts else text(given)

    def _repeated(self, event: Body) -> Body:
        """Return an event whose response repeats the caller's own words alone."""
        response = event.get("response")
        if self._own is None or not isinstance(response, dict):
            return event
        return {**event, "response": {**response, **self._own}}

    def _whole(self, raw: bytes) -> bytes:
        if self._own is None:
            return raw
        try:
            return orjson.dumps({**orjson.loads(raw), **self._own})
        except (orjson.JSONDecodeError, TypeError) as error:
            raise GatewayError(
                Kind.UPSTREAM_FAILED, "cannot pass an answer on: it is not a JSON object"
            ) from error


async def _read(reads: Forwarded) -> bytes:
    data = bytearray()
    async for read in reads:
        data += read
        if len(data) > MAX_WHOLE_BYTES:
            raise GatewayError(
                Kind.UPSTREAM_FAILED, f"cannot pass an answer on: it is over {MAX_WHOLE_BYTES} bytes"
            )
    return bytes(data)


def _event_in(frame: bytes) -> Body | None:
    """Return the object of a frame, None for one that holds none."""
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
    """Tell whether a type may stand in a line: it comes from a provider, and could hold the end of one."""
    if not isinstance(kind, str) or len(kind) > MAX_TYPE_CHARACTERS:
        return False
    return kind.isascii() and kind.replace(".", "_").isidentifier()


def _place(event: Mapping[str, Any]) -> Place:
    return event.get("output_index"), event.get("content_index")
