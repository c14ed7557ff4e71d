"""Reader for streams of other protocols: a framer splits them, a decoder converts the objects to chunks."""

from collections.abc import Mapping
from typing import Any, Protocol

from gatewayd.completions.limits import AnswerSizeError
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.upstream.streams.sse import DONE_WORD, FramingError, decode_payload, drop_truncated


class StreamFramer(Protocol):
    """Splits reads into JSON texts; a set `broken` means that nothing follows the returned texts."""

    broken: FramingError | None

    def feed(self, read: bytes) -> list[bytes]:
        """Return the texts that one read completes; raises FramingError if there can be no more."""
        ...

    def finish(self) -> list[bytes]:
        """Return the text that the end of the stream completes; raises the errors of `feed`."""
        ...


class StreamDecoder(Protocol):
    """Converts the objects of one stream into chat.completion.chunk objects."""

    error: object
    is_done: bool
    is_complete: bool

    def decode(self, event: Mapping[str, Any], /) -> list[Body]:
        """Return the chunks for one object."""
        ...


class DecodingReader:
    """A `StreamReader` of a framer and a decoder."""

    def __init__(self, framer: StreamFramer, decoder: StreamDecoder) -> None:
        self._framer = framer
        self._decoder = decoder
        self._broken: FramingError | None = None

    @property
    def error(self) -> object:
        """The error object in the stream, a FramingError for a malformed stream, or None."""
        return self._broken or self._decoder.error

    @property
    def is_done(self) -> bool:
        """Whether the rest of the stream can be ignored."""
        return self._decoder.is_done

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        return self._decoder.is_complete

    def feed(self, read: bytes) -> CompletionChunk | None:
        """Return the chunks of the texts that one read completes, or None; raises FramingError."""
        return None if self._is_over else self._chunk(self._framer.feed(read))

    def finish(self) -> CompletionChunk | None:
        """Process the end of the stream; raises FramingError."""
        return None if self._is_over else self._chunk(drop_truncated(self._framer.finish()))

    @property
    def _is_over(self) -> bool:
        return self.is_done or self.error is not None

    def _chunk(self, texts: list[bytes]) -> CompletionChunk | None:
        events: list[Body] = []
        for text in texts:
            if self._is_over:
                break
            if text.strip() in (b"", DONE_WORD):
                continue
            try:
                event = decode_payload(text)
            except FramingError as error:
                self._broken = error
                break
            try:
                events += self._decoder.decode(event)
            except AnswerSizeError as error:
                self._broken = FramingError(error.reason)
        if not self._is_over:
            self._broken = self._framer.broken
        return CompletionChunk(events=events) if events else None
