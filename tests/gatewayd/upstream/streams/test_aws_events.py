"""Tests for gatewayd.upstream.streams.aws_events."""

import base64
import binascii
import struct

import orjson
import pytest

from gatewayd.upstream.streams.aws_events import AwsEventFramer
from gatewayd.upstream.streams.sse import FramingError
from tests.fakes.providers.strict.aws_events import aws_event, aws_message

FIRST, SECOND = b'{"type":"message_start"}', b'{"type":"message_stop"}'


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_events_are_found_whatever_their_parts(size: int) -> None:
    stream = aws_event(FIRST) + aws_message({":event-type": "initial"}, b"") + aws_event(SECOND)
    framer = AwsEventFramer()
    found: list[bytes] = []
    for start in range(0, len(stream), size):
        found += framer.feed(stream[start : start + size])
    assert found == [FIRST, SECOND]
    assert framer.finish() == []


@pytest.mark.parametrize(
    ("headers", "payload", "error"),
    [
        (
            {":message-type": "exception", ":exception-type": "throttlingException"},
            b'{"message": "slow"}',
            {"type": "rate_limit_error", "message": "slow"},
        ),
        (
            {":message-type": "error", ":error-code": "X", ":error-message": "odd"},
            b"",
            {"type": "api_error", "message": "odd"},
        ),
        ({":message-type": "exception"}, b"plain", {"type": "api_error", "message": "an unknown error"}),
    ],
)
def test_exceptions_become_errors(headers: dict[str, str], payload: bytes, error: dict[str, str]) -> None:
    (event,) = AwsEventFramer().feed(aws_message(headers, payload))
    assert orjson.loads(event) == {"type": "error", "error": error}


def broken_checksum(message: bytes, place: int) -> bytes:
    return message[:place] + bytes([message[place] ^ 1]) + message[place + 1 :]


def sized(size: int, headers: int) -> bytes:
    head = struct.pack("!II", size, headers)
    return head + binascii.crc32(head).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [
        (broken_checksum(aws_event(FIRST), 9), "wrong checksum"),
        (broken_checksum(aws_event(FIRST), 40), "wrong checksum"),
        (sized(2**31, 0), "message of"),
        (sized(3, 0), "message of"),
        (sized(30, 29) + b"x" * 18, "headers are too long"),
        (aws_message({}, orjson.dumps({"bytes": "*"})), "not base64"),
        (aws_message({}, b"\xff"), "not JSON"),
        (aws_message({}, b"", raw_headers=b"\x05ab"), "broken headers"),
        (b"event: message_start\n\n", "wrong checksum"),
    ],
)
def test_what_is_no_such_stream(stream: bytes, sentence: str) -> None:
    with pytest.raises(FramingError, match=sentence):
        AwsEventFramer().feed(stream)


def test_a_cut_message() -> None:
    framer = AwsEventFramer()
    assert framer.feed(aws_event(FIRST)[:-1]) == []
    with pytest.raises(FramingError, match="within a message"):
        framer.finish()


def test_other_types_of_headers_are_skipped() -> None:
    raw = b"\x01a\x00\x01b\x04\x00\x00\x00\x01\x01c\x06\x00\x02xy"
    assert AwsEventFramer().feed(
        aws_message({}, orjson.dumps({"bytes": base64.b64encode(FIRST).decode()}), raw_headers=raw)
    ) == [FIRST]
