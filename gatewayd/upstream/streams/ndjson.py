"""Framer for streams of JSON lines; without I/O."""

from gatewayd.completions.limits import MAX_LINE_BYTES
from gatewayd.upstream.streams.sse import FramingError


class LineFramer:
    """Splits reads into complete lines without their ends.

    A line that is too long ends the stream: the lines before it are returned, and `broken` is set.
    """

    def __init__(self, max_line: int = MAX_LINE_BYTES) -> None:
        self._max_line = max_line
        self._rest = bytearray()
        self.broken: FramingError | None = None

    def feed(self, read: bytes) -> list[bytes]:
        """Return the lines that one read completes; raises FramingError if there can be no more."""
        if self.broken is not None:
            raise self.broken
        searched = len(self._rest)
        self._rest += read
        lines: list[bytes] = []
        if self._rest.find(b"\n", searched) >= 0:
            lines = bytes(self._rest).split(b"\n")
            self._rest = bytearray(lines.pop())
        return self._checked(lines)

    def finish(self) -> list[bytes]:
        """Return the last line if it has no end; raises the errors of `feed`."""
        if self.broken is not None:
            raise self.broken
        line = bytes(self._rest)
        self._rest.clear()
        return [line] if line else []

    def _checked(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines before the first that is too long; raises FramingError if there are none."""
        long = next((i for i, line in enumerate(lines) if len(line) > self._max_line), len(lines))
        if long < len(lines) or len(self._rest) > self._max_line:
            self.broken = FramingError(f"it sent a line over {self._max_line} bytes")
            if not long:
                raise self.broken
        return lines[:long]
