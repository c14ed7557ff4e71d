"""Splits a stream of JSON lines; pure."""

from gatewayd.upstream.sse import MAX_LINE, FramingError


class LineFramer:
    """Takes reads, gives the lines that are whole, without their ends."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._rest = bytearray()

    def feed(self, read: bytes) -> list[bytes]:
        """Take one read and return the lines that are now whole; raises FramingError."""
        searched = len(self._rest)
        self._rest += read
        if self._rest.find(b"\n", searched) < 0:
            return self._checked([])
        lines = bytes(self._rest).split(b"\n")
        self._rest = bytearray(lines.pop())
        return self._checked(lines)

    def finish(self) -> list[bytes]:
        """Return a last line that was not ended."""
        line = bytes(self._rest)
        self._rest.clear()
        return [line] if line else []

    def _checked(self, lines: list[bytes]) -> list[bytes]:
        if max(map(len, [*lines, self._rest])) > self._max_line:
            raise FramingError(f"it sent a line over {self._max_line} bytes")
        return lines
