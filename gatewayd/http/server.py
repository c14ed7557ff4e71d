"""HTTP server of one application on TCP, unix and activated sockets, with a graceful stop."""

import asyncio
import errno
import grp
import os
import socket
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError, system_reason
from gatewayd.http.connections.arrivals import ArrivalRules, ArrivalServer
from gatewayd.http.connections.drain import is_readable
from gatewayd.http.connections.request_heads import ConnectionServer, ServerConnection, ServerRunner
from gatewayd.tasks import TaskRegistry

BACKLOG: Final = 4096
KEEP_ALIVE_SECONDS: Final = 75.0
LINGER_SECONDS: Final = 1.0
MAX_HEAD_LINE_BYTES: Final = 16_384
# Time for cancelled handlers to clean up; aiohttp may use it twice.
CANCEL_SECONDS: Final = 1.0


class HttpServer:
    """Server of one application with any number of listeners."""

    def __init__(self, app: web.Application) -> None:
        # Sockets of the service manager, which keeps their queues.
        self._given: list[web.BaseSite] = []
        self._arrivals: list[ArrivalServer] = []
        self._tasks = TaskRegistry()
        options = {
            "access_log": None,
            "auto_decompress": False,
            "keepalive_timeout": KEEP_ALIVE_SECONDS,
            "lingering_time": LINGER_SECONDS,
            "max_line_size": MAX_HEAD_LINE_BYTES,
            "max_field_size": MAX_HEAD_LINE_BYTES,
        }
        self._runner = ServerRunner(
            app,
            options,
            handle_signals=False,
            handler_cancellation=True,
            shutdown_timeout=CANCEL_SECONDS,
        )

    async def open(self) -> None:
        """Prepare the application; must be called before the first listener."""
        await self._runner.setup()

    async def listen_tcp(self, host: str, port: int, rules: ArrivalRules | None = None) -> str:
        """Listen on an address and return it as `host:port`; not_configured when the address cannot be
        used."""
        try:
            if rules is None:
                await _Listener(self._runner, host=host, port=port).start()
            else:
                await self._receive(await _bind(host, port), rules)
        except OSError as error:
            raise _refused(f"{host}:{port}", error) from error
        return _format_address(self._runner.addresses[-1])

    async def listen_sockets(
        self, sockets: Sequence[socket.socket], rules: ArrivalRules | None = None
    ) -> list[str]:
        """Listen on sockets that the service manager opened and return their addresses.

        `rules` are not for unix sockets.
        """
        for channel in sockets:
            if rules is None or channel.family is socket.AF_UNIX:
                site: web.BaseSite = _Listener(self._runner, sock=channel)
                await site.start()
            else:
                site = await self._receive([channel], rules)
            self._given.append(site)
        return [_format_address(channel.getsockname()) for channel in sockets]

    async def listen_unix(self, path: Path, group: str, setting: str = "control_group") -> str:
        """Listen on a unix socket for the owner and, unless empty, a group; return its path.

        `setting` is the name of the setting that named the group.
        """
        gid = _group_id(group, setting)
        _remove_stale(path)
        before = os.umask(0o177)
        try:
            await web.UnixSite(self._runner, path, backlog=BACKLOG).start()
        except OSError as error:
            raise _refused(str(path), error) from error
        finally:
            os.umask(before)
        if gid is not None:
            _open_to_group(path, gid, f"{setting} {group!r}")
        return str(path)

    async def stop_listening(self) -> None:
        """Begin to drain: accept the queued connections, then refuse new ones.

        Connections in the queue of the service manager stay for the next daemon. Requests on open connections
        are read and answered, and each connection ends with its answer.
        """
        server = self._runner.server
        if isinstance(server, ConnectionServer):
            server.drain()
        for arrivals in self._arrivals:
            arrivals.drain()
        for site in self._runner.sites:
            if site not in self._given:
                await _accept_waiting(site)
            await site.stop()
        # The next turn of the event loop reports an accepted connection.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def look(self, *, listeners: bool) -> int:
        """Close the idle connections and return the number of open ones: streams of events, or the others."""
        found = self._connections()
        for connection in found:
            connection.look()
        arriving = sum(arrivals.look() for arrivals in self._arrivals)
        return sum(connection.is_listening is listeners for connection in found) + (not listeners) * arriving

    @property
    def unanswered(self) -> int:
        """Number of connections with an unanswered request."""
        return sum(connection.is_busy for connection in self._connections())

    def _connections(self) -> Sequence[ServerConnection]:
        server = self._runner.server
        return server.open() if isinstance(server, ConnectionServer) else ()

    async def close(self) -> None:
        """Cancel the running handlers and release the listeners and connections."""
        await self._tasks.close()
        await self._runner.cleanup()

    async def _receive(self, sockets: Sequence[socket.socket], rules: ArrivalRules) -> web.BaseSite:
        """Listen on bound sockets whose connections bring more than HTTP; raises OSError."""
        server = self._runner.server
        if not isinstance(server, ConnectionServer):
            raise RuntimeError("the server is not open")
        arrivals = ArrivalServer(server, sockets, rules, self._tasks)
        site = _ArrivalListener(self._runner, arrivals)
        await site.start()
        self._arrivals.append(arrivals)
        return site


async def _accept_waiting(site: web.BaseSite) -> None:
    """Let the event loop accept the queue of a listener, in as many turns as the queue has places.

    On the loop of asyncio an accepted socket becomes a connection one turn later.
    """
    for channel in getattr(site._server, "sockets", ()):
        empty = 0
        for _ in range(BACKLOG):
            await asyncio.sleep(0)
            empty = 0 if is_readable(channel.fileno()) else empty + 1
            if empty == 2:
                break


async def _bind(host: str, port: int) -> Sequence[socket.socket]:
    """Return a socket for each address of a host; raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            channel = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(channel)
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family is socket.AF_INET6:
                channel.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            channel.bind(address)
    except OSError:
        for channel in sockets:
            channel.close()
        raise
    return sockets


class _ArrivalListener(web.BaseSite):
    """A listener of `ArrivalServer`."""

    __slots__ = ("_arrivals",)

    def __init__(self, runner: ServerRunner, arrivals: ArrivalServer) -> None:
        super().__init__(runner, backlog=BACKLOG)
        self._arrivals = arrivals

    @property
    def name(self) -> str:
        """The addresses, for messages of aiohttp."""
        return ", ".join(_format_address(channel.getsockname()) for channel in self._arrivals.sockets)

    async def start(self) -> None:
        """Listen; raises OSError."""
        await super().start()
        self._arrivals.start(self._backlog)
        # aiohttp asks it for its sockets and closes it.
        self._server = cast(asyncio.Server, self._arrivals)


class _Listener(web.BaseSite):
    """A listener of plain HTTP; `place` are arguments of `create_server`: `host` and `port`, or `sock`."""

    __slots__ = ("_place",)

    def __init__(self, runner: ServerRunner, **place: Any) -> None:
        super().__init__(runner, backlog=BACKLOG)
        self._place = place

    @property
    def name(self) -> str:
        """The place, for messages of aiohttp."""
        return str(self._place)

    async def start(self) -> None:
        """Listen; raises OSError."""
        await super().start()
        if self._runner.server is None:
            raise RuntimeError("the server is not open")
        self._server = await asyncio.get_running_loop().create_server(
            self._runner.server, backlog=self._backlog, **self._place
        )


def _group_id(name: str, setting: str) -> int | None:
    if not name:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED, f"cannot open the socket: {setting} {name!r} does not exist"
        ) from None


def _open_to_group(path: Path, gid: int, group: str) -> None:
    try:
        os.chown(path, -1, gid)
        path.chmod(0o660)
    except OSError as error:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot give the socket {path} to {group}: {system_reason(error)}; let a unit of the service"
            " manager open it, or run the daemon as a member of the group",
        ) from error


def _remove_stale(path: Path) -> None:
    """Remove the socket of an earlier daemon, which has ended as the state directory is locked."""
    try:
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    except FileNotFoundError:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(str(path), error) from error


def _refused(address: str, error: OSError) -> GatewayError:
    reason = "it is in use" if error.errno == errno.EADDRINUSE else system_reason(error)
    return GatewayError(ErrorKind.NOT_CONFIGURED, f"cannot listen on {address}: {reason}")


def _format_address(address: object) -> str:
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return str(address)
