"""Rates of all nodes in Redis; each node counts its own calls too, for the time without Redis."""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd import ids
from gatewayd.bus.redis_client import RedisClient
from gatewayd.bus.redis_rate_scripts import CLOSE, LOOK, REDIS_CLOCK, RENEW, TAKE
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.interfaces import RateStore, RateTicket
from gatewayd.limits.records import RatePot, RateQuantity, RateRefusal, RateUse

BATCH_COMMANDS: Final = 200
MAX_QUEUED_COMMANDS: Final = 20_000
MAX_HEARD_POTS: Final = 10_000
RENEWED_TICKETS: Final = 1000
"""Maximum number of tickets in one command."""

RENEWALS: Final = 4
"""Number of renewals in the duration of a place."""

LOOK_SECONDS: Final = 1.0
"""Maximum interval at which it is looked whether places are to be renewed."""

MICRO: Final = 1_000_000
QUANTITIES: Final = (RateQuantity.REQUESTS, RateQuantity.TOKENS, RateQuantity.PARALLEL)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RedisTicket:
    """What one call took: its part of the local store, and in Redis the slots of its amounts by pot."""

    id: str
    pots: tuple[RatePot, ...]
    tokens: int
    local: RateTicket
    slots: Sequence[Sequence[int]] = ()
    is_open: bool = True


@dataclass(slots=True)
class _Command:
    """A call of a script, and the future of its reply; nobody waits for one without."""

    script: str
    keys: Sequence[str]
    values: Sequence[str | int]
    reply: "asyncio.Future[Any] | None" = None
    ticket: RedisTicket | None = None


@dataclass(frozen=True, slots=True)
class _Heard:
    use: RateUse
    at: float


@dataclass(slots=True)
class RedisRateOptions:
    """`seconds` is the time after which the places of a dead node are free.

    `is_closed` refuses calls with limits while Redis fails; otherwise this node counts its own calls alone.
    `clock` is the text of a script that sets `now`.
    """

    seconds: float = 12.0
    is_closed: bool = False
    prefix: str = "gatewayd"
    clock: str = REDIS_CLOCK
    monotonic: Callable[[], float] = field(default=time.monotonic)


class RedisRates:
    """Implements `limits.interfaces.RateStore` for all nodes. Spawn `run` once.

    The commands of a node go to Redis in their order, all that wait in one round trip. None is repeated; the
    tokens of a call whose end gets lost stay counted as reserved until their minute is over, and its places
    until `seconds` after the last renewal. Renewals enter running calls again into a Redis that was emptied.
    """

    def __init__(self, client: RedisClient, local: RateStore, options: RedisRateOptions) -> None:
        self._client = client
        self._local = local
        self._options = options
        self._prefix = f"{{{options.prefix}}}:rate:"
        self._scripts = {
            name: client.script(options.clock + text)
            for name, text in (("take", TAKE), ("close", CLOSE), ("look", LOOK), ("renew", RENEW))
        }
        self._queue: deque[_Command] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._open: dict[str, RedisTicket] = {}
        self._heard: OrderedDict[str, _Heard] = OrderedDict()
        self._renewed_at = float("-inf")
        self._has_ended = False
        self._is_told = False

    async def take(self, pots: Sequence[RatePot], tokens: int) -> RedisTicket | RateRefusal:
        """Take from each pot of all nodes, or nothing from any; unavailable without Redis if closed.

        What the calls of this node alone fill is refused without a question to Redis.
        """
        local = await self._local.take(pots, tokens)
        if isinstance(local, RateRefusal):
            return local
        ticket = RedisTicket(ids.new_id(), tuple(pots), max(tokens, 0), local)
        is_taken = False
        try:
            refusal = await self._ask(ticket)
            is_taken = refusal is None
        finally:
            if not is_taken:
                self._local.undo(local)
        if refusal is not None:
            return refusal
        if any(pot.parallel is not None for pot in pots):
            self._open[ticket.id] = ticket
            self._wake.set()
        return ticket

    def give_back(self, ticket: RateTicket, tokens: int) -> None:
        """Free the places, and correct the tokens, soon."""
        self._close(ticket, tokens, is_undone=False)

    def undo(self, ticket: RateTicket) -> None:
        """Give back everything, soon."""
        self._close(ticket, 0, is_undone=True)

    def use(self, pot: RatePot) -> RateUse:
        """Return the use of a pot as Redis told it last; that of this node without Redis."""
        heard = self._heard.get(pot.id)
        if heard is None or not self._client.is_usable:
            return self._local.use(pot)
        passed, use = self._options.monotonic() - heard.at, heard.use
        return RateUse(
            use.requests if passed < use.requests_reset else 0,
            use.tokens if passed < use.tokens_reset else 0,
            use.parallel,
            max(0.0, use.requests_reset - passed),
            max(0.0, use.tokens_reset - passed),
        )

    async def look(self, pots: Sequence[RatePot]) -> None:
        """Ask Redis for the use of pots; without it nothing is learned."""
        if not pots or not self._is_usable:
            return
        reply = asyncio.get_running_loop().create_future()
        self._put(_Command("look", self._keys(pots), (), reply))
        try:
            self._hear(pots, await reply)
        except GatewayError as error:
            self._tell(error)

    async def run(self) -> None:
        """Send the commands, and renew the places of running calls, until cancelled."""
        try:
            while True:
                pause = min(LOOK_SECONDS, self._options.seconds / RENEWALS) if self._open else None
                with suppress(TimeoutError):
                    # The end of the time is a renewal.
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
                self._wake.clear()
                self._renew()
                while self._queue:
                    await self._send()
                self._idle.set()
        finally:
            self._has_ended = True
            self._fail([*self._queue], _unreachable("the node stops"))
            self._queue.clear()

    async def flush(self, seconds: float) -> None:
        """Wait until what was given back is sent, `seconds` at most; the rest ends by itself."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            log.warning("limits of ended calls are given back by time")

    @property
    def _is_usable(self) -> bool:
        return self._client.is_usable and not self._has_ended and len(self._queue) < MAX_QUEUED_COMMANDS

    async def _ask(self, ticket: RedisTicket) -> RateRefusal | None:
        """Take a ticket in Redis; return why it is refused."""
        try:
            if not self._is_usable:
                raise _unreachable("it failed a moment ago")
            reply = await self._ask_redis(ticket)
        except GatewayError as error:
            self._tell(error)
            if self._options.is_closed:
                raise GatewayError(
                    ErrorKind.UNAVAILABLE,
                    f"cannot check the limits of the call: {error.message}",
                    retry_after=1,
                ) from error
            return None
        worst, uses, slots = reply
        self._is_told = False
        self._hear(ticket.pots, uses)
        if worst:
            number, quantity, micro = worst
            return RateRefusal(ticket.pots[number - 1], QUANTITIES[quantity - 1], micro / MICRO)
        ticket.slots = slots
        return None

    async def _ask_redis(self, ticket: RedisTicket) -> Any:
        values: list[str | int] = [ticket.id, int(self._options.seconds * MICRO), ticket.tokens]
        for pot in ticket.pots:
            values += [-1 if limit is None else limit for limit in (pot.requests, pot.tokens, pot.parallel)]
        reply = asyncio.get_running_loop().create_future()
        self._put(_Command("take", self._keys(ticket.pots), values, reply, ticket))
        try:
            return await reply
        except GatewayError:
            # It may have been carried out all the same.
            self._put_close(ticket, 0, is_undone=True)
            raise
        except asyncio.CancelledError:
            if reply.done() and not reply.cancelled() and reply.exception() is None:
                self._drop(ticket, reply.result())
            raise

    def _drop(self, ticket: RedisTicket, reply: Any) -> None:
        """Give back what was taken for a caller that is gone."""
        worst, _, ticket.slots = reply
        if not worst:
            self._put_close(ticket, 0, is_undone=True)

    def _close(self, ticket: RateTicket, tokens: int, *, is_undone: bool) -> None:
        if not isinstance(ticket, RedisTicket):
            raise TypeError("a ticket of another store")
        if not ticket.is_open:
            return
        ticket.is_open = False
        self._open.pop(ticket.id, None)
        if is_undone:
            self._local.undo(ticket.local)
        else:
            self._local.give_back(ticket.local, tokens)
        if self._is_usable:
            self._put_close(ticket, tokens, is_undone=is_undone)

    def _put_close(self, ticket: RedisTicket, tokens: int, *, is_undone: bool) -> None:
        values: list[str | int] = [ticket.id, int(is_undone), max(tokens, 0)]
        for number, pot in enumerate(ticket.pots):
            slots = ticket.slots[number] if ticket.slots else (0, 0)
            values += [*slots, 0 if pot.tokens is None else min(ticket.tokens, pot.tokens)]
        self._put(_Command("close", self._keys(ticket.pots), values))

    def _put(self, command: _Command) -> None:
        self._queue.append(command)
        self._idle.clear()
        self._wake.set()

    def _renew(self) -> None:
        """Put the renewal of the places of running calls in front of the queue, if it is due."""
        now = self._options.monotonic()
        if not self._open or now - self._renewed_at < self._options.seconds / RENEWALS:
            return
        self._renewed_at = now
        by_pot: dict[str, list[str]] = {}
        for ticket in self._open.values():
            for pot in ticket.pots:
                if pot.parallel is not None:
                    by_pot.setdefault(pot.id, []).append(ticket.id)
        length = int(self._options.seconds * MICRO)
        for pot_id, tickets in by_pot.items():
            for start in range(0, len(tickets), RENEWED_TICKETS):
                key = f"{self._prefix}places:{pot_id}"
                # First: what waits is to be compared with the calls that run.
                self._queue.appendleft(
                    _Command("renew", (key,), [length, *tickets[start : start + RENEWED_TICKETS]])
                )

    async def _send(self) -> None:
        batch = [self._queue.popleft() for _ in range(min(BATCH_COMMANDS, len(self._queue)))]
        is_sent = False
        try:
            replies = await self._client.run(lambda client: self._execute(client, batch))
            is_sent = True
        except GatewayError as error:
            self._tell(error)
            self._fail(batch, error)
            self._renewed_at = float("-inf")
            return
        finally:
            if not is_sent:
                self._fail(batch, _unreachable("the command was interrupted"))
        for command, reply in zip(batch, replies, strict=True):
            if isinstance(reply, Exception):
                self._fail([command], _unreachable(str(reply)))
            elif command.reply is not None and not command.reply.done():
                command.reply.set_result(reply)
            elif command.ticket is not None:
                self._drop(command.ticket, reply)

    async def _execute(self, client: Any, batch: Sequence[_Command]) -> Sequence[Any]:
        """Run commands in one round trip; a server that does not know the scripts gets them."""
        replies = await self._call(client, batch)
        unknown = [at for at, reply in enumerate(replies) if type(reply).__name__ == "NoScriptError"]
        if unknown:
            for script in self._scripts.values():
                await client.script_load(script.script)
            # Those that were known have been carried out.
            again = await self._call(client, [batch[at] for at in unknown])
            for at, reply in zip(unknown, again, strict=True):
                replies[at] = reply
        return replies

    async def _call(self, client: Any, batch: Sequence[_Command]) -> list[Any]:
        pipeline = client.pipeline(transaction=False)
        for command in batch:
            sha = self._scripts[command.script].sha
            await pipeline.evalsha(sha, len(command.keys), *command.keys, *command.values)
        return list(await pipeline.execute(raise_on_error=False))

    def _fail(self, commands: Sequence[_Command], error: GatewayError) -> None:
        for command in commands:
            if command.reply is not None and not command.reply.done():
                command.reply.set_exception(error)

    def _hear(self, pots: Sequence[RatePot], uses: Sequence[Sequence[int]]) -> None:
        at = self._options.monotonic()
        for pot, (requests, tokens, parallel, requests_reset, tokens_reset) in zip(pots, uses, strict=True):
            use = RateUse(requests, tokens, parallel, requests_reset / MICRO, tokens_reset / MICRO)
            self._heard[pot.id] = _Heard(use, at)
            self._heard.move_to_end(pot.id)
        while len(self._heard) > MAX_HEARD_POTS:
            self._heard.popitem(last=False)

    def _tell(self, error: GatewayError) -> None:
        """Log the begin of an outage."""
        if not self._is_told:
            what = "calls with limits are refused" if self._options.is_closed else "this node counts alone"
            log.warning("limits without Redis: %s: %s", what, error.message)
        self._is_told = True

    def _keys(self, pots: Sequence[RatePot]) -> Sequence[str]:
        return [f"{self._prefix}{kind}:{pot.id}" for pot in pots for kind in ("window", "places")]


def _unreachable(reason: str) -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, f"cannot reach Redis: {reason}")
