"""Tests for gatewayd.http.socketio.packets."""

import pytest

from gatewayd.http.socketio.packets import (
    PacketType,
    SocketPacket,
    ack_packet,
    connect_packet,
    event_packet,
    open_packet,
    read_packet,
    refusal_packet,
)


@pytest.mark.parametrize(
    ("text", "packet"),
    [
        ("1", SocketPacket(PacketType.CLOSE)),
        ("3", SocketPacket(PacketType.PONG)),
        ("3probe", SocketPacket(PacketType.PONG)),
        ("6", None),
        ("2probe", None),
        ("", None),
        ("40", SocketPacket(PacketType.CONNECT)),
        ('40{"token":"t"}', SocketPacket(PacketType.CONNECT, data={"token": "t"})),
        ('40/other,{"token":"t"}', SocketPacket(PacketType.CONNECT, "/other", data={"token": "t"})),
        ("40/other", SocketPacket(PacketType.CONNECT, "/other")),
        ("41", SocketPacket(PacketType.LEAVE)),
        ('42["heartbeat",{}]', SocketPacket(PacketType.EVENT, data=["heartbeat", {}])),
        ('4217["user-join"]', SocketPacket(PacketType.EVENT, id=17, data=["user-join"])),
        ("430[true]", SocketPacket(PacketType.ACK, id=0, data=[True])),
        ('4312["1,2"]', SocketPacket(PacketType.ACK, id=12, data=["1,2"])),
    ],
)
def test_reading(text: str, packet: SocketPacket | None) -> None:
    assert read_packet(text) == packet


@pytest.mark.parametrize("text", ["4", "45-", "451-[{}]", "4x", "42[", "42{", "42" + "9" * 5000 + "[]"])
def test_what_is_malformed(text: str) -> None:
    with pytest.raises(ValueError, match=r"PacketType|JSON|column|char"):
        read_packet(text)


def test_writing() -> None:
    opened = open_packet("s", ping_seconds=25, pong_seconds=20.0, limit=9)
    assert opened == '0{"sid":"s","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":9}'
    assert connect_packet("s") == '40{"sid":"s"}'
    assert refusal_packet("/x") == '44/x,{"message":"Unable to connect"}'
    assert event_packet(b'{"a":1}') == '42["events",{"a":1}]'
    assert event_packet(b"{}", 7) == '427["events",{}]'
    assert ack_packet(3, {"id": "x"}) == '433[{"id":"x"}]'
    assert ack_packet(3, None) == "433[null]"
