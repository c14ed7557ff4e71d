"""The header of the PROXY protocol, versions 1 and 2, with which a proxy tells whose connection it passes on.

Functions of bytes: `missing_bytes` says how much of a header is still to be read, `parse_header` reads it.
The protocol is that of HAProxy, proxy-protocol.txt of 2020.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

MAX_LINE_BYTES: Final = 107
"""Maximum size of a header of version 1, with its line end (section 2.1)."""

MAX_HEADER_BYTES: Final = 2048
"""Maximum size of a header of version 2 that is accepted; its fields could be 64 KiB (section 2.2)."""

LINE_START: Final = b"PROXY "
SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
FIXED_BYTES: Final = 16
SHORTEST_BYTES: Final = len(b"PROXY UNKNOWN\r\n")

ADDRESS_BYTES: Final = {0x11: 12, 0x21: 36, 0x31: 216}
"""Size of the addresses of TCP over IPv4, TCP over IPv6 and unix streams, by family and protocol."""

UNSPECIFIED: Final = 0x00
LOCAL: Final = 0x20
PROXY: Final = 0x21
PORT: Final = re.compile(rb"0|[1-9][0-9]{0,4}")
MAX_PORT: Final = 65535

PeerName = str | tuple[str, int, int, int] | tuple[str, int] | None
"""Name of the other end as `socket.getpeername` returns it; None for a client whose address is not known."""


class MalformedHeaderError(Exception):
    """The bytes are no header of the PROXY protocol; the text is the reason and repeats none of them."""


def missing_bytes(data: bytes) -> int:
    """Return how many bytes the header lacks at least, 0 for a whole one.

    A reader that asks for no more never takes a byte of what follows the header. Raises MalformedHeaderError
    as soon as the bytes cannot become a header.
    """
    if LINE_START.startswith(data[: len(LINE_START)]) and data:
        return _missing_of_line(data)
    if not SIGNATURE.startswith(data[: len(SIGNATURE)]):
        raise MalformedHeaderError("it does not begin with a PROXY header")
    if not data:
        return SHORTEST_BYTES
    if len(data) < FIXED_BYTES:
        return FIXED_BYTES - len(data)
    size = FIXED_BYTES + int.from_bytes(data[14:16])
    if size > MAX_HEADER_BYTES:
        raise MalformedHeaderError(f"its PROXY header is longer than {MAX_HEADER_BYTES} bytes")
    return size - len(data)


def parse_header(data: bytes, peer: PeerName) -> PeerName:
    """Return the name of the client that a whole header gives.

    That is `peer`, the name of the proxy, for a connection that the proxy made for itself, and None when the
    proxy does not know the address. Raises MalformedHeaderError.
    """
    return _parse_line(data) if data.startswith(LINE_START) else _parse_fields(data, peer)


def _missing_of_line(data: bytes) -> int:
    end = data.find(b"\n")
    if end >= 0:
        if end + 1 != len(data) or not data.endswith(b"\r\n"):
            raise MalformedHeaderError("the line of its PROXY header is malformed")
        return 0
    if len(data) >= MAX_LINE_BYTES:
        raise MalformedHeaderError(f"the line of its PROXY header is longer than {MAX_LINE_BYTES} bytes")
    wanted = 1 if data.endswith(b"\r") else 2
    return max(SHORTEST_BYTES - len(data), min(wanted, MAX_LINE_BYTES - len(data)))


def _parse_line(data: bytes) -> PeerName:
    kind, *fields = data[len(LINE_START) : -2].split(b" ")
    if kind == b"UNKNOWN":
        return None
    if kind not in {b"TCP4", b"TCP6"} or len(fields) != 4:
        raise MalformedHeaderError("the line of its PROXY header is malformed")
    source, target, *ports = fields
    if not all(PORT.fullmatch(port) and int(port) <= MAX_PORT for port in ports):
        raise MalformedHeaderError("a port of its PROXY header is malformed")
    family = IPv4Address if kind == b"TCP4" else IPv6Address
    try:
        name = str(family(source.decode("ascii")))
        family(target.decode("ascii"))
    except (AddressValueError, UnicodeDecodeError):
        raise MalformedHeaderError("an address of its PROXY header is malformed") from None
    if b"%" in source + target:
        # The zone of an address has a meaning on the machine of the proxy only.
        raise MalformedHeaderError("an address of its PROXY header is malformed")
    return _name(name, int(ports[0]))


def _parse_fields(data: bytes, peer: PeerName) -> PeerName:
    command, family = data[12], data[13]
    if command == LOCAL:
        return peer
    if command != PROXY:
        raise MalformedHeaderError("the version or the command of its PROXY header is unknown")
    if family == UNSPECIFIED:
        return None
    size = ADDRESS_BYTES.get(family)
    if size is None:
        raise MalformedHeaderError("the family of the addresses of its PROXY header is unknown")
    fields = data[FIXED_BYTES:]
    if len(fields) < size:
        raise MalformedHeaderError("its PROXY header is shorter than its addresses")
    if family == 0x11:
        return _name(str(IPv4Address(fields[:4])), int.from_bytes(fields[8:10]))
    if family == 0x21:
        return _name(str(IPv6Address(fields[:16])), int.from_bytes(fields[32:34]))
    return None


def _name(address: str, port: int) -> PeerName:
    return (address, port, 0, 0) if ":" in address else (address, port)
