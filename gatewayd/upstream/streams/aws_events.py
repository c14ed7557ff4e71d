"""Splits the binary event stream of Bedrock into the events of the messages protocol; without I/O.

A message is: its length and that of its headers (four bytes each, the most significant first), a CRC of
both, the headers, the payload, and a CRC of all of it. A payload is `{"bytes": base64 of an event}`.
"""

import base64
import binascii
import struct
from collections.abc import Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.json_access import as_text
from gatewayd.completions.limits import MAX_LINE_BYTES
from gatewayd.upstream.streams.sse import FramingError, decode_payload

MAX_HEADER_BYTES: Final = 64 * 1024
"""Maximum number of bytes of the headers of one message."""

_PRELUDE: Final = struct.Struct("!III")
_FRAME_BYTES: Final = _PRELUDE.size + 4
_TEXT: Final = 7
_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; types 6 and 7 begin with their length."""

_TYPES: Final = {
    "throttlingException": "rate_limit_error",
    "serviceUnavailableException": "overloaded_error",
    "modelTimeoutException": "timeout_error",
    "validationException": "invalid_request_error",
}


class AwsEventFramer:
    """A `StreamFramer` of such a stream; an exception becomes an `error` event."""

    def __init__(self, max_message: int = MAX_LINE_BYTES) -> None:
        self._max_message = max_message
        self._rest = bytearray()
        self.broken: FramingError | None = None

    def feed(self, read: bytes) -> list[bytes]:
        """Return the events that one read completes; raises FramingError."""
        self._rest += read
        found: list[bytes] = []
        start = 0
        while len(self._rest) - start >= _PRELUDE.size:
            size = self._size(start)
            if len(self._rest) - start < size:
                break
            event = _event(bytes(self._rest[start : start + size]))
            start += size
            if event is not None:
                found.append(event)
        del self._rest[:start]
        return found

    def finish(self) -> list[bytes]:
        """Return nothing; raises FramingError for a message that is cut off."""
        if self._rest:
            raise FramingError("its answer ended within a message")
        return []

    def _size(self, start: int) -> int:
        size, _, check = _PRELUDE.unpack_from(self._rest, start)
        if binascii.crc32(self._rest[start : start + 8]) != check:
            raise FramingError("it sent a message with a wrong checksum")
        if not _FRAME_BYTES <= size <= self._max_message:
            raise FramingError(f"it sent a message of {size} bytes")
        return int(size)


def _event(message: bytes) -> bytes | None:
    """Return the event of a whole message, None for a message without one."""
    size, header_size, _ = _PRELUDE.unpack_from(message)
    end = _PRELUDE.size + header_size
    if header_size > MAX_HEADER_BYTES or end > size - 4:
        raise FramingError("it sent a message whose headers are too long")
    if binascii.crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
        raise FramingError("it sent a message with a wrong checksum")
    headers = _headers(message[_PRELUDE.size : end])
    payload = message[end:-4]
    kind = headers.get(":message-type", "event")
    if kind != "event":
        return _failure(headers, payload)
    if not payload.strip():
        return None
    encoded = decode_payload(payload).get("bytes")
    if encoded is None:
        return None
    try:
        return base64.b64decode(as_text(encoded), validate=True)
    except ValueError as error:
        raise FramingError("it sent an event that is not base64") from error


def _headers(data: bytes) -> dict[str, str]:
    """Return the headers that are texts."""
    found: dict[str, str] = {}
    place = 0
    try:
        while place < len(data):
            name_end = place + 1 + data[place]
            name, kind = data[place + 1 : name_end].decode("latin-1"), data[name_end]
            place = name_end + 1
            size = _SIZES.get(kind)
            if size is None:
                size = int.from_bytes(data[place : place + 2], "big")
                place += 2
            if kind == _TEXT:
                found[name] = data[place : place + size].decode("utf-8", "replace")
            place += size
    except IndexError as error:
        raise FramingError("it sent a message with broken headers") from error
    return found


def _failure(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return the `error` event for an exception or an error."""
    name = headers.get(":exception-type") or headers.get(":error-code", "")
    said: Mapping[str, Any] = {}
    if payload.lstrip()[:1] == b"{":
        said = decode_payload(payload)
    message = as_text(said.get("message")) or headers.get(":error-message") or name or "an unknown error"
    error = {"type": _TYPES.get(name, "api_error"), "message": message}
    return orjson.dumps({"type": "error", "error": error})
