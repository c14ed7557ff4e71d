"""Bus of several gateways over streams of Redis: every frame in one order, and kept for whoever resumes."""

import asyncio
import logging
import zlib
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from gatewayd import ids
from gatewayd.bus.redis_client import BLOCK_SECONDS, RedisClient, reason_of
from gatewayd.bus.redis_scripts import APPEND, ATTACH, MISSED, PASS
from gatewayd.errors import GatewayError
from gatewayd.events.interfaces import FrameListener, GapListener
from gatewayd.events.records import EventFrame, FramePlace, MissedFrames
from gatewayd.events.rooms import EventLimits
from gatewayd.nodes.interfaces import MessageListener
from gatewayd.nodes.records import NodeMessage

SHARDS: Final = 16
SHARD_FRAMES: Final = 10_000
SHARD_BYTES: Final = 8 << 20
SHARD_SECONDS: Final = 120
"""Limits of a shard: by how much a node may be behind. One that is behind by more is told of a gap."""

MAX_QUEUED_FRAMES: Final = 10_000
MAX_QUEUED_BYTES: Final = 16 << 20
BATCH_FRAMES: Final = 100
READ_FRAMES: Final = 500
MAX_LOCAL_FRAMES: Final = 20_000
MAX_GAP_USERS: Final = 10_000
FACTS_SECONDS: Final = 7 * 86_400
"""How long it is known which frames of a user are lost; a position from before is a gap."""

SETTLE_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 0.25
EVENT, GAP, MESSAGE = b"e", b"g", b"m"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Queued:
    number: int
    user_id: str
    frame: EventFrame
    kind: bytes = EVENT


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a shard: `former` is the order of the one before it, `number` that of its sender."""

    place: FramePlace
    former: tuple[int, int]
    user_id: str
    frame: EventFrame
    kind: bytes
    sender: str
    number: int


class RedisBus:
    """Implements `events.interfaces.Bus` and `nodes.interfaces.NodeChannel`. Spawn `send` and `read` once.

    A message between nodes is an entry of a shard like a frame, in one order with the frames of its user: the
    chat is the addressed node, `about` the kind. One that Redis cannot take is lost.

    A publish never waits for Redis. What Redis cannot take is delivered here at once; when it is back, the
    users concerned are told of a gap on every node. A frame whose fate is unknown is not sent again.
    """

    is_shared = True

    def __init__(self, client: RedisClient, limits: EventLimits, *, prefix: str = "gatewayd") -> None:
        self._client = client
        self._limits = limits
        # One hash tag: the keys of a script are in one slot of a cluster.
        self._prefix = f"{{{prefix}}}:"
        self._node = ids.new_secret(8)
        self._append = client.script(APPEND)
        self._pass = client.script(PASS)
        self._attach_script = client.script(ATTACH)
        self._missed = client.script(MISSED)
        self._listeners: list[FrameListener] = []
        self._gap_listeners: list[GapListener] = []
        self._message_listeners: list[MessageListener] = []
        self._queue: deque[_Queued] = deque()
        self._queued_bytes = 0
        self._number = 0
        self._done = 0
        self._local: OrderedDict[int, None] = OrderedDict()
        self._unseen: set[int] = set()
        self._gap_users: dict[str, None] = {}
        self._is_all_gapped = False
        self._wake = asyncio.Event()
        self._moved = asyncio.Event()
        self._epoch = ""
        self._ids: dict[str, str] = {}
        self._is_read = False
        self._is_refused = False

    @property
    def is_whole(self) -> bool:
        """Whether Redis answered the last reading, and the last command did not fail a moment ago."""
        return self._is_read and self._client.is_usable

    async def publish(self, user_id: str, frame: EventFrame) -> None:
        """Queue a frame for every node; deliver it here alone while Redis fails."""
        self._enqueue(user_id, frame, EVENT)
        if not self._client.is_usable or self._is_full():
            while self._queue:
                self._deliver_locally(self._next())

    @property
    def node_id(self) -> str:
        """The id by which other nodes know this one."""
        return self._node

    @property
    def is_usable(self) -> bool:
        """Whether messages may reach other nodes, and theirs this one."""
        return self.is_whole

    def tell(self, message: NodeMessage) -> bool:
        """Queue a message to other nodes; return False if it certainly reaches nobody."""
        if not self._client.is_usable or self._is_full():
            return False
        self._enqueue(message.key, EventFrame(message.to, message.body, message.kind), MESSAGE)
        return True

    def hear(self, listener: MessageListener) -> None:
        """Pass each further message of another node to `listener`."""
        self._message_listeners.append(listener)

    def subscribe(self, listener: FrameListener) -> None:
        """Pass each further frame of any node to `listener`."""
        self._listeners.append(listener)

    def watch_gaps(self, listener: GapListener) -> None:
        """Tell `listener` of users, None for all, who have lost frames."""
        self._gap_listeners.append(listener)

    def position(self, user_id: str) -> str | None:
        """Return the id of the newest frame of the user's shard that was delivered here."""
        if not self._epoch or not self._client.is_usable:
            return None
        return f"{self._epoch}-{self._ids[self._shard(user_id)]}"

    async def missed(self, user_id: str, last_id: str) -> MissedFrames:
        """Return the kept frames of a user after an id, and whether any is lost."""
        place = parse_place(last_id)
        first = "-" if place is None else f"({place.order[0]}-{place.order[1]}"
        try:
            epoch, floor, now, last, entries = await self._look(user_id, first)
            is_foreign = place is None or place.epoch != epoch.decode()
            if is_foreign and first != "-":
                epoch, floor, now, last, entries = await self._look(user_id, "-")
        except GatewayError as error:
            log.warning("cannot resume a stream of events: %s", error.message)
            return MissedFrames((), is_gap=True)
        try:
            found = [(_place(epoch, entry[0]), _fields(entry[1])) for entry in entries]
            kinds = {fields[b"k"] for _, fields in found}
            frames = [(at, _frame(fields)) for at, fields in found if fields[b"k"] == EVENT]
        except (KeyError, ValueError):
            log.warning("the events of a user in Redis are not understood")
            return MissedFrames((), is_gap=True)
        is_gap = (
            place is None
            or is_foreign
            or 0 < place.order[0] < now - FACTS_SECONDS * 1000
            or bool(floor and order_of(floor.decode()) > place.order)
            or GAP in kinds
            or place.order > order_of(last.decode())
        )
        return MissedFrames(frames, is_gap)

    async def _look(self, user_id: str, first: str) -> Any:
        keys = [*self._keys(user_id), self._prefix + "epoch", self._shard(user_id)]
        return await self._client.run(lambda client: self._missed(keys=keys, args=[first], client=client))

    async def settle(self) -> None:
        """Wait, for a second at most, until what was published here before is delivered here."""
        wanted = self._number
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                while self._done < wanted:
                    self._moved.clear()
                    await self._moved.wait()

    async def send(self) -> None:
        """Append queued frames to the streams, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS if self._has_gaps else None):
                    await self._wake.wait()
            self._wake.clear()
            # A Redis that answers may refuse all the same, such as a full one: gaps are told later then.
            are_told = True
            while self._client.is_usable and (self._queue or (self._has_gaps and are_told)):
                if not are_told or not self._has_gaps:
                    await self._send_frames()
                elif self._is_all_gapped:
                    are_told = await self._renew_epoch()
                else:
                    are_told = await self._send_gaps()
            while self._queue:
                self._deliver_locally(self._next())

    async def read(self) -> None:
        """Deliver the frames of all nodes here, until cancelled."""
        is_told = False
        while True:
            try:
                await self.attach()
                is_told = False
                while True:
                    await self._read_some()
            except GatewayError as error:
                self._is_read = False
                if not is_told:
                    log.warning("cannot read events of other nodes: %s", error.message)
                is_told = True
                await asyncio.sleep(RETRY_SECONDS)

    def _enqueue(self, user_id: str, frame: EventFrame, kind: bytes) -> None:
        # What Redis cannot have fails its publisher, not the sender of all frames.
        for text in (user_id, frame.chat_id, frame.about):
            text.encode()
        self._number += 1
        self._queue.append(_Queued(self._number, user_id, frame, kind))
        self._queued_bytes += len(frame.payload)
        self._wake.set()

    def _is_full(self) -> bool:
        return len(self._queue) > MAX_QUEUED_FRAMES or self._queued_bytes > MAX_QUEUED_BYTES

    def _next(self) -> _Queued:
        queued = self._queue.popleft()
        self._queued_bytes -= len(queued.frame.payload)
        return queued

    @property
    def _has_gaps(self) -> bool:
        return bool(self._gap_users) or self._is_all_gapped

    async def _send_frames(self) -> None:
        batch = [self._next() for _ in range(min(BATCH_FRAMES, len(self._queue)))]
        self._unseen = {each.number for each in batch}
        replies = await self._append_all(
            [(each.user_id, each.frame, each.number, each.kind) for each in batch]
        )
        for each, reply in zip(batch, replies, strict=True):
            # A frame whose reply is lost may have come back all the same.
            if isinstance(reply, Exception) and each.number in self._unseen:
                self._deliver_locally(each)

    async def _send_gaps(self) -> bool:
        """Tell all nodes of some users with gaps; return whether Redis has taken every one."""
        users = list(self._gap_users)[:BATCH_FRAMES]
        nothing = EventFrame("", b"{}")
        replies = await self._append_all([(user_id, nothing, 0, GAP) for user_id in users])
        for user_id, reply in zip(users, replies, strict=True):
            if self._gap_users.pop(user_id, True) is None and isinstance(reply, Exception):
                # Behind those that have not been tried.
                self._gap_users[user_id] = None
        return not any(isinstance(reply, Exception) for reply in replies)

    async def _append_all(self, given: Sequence[tuple[str, EventFrame, int, bytes]]) -> Sequence[Any]:
        """Append frames in one round trip; return the reply or the error of each."""

        async def append(client: Any) -> Sequence[Any]:
            await self._load(client)
            pipeline = client.pipeline(transaction=False)
            for user_id, frame, number, kind in given:
                await self._add(pipeline, user_id, frame, number, kind)
            replies: Sequence[Any] = await pipeline.execute(raise_on_error=False)
            return replies

        try:
            replies = await self._client.run(append)
        except GatewayError as error:
            log.warning("events reach only the clients of this node: %s", error.message)
            return [error] * len(given)
        refused = next((reply for reply in replies if isinstance(reply, Exception)), None)
        if refused is not None and not self._is_refused:
            log.warning("events reach only the clients of this node: %s", reason_of(refused))
        self._is_refused = refused is not None
        return replies

    async def _load(self, client: Any) -> None:
        """Load the scripts once a connection may have lost them."""
        if not all(await client.script_exists(self._append.sha, self._pass.sha)):
            await client.script_load(APPEND)
            await client.script_load(PASS)

    async def _add(self, pipeline: Any, user_id: str, frame: EventFrame, number: int, kind: bytes) -> None:
        limits = self._limits
        given = [
            user_id,
            frame.chat_id,
            frame.payload,
            frame.about,
            self._node,
            number,
            kind,
            ids.new_secret(6),
            SHARD_FRAMES,
            SHARD_BYTES,
            SHARD_SECONDS * 1000,
        ]
        shard = self._shard(user_id)
        keys = [shard, shard + ":facts", self._prefix + "epoch"]
        script = self._pass
        if kind != MESSAGE:
            script = self._append
            keys += self._keys(user_id)
            given += [
                limits.replay_frames,
                limits.replay_bytes,
                int(limits.replay_seconds * 1000),
                FACTS_SECONDS * 1000,
            ]
        await pipeline.evalsha(script.sha, len(keys), *keys, *given)

    async def _renew_epoch(self) -> bool:
        """Make every position of before unknown; each shard tells the nodes. Return whether that is done."""
        epoch = ids.new_secret(6)
        entry = {"e": epoch, "u": "", "c": "", "p": "{}", "a": "", "n": self._node, "i": 0, "k": GAP}

        async def renew(client: Any) -> None:
            pipeline = client.pipeline(transaction=True)
            pipeline.set(self._prefix + "epoch", epoch)
            for number in range(SHARDS):
                pipeline.xadd(self._name(number), entry)
            await pipeline.execute()

        try:
            await self._client.run(renew)
        except GatewayError as error:
            if not self._is_refused:
                log.warning("cannot tell of lost events: %s", error.message)
            self._is_refused = True
            return False
        self._is_all_gapped = False
        self._gap_users.clear()
        return True

    def _deliver_locally(self, queued: _Queued) -> None:
        if queued.kind == MESSAGE:
            self._mark_done(queued.number)
            return
        self._local[queued.number] = None
        if len(self._local) > MAX_LOCAL_FRAMES:
            self._local.popitem(last=False)
        if len(self._gap_users) < MAX_GAP_USERS:
            self._gap_users[queued.user_id] = None
        else:
            self._is_all_gapped = True
        self._mark_done(queued.number)
        for listener in self._listeners:
            listener(queued.user_id, queued.frame, None)

    async def attach(self) -> None:
        """Learn the epoch and the ends of the shards; tell all of a gap if they are not those of before."""
        names = [self._name(number) for number in range(SHARDS)]
        keys = [self._prefix + "epoch", *names]
        epoch, *ends = await self._client.read(
            lambda client: self._attach_script(keys=keys, args=[ids.new_secret(6)], client=client)
        )
        found = dict(zip(names, (end.decode() for end in ends), strict=True))
        is_known = self._epoch == epoch.decode()
        is_back = any(order_of(found[name]) < order_of(self._ids[name]) for name in self._ids)
        if not self._ids or is_back:
            self._ids = found
        if self._epoch and (is_back or not is_known):
            if not is_known:
                # Every node learns of the new epoch: nobody needs to be told by name.
                self._gap_users.clear()
                self._is_all_gapped = False
            self._tell_gap(None)
        self._epoch = epoch.decode()
        self._is_read = True
        # Gaps of before may be told now.
        self._wake.set()

    async def _read_some(self) -> None:
        block = int(BLOCK_SECONDS * 1000)
        reply = await self._client.read(
            lambda client: client.xread(dict(self._ids), count=READ_FRAMES, block=block)
        )
        for shard, entries in reply or ():
            name = shard.decode()
            for entry_id, fields in entries:
                before, self._ids[name] = self._ids[name], entry_id.decode()
                entry = _parse_entry(entry_id, fields)
                if entry is None:
                    log.warning("an entry of the events in Redis is not understood, and skipped")
                    continue
                if entry.former > order_of(before):
                    log.warning("this node was too slow, or paused: events of other nodes are lost")
                    self._tell_gap(None)
                self._take(entry)
        if reply:
            await asyncio.sleep(0)

    def _take(self, entry: "_Entry") -> None:
        if entry.place.epoch != self._epoch:
            self._epoch = entry.place.epoch
            self._tell_gap(None)
        if entry.kind == GAP:
            self._tell_gap(entry.user_id or None)
            return
        if entry.sender == self._node:
            self._mark_done(entry.number)
            self._unseen.discard(entry.number)
            if self._local.pop(entry.number, True) is None:
                return
        if entry.kind == MESSAGE:
            self._pass_on(entry)
        elif entry.kind == EVENT:
            for listener in self._listeners:
                listener(entry.user_id, entry.frame, entry.place)

    def _pass_on(self, entry: "_Entry") -> None:
        frame, to = entry.frame, entry.frame.chat_id
        if entry.sender == self._node or to not in ("", self._node):
            return
        message = NodeMessage(frame.about, frame.payload, entry.user_id, to, entry.sender)
        for listener in self._message_listeners:
            listener(message)

    def _mark_done(self, number: int) -> None:
        self._done = max(self._done, number)
        self._moved.set()

    def _tell_gap(self, user_id: str | None) -> None:
        for listener in self._gap_listeners:
            listener(user_id)

    def _name(self, number: int) -> str:
        return f"{self._prefix}shard:{number}"

    def _shard(self, user_id: str) -> str:
        return self._name(zlib.crc32(user_id.encode()) % SHARDS)

    def _keys(self, user_id: str) -> tuple[str, str]:
        return f"{self._prefix}frames:{user_id}", f"{self._prefix}facts:{user_id}"


def parse_place(text: str) -> FramePlace | None:
    """Return the place in an id `epoch-milliseconds-number`, None for another text."""
    epoch, _, rest = text.partition("-")
    milliseconds, _, number = rest.partition("-")
    if not epoch or not all(
        part.isascii() and part.isdigit() and len(part) < 19 for part in (milliseconds, number)
    ):
        return None
    return FramePlace(epoch, (int(milliseconds), int(number)))


def order_of(entry_id: str) -> tuple[int, int]:
    """Return the order of an id of a stream."""
    milliseconds, _, number = entry_id.partition("-")
    return int(milliseconds), int(number)


def _place(epoch: bytes, entry_id: bytes) -> FramePlace:
    return FramePlace(epoch.decode(), order_of(entry_id.decode()))


def _parse_entry(entry_id: bytes, fields: Mapping[bytes, bytes]) -> _Entry | None:
    """Return an entry of a shard, None for one that no gateway has written."""
    try:
        return _Entry(
            _place(fields[b"e"], entry_id),
            order_of(fields.get(b"b", b"").decode() or "0-0"),
            fields[b"u"].decode(),
            _frame(fields),
            fields[b"k"],
            fields[b"n"].decode(),
            int(fields[b"i"]),
        )
    except (KeyError, ValueError):
        return None


def _frame(fields: Mapping[bytes, bytes]) -> EventFrame:
    return EventFrame(fields[b"c"].decode(), fields[b"p"], fields[b"a"].decode())


def _fields(flat: Sequence[bytes]) -> Mapping[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
