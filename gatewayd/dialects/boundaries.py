"""Cuts the bytes of an event stream between its events, without a look at what they say."""

from typing import Final

from gatewayd.errors import GatewayError, Kind

MAX_EVENT: Final = 32 * 1024 * 1024
"""Bytes of the longest event."""

BLANK_LINES: Final = (b"\n\n", b"\n\r\n", b"\r\r")


class WholeEvents:
    """Keeps the begun event of each read back until it is whole.

    So something can be added after any output, and what a provider broke off is never taken for an event.
    """

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._held = bytearray()

    def feed(self, read: bytes) -> bytes:
        """Take one read and return the events that are now whole; upstream_failed for an endless one."""
        searched = max(0, len(self._held) - 2)
        self._held += read
        end = max(_after(self._held, blank, searched) for blank in BLANK_LINES)
        whole = bytes(self._held[:end])
        del self._held[:end]
        if len(self._held) > self._limit:
            raise GatewayError(
                Kind.UPSTREAM_FAILED, f"cannot pass the answer on: an event is over {self._limit} bytes"
            )
        return whole

    def finish(self) -> bytes:
        """Return what is left when the stream came to its end."""
        return bytes(self._held)


def _after(data: bytearray, blank: bytes, start: int) -> int:
    """Return where the last blank line ends, 0 when there is none."""
    found = data.rfind(blank, start)
    return found + len(blank) if found >= 0 else 0
