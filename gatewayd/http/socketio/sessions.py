"""Socket.IO connections to the event stream, with the same rooms and payloads as server-sent events.

They serve what scripts and pages for Open WebUI use: the transport websocket, the namespace `/`, the event
`events`, calls with an acknowledgement, and the client events `user-join` and `heartbeat`.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import WSMsgType, web

from gatewayd import ids
from gatewayd.accounts.records import Actor, User
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.events.calls import EventCalls
from gatewayd.events.hub import Hub
from gatewayd.events.rooms import Subscription
from gatewayd.http.connections.admission import RequestAdmission
from gatewayd.http.connections.drain import mark_as_listener
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import STARTED
from gatewayd.http.errors import log_refused
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.socketio import packets
from gatewayd.http.socketio.packets import PacketType, SocketPacket
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

PATH: Final = "/ws/socket.io"
PING_SECONDS: Final = 25.0
PONG_SECONDS: Final = 20.0
ANONYMOUS_SECONDS: Final = 60.0
"""Longest time of a connection without a user."""

CLOSE_SECONDS: Final = 1.0
"""Time for a client to confirm the end of its connection (RFC 6455, 7.1.1). A stop waits for it."""

MAX_PACKET_BYTES: Final = 1_000_000
"""Largest packet in bytes, as in other Socket.IO servers; anyone may send one. Larger answers to calls use
HTTP."""

MAX_UNANSWERED_CALLS: Final = 1000
"""Largest number of unanswered calls of one connection; older ones are dropped."""

Identify = Callable[[str], Awaitable[Actor]]
"""Returns the actor of a token, or raises."""


@dataclass(frozen=True, slots=True)
class SocketServices:
    """The services that authenticate a user: `identify` returns the actor, `admit` counts the connection.

    Both raise for a refusal, which `tell` logs.
    """

    identify: Identify
    admit: Callable[[Actor], None]
    tell: Callable[[GatewayError], None]


class SocketRoutes:
    """Routes of the connections. `identify` is that of the middleware, so that a revoked account cannot
    connect; `check` raises if the request of a connection names another person than the actor."""

    def __init__(
        self,
        hub: Hub,
        calls: EventCalls,
        identify: Identify,
        tasks: TaskRegistry,
        admission: RequestAdmission | None = None,
        check: Callable[[web.Request, Actor], None] | None = None,
    ) -> None:
        self._hub = hub
        self._calls = calls
        self._identify = identify
        self._tasks = tasks
        self._admission = admission or RequestAdmission(())
        self._check = check
        self._sockets: set[web.WebSocketResponse] = set()
        self._is_open = True

    def routes(self) -> Sequence[Route]:
        """Return the row; the client authenticates inside of the connection."""
        return [
            Route(
                "GET",
                PATH,
                self.connect,
                RouteAccess.PUBLIC,
                "Subscribe to events by Socket.IO",
                tag="events",
                guarded=True,
                statuses=(101,),
            )
        ]

    async def connect(self, request: web.Request) -> web.StreamResponse:
        """Speak Socket.IO 5 over a websocket, `?EIO=4&transport=websocket`; 400 for everything else."""
        query = request.query
        if query.get("EIO") != "4" or query.get("transport") != "websocket":
            raise invalid("cannot connect: only EIO=4 and transport=websocket are served", param="transport")
        if not self._is_open:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot connect: the gateway stops")
        socket = web.WebSocketResponse(timeout=CLOSE_SECONDS, max_msg_size=MAX_PACKET_BYTES, compress=False)
        if not socket.can_prepare(request):
            raise invalid("cannot connect: the request asks for no websocket", param="Upgrade")
        request[STARTED] = socket
        mark_as_listener(request)
        await socket.prepare(request)
        self._sockets.add(socket)

        def admit(actor: Actor) -> None:
            if self._check is not None:
                self._check(request, actor)
            self._admission.count(request, actor.user_id, RequestUse.LISTENER)

        doors = SocketServices(self._identify, admit, partial(log_refused, request, "socket without a user"))
        connection = _Connection(socket, self._hub, self._calls, doors, self._tasks)
        try:
            await connection.run()
        finally:
            self._sockets.discard(socket)
        return socket

    async def close(self) -> None:
        """Close all connections and refuse new ones, as the gateway stops."""
        self._is_open = False
        with suppress(TimeoutError):
            # A client that reads nothing blocks the closing frame.
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.gather(*[socket.close() for socket in self._sockets])


class _Connection:
    def __init__(
        self,
        socket: web.WebSocketResponse,
        hub: Hub,
        calls: EventCalls,
        doors: SocketServices,
        tasks: TaskRegistry,
    ) -> None:
        self._socket = socket
        self._hub = hub
        self._calls = calls
        self._doors = doors
        self._tasks = tasks
        self._session_id = ids.new_id()
        self._listener: Subscription | None = None
        self._writing = ""
        self._count = 0
        # Unanswered calls by the ids of their packets.
        self._pending_calls: OrderedDict[int, str] = OrderedDict()
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._due = self._began + PING_SECONDS
        self._is_pinged = False

    async def run(self) -> None:
        """Serve the connection until either side closes it."""
        hello = packets.open_packet(
            self._session_id, ping_seconds=PING_SECONDS, pong_seconds=PONG_SECONDS, limit=MAX_PACKET_BYTES
        )
        try:
            await self._socket.send_str(hello)
            while (packet := await self._receive()) is not None:
                await self._take(packet)
        except ConnectionError:
            log.debug("socket ended: the client has left")
        except ValueError as error:
            log.info("socket closed: a packet is malformed: %s", error)
        finally:
            await self._leave()
            await self._socket.close()

    async def _receive(self) -> SocketPacket | None:
        """Return the next packet, None at the end. A ping is sent every 25 s and must be answered."""
        while True:
            if self._listener is None and self._loop.time() > self._began + ANONYMOUS_SECONDS:
                return None
            try:
                message = await self._socket.receive(timeout=max(self._due - self._loop.time(), 0.001))
            except TimeoutError:
                if self._is_pinged:
                    return None
                await self._socket.send_str(packets.PING)
                self._is_pinged, self._due = True, self._loop.time() + PONG_SECONDS
                continue
            if message.type is not WSMsgType.TEXT:
                return None
            packet = packets.read_packet(message.data)
            if packet is not None and packet.type in (PacketType.CLOSE, PacketType.LEAVE):
                return None
            if packet is not None and packet.type is not PacketType.PONG:
                return packet
            self._is_pinged, self._due = False, self._loop.time() + PING_SECONDS

    async def _take(self, packet: SocketPacket) -> None:
        match packet.type:
            case PacketType.CONNECT if packet.namespace != "/":
                await self._socket.send_str(packets.refusal_packet(packet.namespace))
            case PacketType.CONNECT:
                await self._join(packet.data)
                await self._socket.send_str(packets.connect_packet(self._session_id))
                self._start()
            case PacketType.EVENT:
                await self._handle_event(packet)
            case PacketType.ACK:
                await self._answer(packet)
            case _:
                raise ValueError(f"{packet.type.name.lower()} is not expected")

    async def _handle_event(self, packet: SocketPacket) -> None:
        """Handle a client's event; unknown events get no answer."""
        name, data = _event_of(packet.data)
        if name == "user-join":
            user = await self._join(data.get("auth"))
        elif name == "heartbeat":
            user = None
        else:
            return
        if packet.id is not None:
            answer = None if user is None else {"id": user.id, "name": user.name}
            await self._socket.send_str(packets.ack_packet(packet.id, answer))
        self._start()

    async def _join(self, auth: Any) -> User | None:
        """Subscribe the user of the token and return it; a client without a valid token gets no events."""
        token = auth.get("token") if isinstance(auth, dict) else None
        if not isinstance(token, str):
            return None
        await self._leave()
        try:
            actor = await self._doors.identify(token)
            if not actor.is_verified:
                return None
            self._doors.admit(actor)
        except GatewayError as error:
            self._doors.tell(error)
            return None
        self._listener = self._hub.subscribe(actor.user_id, session_id=self._session_id)
        self._listener.until, self._listener.has_key = actor.expires_at, actor.key_id is not None
        return actor.user

    def _start(self) -> None:
        if self._listener is not None and not self._writing:
            self._writing = self._tasks.spawn("socket", self._write(self._listener))

    async def _leave(self) -> None:
        writing, self._writing = self._writing, ""
        listener, self._listener = self._listener, None
        try:
            if writing:
                await self._tasks.stop(writing)
        finally:
            # The departure of the client cancels the wait.
            if listener is not None:
                listener.close()

    async def _write(self, listener: Subscription) -> None:
        """Forward the events of the subscription; close the connection when it is revoked or too slow."""
        try:
            while frames := await listener.next():
                for is_call, payload in _payloads(frames):
                    await self._socket.send_str(self._packet(is_call, payload))
            await self._socket.send_str(packets.DISCONNECT)
            await self._socket.close()
        except ConnectionError:
            log.debug("socket ended: the client has left")

    def _packet(self, is_call: bool, payload: bytes) -> str:
        if not is_call:
            return packets.event_packet(payload)
        self._count += 1
        self._pending_calls[self._count] = orjson.loads(payload)["call_id"]
        if len(self._pending_calls) > MAX_UNANSWERED_CALLS:
            self._pending_calls.popitem(last=False)
        return packets.event_packet(payload, self._count)

    async def _answer(self, packet: SocketPacket) -> None:
        call_id = self._pending_calls.pop(packet.id or 0, None)
        if call_id is None or self._listener is None:
            return
        values = packet.data if isinstance(packet.data, list) else []
        try:
            await self._calls.answer(self._listener.opened.user_id, call_id, values[0] if values else None)
        except GatewayError as error:
            # Another session has answered, or the call has ended.
            log.debug("answer dropped: %s", error.full_message)


def _event_of(data: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the first argument of a client's event; raises ValueError without a name."""
    if not isinstance(data, list) or not data or not isinstance(data[0], str):
        raise ValueError("an event has no name")
    return data[0], data[1] if len(data) > 1 and isinstance(data[1], dict) else {}


def _payloads(frames: bytes) -> Iterator[tuple[bool, bytes]]:
    """Yield whether each frame of a subscription is a call, and its JSON; calls have no id."""
    for block in frames.split(b"\n\n"):
        head, found, payload = block.partition(b"data: ")
        if found:
            yield not head, payload
