"""Messages between the nodes: news, and requests with replies. Only living nodes get them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.interfaces import NodeChannel
from gatewayd.nodes.records import NodeMessage
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

BEAT_SECONDS: Final = 1.0
"""Interval at which a node tells that it lives."""

DEAD_SECONDS: Final = 3.0
"""How long a node counts as living that is not heard of."""

REPLY_SECONDS: Final = 5.0
"""How long a request waits for the replies of living nodes."""

SERVE_SECONDS: Final = 5.0
"""How long a request of another node is worked on: nobody waits for the reply any longer."""

MAX_MESSAGE_BYTES: Final = 2 << 20
MAX_SERVED: Final = 1000
"""Maximum number of requests of other nodes that are being answered; further ones get no reply."""

BEAT, REPLY = "beat", "reply"

NewsHandler = Callable[[str, Mapping[str, Any]], None]
"""Gets the id of the sender, and the body."""

RequestHandler = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Gets the body, and returns a JSON value; None if the request is about another node."""


@dataclass(eq=False, slots=True)
class _Asked:
    """A request that waits for replies: the nodes that have not answered, and the values so far."""

    missing: set[str]
    values: list[Any]
    is_first_enough: bool
    done: asyncio.Event


class NodeMessages:
    """Sends and gets messages of the nodes. Spawn `run` once."""

    def __init__(
        self, channel: NodeChannel, tasks: TaskRegistry, elapsed: Callable[[], float] = ids.since_boot
    ) -> None:
        self._channel = channel
        self._tasks = tasks
        self._elapsed = elapsed
        self._news: dict[str, NewsHandler] = {BEAT: lambda _, __: None, REPLY: self._take_reply}
        self._requests: dict[str, RequestHandler] = {}
        self._at_beat: list[Callable[[], None]] = []
        self._heard_at: dict[str, float] = {}
        self._asked: dict[str, _Asked] = {}
        self._served = 0
        self._is_new = asyncio.Event()
        self._beat_at = float("-inf")
        self._blind_until = float("inf")
        channel.hear(self._hear)

    @property
    def is_shared(self) -> bool:
        """Whether there may be other nodes."""
        return self._channel.is_shared

    @property
    def is_usable(self) -> bool:
        """Whether other nodes can be reached now."""
        return self._channel.is_usable

    @property
    def peers(self) -> frozenset[str]:
        """The ids of the other nodes that live."""
        since = self._elapsed() - DEAD_SECONDS
        return frozenset(node for node, at in self._heard_at.items() if at >= since)

    def on(self, kind: str, handler: NewsHandler) -> None:
        """Call `handler` for the news of a kind."""
        self._news[kind] = handler

    def serve(self, kind: str, handler: RequestHandler) -> None:
        """Reply to the requests of a kind with what `handler` returns."""
        self._requests[kind] = handler

    def at_beat(self, callback: Callable[[], None]) -> None:
        """Call `callback` once a second."""
        self._at_beat.append(callback)

    def tell(self, kind: str, body: Mapping[str, Any], *, key: str = "", to: str = "") -> bool:
        """Send news to all other nodes, or to one; return False if they certainly reach nobody.

        Raises too_large over 2 MiB.
        """
        if not self._channel.is_shared:
            return False
        data = orjson.dumps(body)
        if len(data) > MAX_MESSAGE_BYTES:
            raise GatewayError(
                ErrorKind.TOO_LARGE, f"cannot tell other nodes: over {MAX_MESSAGE_BYTES >> 20} MiB of JSON"
            )
        return self._channel.tell(NodeMessage(kind, data, key or self._channel.node_id, to))

    async def ask(self, kind: str, body: Mapping[str, Any], *, key: str = "", to: str = "") -> Any:
        """Send a request to the living nodes, or to one, and return the first value of a reply.

        Returns None if the request is about none of them. Raises unavailable if that is not known: a node did
        not reply within 5 seconds, and may have done what it was asked, or this node does not know yet which
        ones live; too_large as `tell` does.
        """
        asked = await self._ask(kind, body, key, to, is_first_enough=True)
        if asked.values:
            return asked.values[0]
        if asked.missing:
            raise GatewayError(
                ErrorKind.UNAVAILABLE, "cannot ask another node: it does not reply", retry_after=1
            )
        if not to and self._is_blind:
            raise GatewayError(
                ErrorKind.UNAVAILABLE,
                "cannot ask the other nodes: it is not known yet which ones live",
                retry_after=1,
            )
        return None

    async def gather(self, kind: str, body: Mapping[str, Any]) -> Sequence[Any]:
        """Send a request to the living nodes and return the values of the replies that come within 2 s.

        Returns nothing if no node can be reached.
        """
        try:
            return (await self._ask(kind, body, "", "", is_first_enough=False)).values
        except GatewayError as error:
            log.debug("cannot ask the other nodes: %s", error.message)
            return ()

    async def run(self) -> None:
        """Tell that this node lives, for ever."""
        while True:
            self._is_new.clear()
            self._see()
            self.tell(BEAT, {})
            self._forget_dead()
            for callback in self._at_beat:
                callback()
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    await self._is_new.wait()
            except TimeoutError:
                continue

    @property
    def _is_blind(self) -> bool:
        """Whether nodes may live that are not heard yet: after a start, an outage or a pause of this one."""
        now = self._elapsed()
        is_late = now < self._blind_until or now - self._beat_at > DEAD_SECONDS
        return self._channel.is_shared and (is_late or not self._channel.is_usable)

    def _see(self) -> None:
        """Note whether the other nodes could be heard until now."""
        now = self._elapsed()
        if now - self._beat_at > DEAD_SECONDS or not self._channel.is_usable:
            self._blind_until = now + 2 * BEAT_SECONDS
        self._beat_at = now

    async def _ask(
        self, kind: str, body: Mapping[str, Any], key: str, to: str, *, is_first_enough: bool
    ) -> _Asked:
        missing = {to} if to else set(self.peers)
        asked = _Asked(missing, [], is_first_enough, asyncio.Event())
        if not missing:
            return asked
        request_id = ids.new_id()
        self._asked[request_id] = asked
        try:
            if not self.tell(kind, {"request": request_id, "body": body}, key=key, to=to):
                raise GatewayError(
                    ErrorKind.UNAVAILABLE, "cannot reach the other nodes: Redis is away", retry_after=1
                )
            async with asyncio.timeout(REPLY_SECONDS):
                await asked.done.wait()
        except TimeoutError:
            log.debug("a node did not reply", extra={"kind": kind})
        finally:
            del self._asked[request_id]
        return asked

    def _hear(self, message: NodeMessage) -> None:
        if message.sender not in self.peers:
            # It learns of this node at once, too.
            self._is_new.set()
        self._heard_at[message.sender] = self._elapsed()
        if len(message.body) > MAX_MESSAGE_BYTES:
            log.warning("a message of another node is too large, and ignored", extra={"kind": message.kind})
            return
        try:
            self._dispatch(message)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # A node of another version may say more, or less.
            log.warning(
                "a message of another node is not understood: %r", error, extra={"kind": message.kind}
            )

    def _dispatch(self, message: NodeMessage) -> None:
        news, request = self._news.get(message.kind), self._requests.get(message.kind)
        if news is not None:
            news(message.sender, orjson.loads(message.body))
        elif request is not None and self._served < MAX_SERVED:
            asked = orjson.loads(message.body)
            work = self._serve(request, asked["body"], asked["request"], message.sender)
            self._served += 1
            self._tasks.spawn("request of another node", work, at_end=self._end_served)

    def _end_served(self) -> None:
        self._served -= 1

    async def _serve(
        self, handler: RequestHandler, body: Mapping[str, Any], request_id: str, sender: str
    ) -> None:
        try:
            async with asyncio.timeout(SERVE_SECONDS):
                value = await handler(body)
        except TimeoutError:
            # Such as the stop of a task that does not end: what was begun goes on.
            log.warning("a request of another node got no reply in time")
            return
        self.tell(REPLY, {"request": request_id, "value": value}, to=sender)

    def _take_reply(self, sender: str, body: Mapping[str, Any]) -> None:
        asked = self._asked.get(body["request"])
        if asked is None or sender not in asked.missing:
            return
        asked.missing.discard(sender)
        if body["value"] is not None:
            asked.values.append(body["value"])
        if not asked.missing or (asked.values and asked.is_first_enough):
            asked.done.set()

    def _forget_dead(self) -> None:
        alive = self.peers
        self._heard_at = {node: at for node, at in self._heard_at.items() if node in alive}


class NoChannel:
    """Implements `interfaces.NodeChannel` for a daemon alone."""

    is_shared = False
    is_usable = True
    node_id = ""

    def tell(self, message: NodeMessage) -> bool:
        """Return False: there are no other nodes."""
        return False

    def hear(self, listener: Callable[[NodeMessage], None]) -> None:
        """Do nothing: no message comes."""
