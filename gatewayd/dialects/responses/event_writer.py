"""Writes the numbered events of one response as frames; pure."""

from collections.abc import Collection
from typing import Any

import orjson

from gatewayd.completions.records import Body


class EventWriter:
    """Numbers events from 0 and collects their frames.

    `pieces` are the lengths of all deltas, with 0 for an annotation, and `pings` the numbers of the
    keep-alives: with them a stored response is replayed with the same events. In a replay `pings` are given.
    """

    def __init__(self, pings: Collection[int] = ()) -> None:
        self._frames: list[bytes] = []
        self._given_pings = frozenset(pings)
        self._number = 0
        self._first = 0
        self.head: Body = {}
        self.pieces: list[int] = []
        self.pings: list[int] = []

    def skip_to(self, number: int) -> None:
        """Drop the frames of all events before a number."""
        self._first = number

    def write(self, kind: str, **fields: Any) -> None:
        """Add one event."""
        while self._number in self._given_pings:
            self._write("response.in_progress", response=self.head)
        self._write(kind, **fields)

    def delta(self, kind: str, length: int, **fields: Any) -> None:
        """Add an event with a piece of text, or with an annotation, whose length is 0."""
        self.pieces.append(length)
        self.write(kind, **fields)

    def ping(self) -> None:
        """Add a keep-alive: the state of the response once more."""
        self.pings.append(self._number)
        self._write("response.in_progress", response=self.head)

    def take(self) -> bytes:
        """Return the frames not yet taken."""
        taken = b"".join(self._frames)
        self._frames.clear()
        return taken

    def _write(self, kind: str, **fields: Any) -> None:
        if self._number >= self._first:
            event = {"type": kind, "sequence_number": self._number, **fields}
            self._frames.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(event)))
        self._number += 1
