"""Protocols of the service manager: readiness, watchdog, sockets (sd_notify(3), sd_listen_fds(3))."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError, full_message

log = logging.getLogger(__name__)

FIRST_DESCRIPTOR = 3
"""The first descriptor that the service manager passes (SD_LISTEN_FDS_START)."""

SOCKET_VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
"""Environment variables that describe the passed sockets."""

FAMILIES = {
    "http": (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX),
    "control": (socket.AF_UNIX,),
}
"""The names of activated sockets, each with the address families that it may have."""


PROBE_SHARE: Final = 4 / 3
"""Maximum duration of a probe, as a share of the interval (half of the watchdog limit)."""


class Notifier:
    """Sends state to the service manager; without one every method does nothing.

    The first message that cannot be sent is logged and none raises: the daemon goes on without its service
    manager.
    """

    def __init__(
        self,
        notify_socket: str | None = None,
        watchdog_usec: int | None = None,
        watchdog_pid: int | None = None,
    ) -> None:
        self._address = _socket_address(notify_socket)
        self._watchdog_usec = watchdog_usec
        self._watchdog_pid = watchdog_pid
        self._has_warned = False

    @property
    def enabled(self) -> bool:
        """Whether there is a service manager."""
        return self._address is not None

    @property
    def watchdog_interval(self) -> float | None:
        """Seconds between two watchdog messages (half the limit); None when this process is not watched."""
        if not self.enabled or not self._watchdog_usec:
            return None
        if self._watchdog_pid not in (None, os.getpid()):
            return None
        return self._watchdog_usec / 2_000_000

    def ready(self, status: str) -> None:
        """Report that the start or a reload is complete; `status` is a sentence for people."""
        self._send("READY=1", f"STATUS={_one_line(status)}")

    def status(self, text: str) -> None:
        """Report the present activity of the daemon as a sentence for people."""
        self._send(f"STATUS={_one_line(text)}")

    def reloading(self) -> None:
        """Report the begin of a reload; `ready` ends it, also if the new configuration is refused."""
        # One datagram: the manager pairs the two fields (mandatory for Type=notify-reload since 253).
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Report that the daemon drains and will exit."""
        self._send("STOPPING=1")

    def watchdog(self) -> None:
        """Report that the daemon is alive."""
        self._send("WATCHDOG=1")

    def _send(self, *fields: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.setblocking(False)
                channel.connect(self._address)
                channel.send("\n".join(fields).encode())
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                log.warning("cannot notify the service manager", extra={"error": str(error)})


def notifier_from_environment(environ: Mapping[str, str]) -> Notifier:
    """Return the notifier that NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID in `environ` describe."""
    return Notifier(
        environ.get("NOTIFY_SOCKET") or None,
        _number(environ, "WATCHDOG_USEC"),
        _number(environ, "WATCHDOG_PID"),
    )


class Watchdog:
    """Feeds the watchdog of the service manager while the event loop runs and the probe ends in time.

    `interval` and `deadline` are seconds; `probe` returns when the database has answered, and raises
    GatewayError or OSError otherwise. The watchdog is also fed while the database is unavailable: a restart
    would not bring it back and would lose the deferred writes.
    """

    def __init__(
        self,
        notifier: Notifier,
        probe: Callable[[], Awaitable[None]],
        interval: float,
        deadline: float | None = None,
    ) -> None:
        self._notifier = notifier
        self._probe = probe
        self._interval = interval
        self._deadline = interval * PROBE_SHARE if deadline is None else deadline

    async def run(self) -> None:
        """Feed for ever; a failed probe is logged and not fed, so the manager restarts a hanging daemon."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._interval
            await self.beat()
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def beat(self) -> bool:
        """Probe once, feed the watchdog if the probe ended in time, and return whether it was fed."""
        try:
            async with TimeLimit(self._deadline):
                await self._ask()
        except (GatewayError, OSError) as error:  # TimeoutError is an OSError
            reason = full_message(error) or f"no answer within {self._deadline:g} s"
            log.warning("cannot feed the watchdog: the probe failed", extra={"error": reason})
            return False
        self._notifier.watchdog()
        return True

    async def _ask(self) -> None:
        try:
            await self._probe()
        except GatewayError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise


@dataclass(frozen=True)
class ActivatedSockets:
    """Listening sockets that the service manager opened: any number for HTTP, at most one for control."""

    http: tuple[socket.socket, ...] = ()
    control: socket.socket | None = None


def activated_sockets(
    environ: Mapping[str, str], pid: int, first: int = FIRST_DESCRIPTOR
) -> ActivatedSockets:
    """Take over the sockets that LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES in `environ` describe.

    Descriptors start at `first`, are made close-on-exec and non-blocking. Raises `not_configured` for a name
    other than `http` or `control`, a second control socket, or a descriptor that is not a listening stream
    socket of the family its name asks for.
    """
    count = _number(environ, "LISTEN_FDS") or 0
    if _number(environ, "LISTEN_PID") != pid or count <= 0:
        return ActivatedSockets()
    opened: list[tuple[str, socket.socket]] = []
    try:
        opened.extend(_adopt(environ.get("LISTEN_FDNAMES", ""), count, first))
        control = [channel for name, channel in opened if name == "control"]
        if len(control) > 1:
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot use two activated sockets named 'control'")
    except GatewayError:
        for _, channel in opened:
            channel.close()
        raise
    http = tuple(channel for name, channel in opened if name == "http")
    return ActivatedSockets(http, control[0] if control else None)


def _adopt(names: str, count: int, first: int) -> Iterator[tuple[str, socket.socket]]:
    listed = names.split(":") if names else []
    for offset in range(count):
        name = listed[offset] if offset < len(listed) else ""
        if name not in FAMILIES:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                f"cannot use activated socket {first + offset}: its name {name!r} is not 'http' or 'control'"
                " (set FileDescriptorName= in the socket unit)",
            )
        yield name, _listener(first + offset, name)


def _listener(descriptor: int, name: str) -> socket.socket:
    os.set_inheritable(descriptor, False)
    channel = socket.socket(fileno=descriptor)
    if channel.family not in FAMILIES[name]:
        problem = f"its address family is {channel.family.name}"
    elif channel.type != socket.SOCK_STREAM or not channel.getsockopt(
        socket.SOL_SOCKET, socket.SO_ACCEPTCONN
    ):
        problem = "it is not a listening stream socket"
    else:
        channel.setblocking(False)
        return channel
    with closing(channel):
        raise GatewayError(ErrorKind.NOT_CONFIGURED, f"cannot use activated socket {name!r}: {problem}")


def _socket_address(path: str | None) -> str | None:
    if path is None:
        return None
    if path.startswith("@"):
        return "\0" + path[1:]
    return path


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
