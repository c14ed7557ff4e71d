"""Opens the connections to one origin: name look-up, the addresses in turn, TLS, unix sockets.

No proxy of the environment is ever used.
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
    """Where a URL leads: connections are shared by all URLs of one origin."""

    host: str
    port: int
    is_tls: bool


@cache
def default_tls_context() -> ssl.SSLContext:
    """Return the context with the certificate authorities of the system, which takes a while to make."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class ConnectionDialer:
    """Opens connections to one origin, or to the unix socket that stands for it."""

    def __init__(self, origin: UrlOrigin, socket_path: str | None, tls: TlsContext) -> None:
        self._origin = origin
        self._socket_path = socket_path
        self._tls = tls

    async def dial(self, protocol: asyncio.Protocol, due: float) -> None:
        """Connect `protocol`; raises OSError, or UnicodeError for a host that cannot be a name.

        The descriptors of the control socket are not taken: EMFILE is raised before that. The caller ends
        the wait at `due` (loop time). An address that does not answer gets its share of the time, so that the
        next one has a chance.
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
        """Return the context and the name that the certificate must have; nothing without TLS."""
        if not self._origin.is_tls:
            return None, None
        return self._tls(), self._origin.host.rstrip(".")


def unreachable_reason(error: OSError | UnicodeError) -> TransportError:
    """Say why there is no connection: the order is from the special to the general exception."""
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
