"""Interfaces of the frames of streams: what a dialect tells before, within and behind an answer."""

from typing import Protocol

from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import GatewayError


class StreamOpening(Protocol):
    """The part of a dialect that a stream needs before its answer; `content_type` is None for events."""

    @property
    def content_type(self) -> str | None:
        """The media type."""
        ...

    def ping(self) -> bytes:
        """Return a keep-alive frame."""
        ...

    def fail(self, error: GatewayError) -> bytes:
        """Return the error frame that ends a broken answer."""
        ...


class FrameRenderer(Protocol):
    """Renderer of one stream in the dialect of the caller."""

    def feed(self, chunk: CompletionChunk) -> bytes:
        """Return whole frames for a chunk, b"" for none."""
        ...

    def ping(self) -> bytes:
        """Return a keep-alive frame."""
        ...

    def finish(self) -> bytes:
        """Return the frames that end a complete answer."""
        ...

    def fail(self, error: GatewayError) -> bytes:
        """Return the error frame that ends a broken answer."""
        ...
