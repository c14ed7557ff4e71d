"""Tests for gatewayd.http.connections.proxy_header."""

import pytest

from gatewayd.http.connections.proxy_header import (
    MAX_HEADER_BYTES,
    SIGNATURE,
    MalformedHeaderError,
    PeerName,
    missing_bytes,
    parse_header,
)

PROXY_NAME = ("10.0.0.1", 4000)


def fields(command: int, family: int, rest: bytes) -> bytes:
    return SIGNATURE + bytes([command, family]) + len(rest).to_bytes(2) + rest


IPV4 = bytes([192, 0, 2, 7, 10, 0, 0, 2]) + (50000).to_bytes(2) + (443).to_bytes(2)
IPV6 = bytes.fromhex("20010db8" + "00" * 11 + "07" + "00" * 15 + "01") + (50001).to_bytes(2) + b"\x01\xbb"
LONGEST_ADDRESS = b":".join([b"ffff"] * 8)
LONGEST_LINE = b"PROXY UNKNOWN " + LONGEST_ADDRESS + b" " + LONGEST_ADDRESS + b" 65535 65535\r\n"

HEADERS: list[tuple[bytes, PeerName]] = [
    (b"PROXY TCP4 192.0.2.7 10.0.0.2 50000 443\r\n", ("192.0.2.7", 50000)),
    (b"PROXY TCP4 1.1.1.1 2.2.2.2 0 1\r\n", ("1.1.1.1", 0)),
    (b"PROXY TCP6 2001:db8::7 ::1 65535 443\r\n", ("2001:db8::7", 65535, 0, 0)),
    (b"PROXY UNKNOWN\r\n", None),
    (LONGEST_LINE, None),
    (fields(0x21, 0x11, IPV4), ("192.0.2.7", 50000)),
    (fields(0x21, 0x21, IPV6), ("2001:db8::7", 50001, 0, 0)),
    # A field with the name of the server behind the addresses (PP2_TYPE_AUTHORITY).
    (fields(0x21, 0x11, IPV4 + b"\x02\x00\x01x"), ("192.0.2.7", 50000)),
    (fields(0x21, 0x31, b"/run/client".ljust(216, b"\x00")), None),
    (fields(0x21, 0x00, b""), None),
    (fields(0x20, 0x00, b""), PROXY_NAME),
    (fields(0x20, 0x11, IPV4), PROXY_NAME),
    (fields(0x21, 0x11, IPV4 + b"x" * (MAX_HEADER_BYTES - 28)), ("192.0.2.7", 50000)),
]


def read(sent: bytes, size: int) -> tuple[bytes, bytes]:
    """Read a header in pieces of at most `size` bytes, as asked for; return it and what is left."""
    data = b""
    while missing := missing_bytes(data):
        piece = sent[len(data) : len(data) + min(size, missing)]
        assert piece, "asks for more than there is"
        data += piece
    return data, sent[len(data) :]


@pytest.mark.parametrize(("header", "name"), HEADERS)
@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_a_header_is_read_to_its_last_byte_and_no_further(header: bytes, name: PeerName, size: int) -> None:
    assert read(header + b"GET / HTTP/1.1\r\n", size) == (header, b"GET / HTTP/1.1\r\n")
    assert parse_header(header, PROXY_NAME) == name


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n", "does not begin with a PROXY header"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00\x00", "does not begin with"),
        (b"\r\n\r\nGET / HTTP/1.1\r\n", "does not begin with"),
        (b"PROXYTCP4 1.1.1.1 2.2.2.2 1 1\r\n", "does not begin with"),
        (b"proxy TCP4 1.1.1.1 2.2.2.2 1 1\r\n", "does not begin with"),
        (b"PROXY A\r\nGET / HTTP/1.1\r\n", "the line .* is malformed"),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 1\nGET", "the line .* is malformed"),
        (b"PROXY UNKNOWN" + b" " * 200, "longer than 107 bytes"),
        (LONGEST_LINE[:-2] + b"5\r\n", "longer than 107 bytes"),
        (fields(0x21, 0x11, b"x" * (MAX_HEADER_BYTES - 15)), "longer than 2048 bytes"),
        (SIGNATURE + b"\x21\x11\xff\xff", "longer than 2048 bytes"),
    ],
)
@pytest.mark.parametrize("size", [1, 4096])
def test_other_bytes_are_refused_as_soon_as_they_cannot_become_a_header(
    sent: bytes, reason: str, size: int
) -> None:
    with pytest.raises(MalformedHeaderError, match=reason):
        # A line that ends early is whole, and lacks its fields.
        parse_header(read(sent, size)[0], PROXY_NAME)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"PROXY TCP4\r\n", "the line"),
        (b"PROXY TCP5 1.1.1.1 2.2.2.2 1 1\r\n", "the line"),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n", "the line"),
        (b"PROXY TCP4  1.1.1.1 2.2.2.2 1 1\r\n", "the line"),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 65536\r\n", "a port"),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 01 1\r\n", "a port"),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 -1 1\r\n", "a port"),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1 \xb2\r\n", "a port"),
        (b"PROXY TCP4 ::1 2.2.2.2 1 1\r\n", "an address"),
        (b"PROXY TCP4 1.1.1.01 2.2.2.2 1 1\r\n", "an address"),
        (b"PROXY TCP4 1.1.1.1 localhost 1 1\r\n", "an address"),
        (b"PROXY TCP4 1.1.1.\xff 2.2.2.2 1 1\r\n", "an address"),
        (b"PROXY TCP6 1.1.1.1 ::1 1 1\r\n", "an address"),
        (b"PROXY TCP6 fe80::1%eth0 ::1 1 1\r\n", "an address"),
        (fields(0x22, 0x11, IPV4), "the version or the command"),
        (fields(0x11, 0x11, IPV4), "the version or the command"),
        (fields(0x21, 0x12, IPV4), "the family"),
        (fields(0x21, 0x41, IPV4), "the family"),
        (fields(0x21, 0x11, IPV4[:-1]), "shorter than its addresses"),
        (fields(0x21, 0x21, IPV4), "shorter than its addresses"),
    ],
)
def test_a_header_with_other_contents_is_refused(header: bytes, reason: str) -> None:
    with pytest.raises(MalformedHeaderError, match=reason):
        parse_header(header, PROXY_NAME)
