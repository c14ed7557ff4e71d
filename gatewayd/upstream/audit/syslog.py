"""Syslog (RFC 5424) over a unix socket, UDP (RFC 5426), TCP (RFC 6587, 3.4.1) and TLS (RFC 5425)."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from gatewayd.audit.records import AuditResult, AuditRow
from gatewayd.errors import ErrorKind, GatewayError

SEND_SECONDS: Final = 10.0
MAX_DATAGRAM_BYTES: Final = 60_000
FACILITY: Final = 10
"""Security and authorization messages (RFC 5424, 6.2.1)."""

NOTICE, WARNING = 5, 4
DEFAULT_PORTS: Final = {"udp": 514, "tcp": 601, "tls": 6514}


@dataclass(frozen=True, slots=True)
class SyslogAddress:
    """Where a server listens: `scheme` is unix, udp, tcp or tls; `path` is that of a unix socket."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path or f'{self.host}:{self.port}'}"


class SyslogReceiver:
    """Implements `audit.interfaces.AuditReceiver` over one connection, opened again after an error."""

    def __init__(self, address: SyslogAddress, hostname: str, pid: int) -> None:
        self._address = address
        self._origin = f"{hostname or '-'} gatewayd {pid} audit -"
        self._datagrams: socket.socket | None = None
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, rows: Sequence[AuditRow]) -> None:
        """Send a message for each row; unavailable when the server cannot be reached in time."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                if self._address.scheme in {"unix", "udp"}:
                    await self._send_datagrams(rows)
                else:
                    await self._send_stream(rows)
        except (OSError, TimeoutError, UnicodeError) as error:
            # A name with a label that is too long is no OSError.
            await self._drop()
            reason = str(error) or "it did not answer in time"
            raise GatewayError(
                ErrorKind.UNAVAILABLE, f"cannot send to the syslog server {self._address}: {reason}"
            ) from error

    async def close(self) -> None:
        """Close the connection."""
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None
        if self._stream is not None:
            self._stream[1].close()
            self._stream = None

    async def _drop(self) -> None:
        """Close the connection without what waits in it, which a server that does not read keeps for ever."""
        if self._stream is not None:
            self._stream[1].transport.abort()
        await self.close()

    async def _send_datagrams(self, rows: Sequence[AuditRow]) -> None:
        if self._datagrams is None:
            self._datagrams = await self._connected()
        loop = asyncio.get_running_loop()
        for row in rows:
            await loop.sock_sendall(self._datagrams, message_of(row, self._origin)[:MAX_DATAGRAM_BYTES])

    async def _connected(self) -> socket.socket:
        loop, address = asyncio.get_running_loop(), self._address
        if address.scheme == "unix":
            family, target = socket.AF_UNIX, address.path
        else:
            [found, *_] = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
            family, target = found[0], found[4]  # type: ignore[assignment]
        channel = socket.socket(family, socket.SOCK_DGRAM)
        channel.setblocking(False)
        try:
            await loop.sock_connect(channel, target)
        except OSError:
            channel.close()
            raise
        return channel

    async def _send_stream(self, rows: Sequence[AuditRow]) -> None:
        if self._stream is not None and self._stream[0].at_eof():
            await self.close()
        if self._stream is None:
            context = ssl.create_default_context() if self._address.scheme == "tls" else None
            self._stream = await asyncio.open_connection(self._address.host, self._address.port, ssl=context)
        writer = self._stream[1]
        for row in rows:
            message = message_of(row, self._origin)
            writer.write(b"%d %b" % (len(message), message))
        await writer.drain()


def message_of(row: AuditRow, origin: str) -> bytes:
    """Return the message of a row; its text is the JSON of the row."""
    severity = WARNING if row.result == AuditResult.REFUSED.value else NOTICE
    at = datetime.fromtimestamp(row.at / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    text = orjson.dumps(asdict(row), option=orjson.OPT_SORT_KEYS)
    return f"<{FACILITY * 8 + severity}>1 {at} {origin} ".encode() + text
