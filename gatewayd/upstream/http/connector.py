"""Dialer for the connections to one origin: name look-up, the addresses in turn, TLS, unix sockets.

It uses no proxy of the environment.
"""

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from gatewayd.deadlines import TimeLimit
from gatewayd.descriptors import has_spare_files
from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.errors import TransportError, failure_reason

TlsContext = Callable[[], ssl.SSLContext]


@dataclass(frozen=True, slots=True)
class UrlOrigin:
    """Host, port and scheme of a URL; all URLs of one origin share connections."""

    host: str
    port: int
    is_tls: bool


@cache
def default_tls_context() -> ssl.SSLContext:
    """Return the cached context with the certificate authorities of the system, which is slow to create."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class ConnectionDialer:
    """Opens connections to one origin, or to a unix socket in its place."""

    def __init__(self, origin: UrlOrigin, socket_path: str | None, tls: TlsContext) -> None:
        self._origin = origin
        self._socket_path = socket_path
        self._tls = tls

    async def dial(self, protocol: asyncio.Protocol, due: float) -> None:
        """Connect `protocol`; raises OSError, or UnicodeError for an invalid host name.

        The descriptors reserved for the control socket are not used: EMFILE is raised before. The caller ends
        the wait at `due` (loop time). The time is divided among the addresses, so that one that does not
        answer leaves time for the next.
        """
        if not has_spare_files():
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if self._socket_path is not None:
            loop = asyncio.get_running_loop()
            tls, name = self._security()
            await loop.create_unix_connection(
                lambda: protocol, self._socket_path, ssl=tls, server_hostname=name
            )
            return
        first, *others = await self._addresses()
        while others:
            try:
                async with TimeLimit(_share(due, 1 + len(others))):
                    await self._connect(protocol, first)
            except ssl.SSLError:
                raise
            except OSError:
                first = others.pop(0)
            else:
                return
        await self._connect(protocol, first)

    async def _connect(self, protocol: asyncio.Protocol, address: str) -> None:
        loop = asyncio.get_running_loop()
        tls, name = self._security()
        await loop.create_connection(
            lambda: protocol, address, self._origin.port, ssl=tls, server_hostname=name
        )

    async def _addresses(self) -> list[str]:
        host = self._origin.host
        if _is_address(host):
            return [host]
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, self._origin.port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        return addresses

    def _security(self) -> tuple[ssl.SSLContext | None, str | None]:
        """Return the TLS context and the name for the certificate; None for both without TLS."""
        if not self._origin.is_tls:
            return None, None
        return self._tls(), self._origin.host.rstrip(".")


def unreachable_reason(error: OSError | UnicodeError) -> TransportError:
    """Return the error for a failed connection; specific exceptions are matched before general ones."""
    match error:
        case socket.gaierror() | UnicodeError():
            sentence = "its host name is not known"
        case ssl.SSLError():
            sentence = f"its certificate or TLS failed ({failure_reason(error)})"
        case _:
            sentence = f"no connection ({failure_reason(error)})"
    return TransportError(ErrorKind.UPSTREAM_UNREACHABLE, sentence)


def _share(due: float, addresses: int) -> float:
    return max(due - asyncio.get_running_loop().time(), 0) / addresses


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
