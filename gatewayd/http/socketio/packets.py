"""Packets of Socket.IO 5 in text frames of Engine.IO 4, as far as event clients need them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from gatewayd import json_decoder
from gatewayd.errors import GatewayError

PING: Final = "2"
DISCONNECT: Final = "41"
MESSAGE: Final = "4"
MAX_ID_DIGITS: Final = 15


class PacketType(StrEnum):
    """Packet types of clients, without binary packets."""

    CLOSE = "1"
    PONG = "3"
    CONNECT = "40"
    LEAVE = "41"
    EVENT = "42"
    ACK = "43"


@dataclass(frozen=True, slots=True)
class SocketPacket:
    """One packet. `data` is its JSON value, None without one; `id` is that of an acknowledgement."""

    type: PacketType
    namespace: str = "/"
    id: int | None = None
    data: Any = None


def read_packet(text: str) -> SocketPacket | None:
    """Return a packet, None for one without a meaning here; raises ValueError for a malformed one."""
    if not text.startswith(MESSAGE):
        return SocketPacket(PacketType(text[:1])) if text[:1] in (PacketType.CLOSE, PacketType.PONG) else None
    kind, rest = PacketType(text[:2]), text[2:]
    namespace = "/"
    if rest.startswith("/"):
        namespace, _, rest = rest.partition(",")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))][:MAX_ID_DIGITS]
    rest = rest[len(digits) :]
    data = _decoded(rest) if rest else None
    return SocketPacket(kind, namespace, int(digits) if digits else None, data)


def _decoded(text: str) -> Any:
    try:
        return json_decoder.decode_at_once(text.encode())
    except GatewayError as error:
        raise ValueError(error.message) from error


def open_packet(session_id: str, *, ping_seconds: float, pong_seconds: float, limit: int) -> str:
    """Return the packet that opens a connection."""
    handshake = {
        "sid": session_id,
        "upgrades": [],
        "pingInterval": int(ping_seconds * 1000),
        "pingTimeout": int(pong_seconds * 1000),
        "maxPayload": limit,
    }
    return f"0{_json(handshake)}"


def connect_packet(session_id: str) -> str:
    """Return the packet that accepts a client in the namespace `/`."""
    return f"40{_json({'sid': session_id})}"


def refusal_packet(namespace: str) -> str:
    """Return the packet that refuses a client in another namespace."""
    return f"44{namespace},{_json({'message': 'Unable to connect'})}"


def event_packet(payload: bytes, answer_id: int | None = None) -> str:
    """Return an event `events` with encoded JSON as payload; with an id it asks for an acknowledgement."""
    return f'42{"" if answer_id is None else answer_id}["events",{payload.decode()}]'


def ack_packet(answer_id: int, value: Any) -> str:
    """Return the acknowledgement of a client's event."""
    return f"43{answer_id}{_json([value])}"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
