"""Numbering of the frames of an event stream, and their selection by number; pure."""

import re
from typing import Final

FRAME_END: Final = b"\n\n"
_ID_LINE: Final = re.compile(rb"(?m)^id(?::[^\n]*)?(?:\n|\Z)")


class FrameNumbering:
    """Gives each frame of one stream an `id`, 1 for the first (HTML, 9.2.6).

    Ids of the source are removed. Frames without data or event name, such as comments, are dropped, because
    clients ignore them.
    """

    def __init__(self) -> None:
        self.last = 0
        """The number of the newest frame."""
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that some bytes complete, numbered."""
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._rest:
            data = self._rest + data
            self._rest = b""
        *frames, self._rest = data.split(FRAME_END)
        numbered = []
        for frame in frames:
            numbered += self._numbered(frame)
        return numbered

    def finish(self, *, is_complete: bool) -> list[bytes]:
        """Return a last frame without its blank line, numbered; drop it unless the answer is complete."""
        rest, self._rest = self._rest, b""
        return self._numbered(rest) if is_complete else []

    def _numbered(self, frame: bytes) -> list[bytes]:
        frame = frame.strip(b"\n")
        if frame.startswith(b"id") or b"\nid" in frame:
            frame = _ID_LINE.sub(b"", frame).strip(b"\n")
        if not frame.startswith((b"data", b"event", b"retry")) and b"\ndata" not in frame:
            return []
        self.last += 1
        return [b"id: %d\n%b\n\n" % (self.last, frame)]


def frames_after(joined: bytes, first: int, after: int) -> bytes:
    """Return the numbered frames after a number; `first` is the number of the first of the joined frames."""
    skipped = after - first + 1
    if skipped <= 0:
        return joined
    at = 0
    for _ in range(skipped):
        at = joined.index(FRAME_END, at) + len(FRAME_END)
    return joined[at:]
