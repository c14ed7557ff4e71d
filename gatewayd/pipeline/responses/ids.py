"""Binds what a provider keeps under an id to the user who received the id in an answer."""

import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from gatewayd import ids, json_decoder
from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import GatewayError, invalid, not_found, shorten
from gatewayd.json_decoder import JsonLimits
from gatewayd.pipeline.filters.passed_answers import PassedAnswer
from gatewayd.pipeline.filters.streams import EVENT_STREAM_TYPE, MAX_WHOLE_BYTES
from gatewayd.pipeline.interfaces import ResponseIdStore
from gatewayd.pipeline.responses.references import MAX_REFERENCES, ResponseReference, ids_in, references_in
from gatewayd.text import MAX_ANSWER_DEPTH
from gatewayd.time_slices import LoopPacer
from gatewayd.write_attempts import NO_CHAT_ID, DeferredWrite

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 30 * 86_400
"""For how long an id is remembered."""

MAX_IDS_PER_USER: Final = 100_000
"""Ids that are remembered of one user."""

MAX_ID_CHARACTERS: Final = 512
"""Characters of an id that is remembered."""

_LAST: Final = (b"event: response.completed\n", b"event: response.incomplete\n", b"event: response.failed\n")
_DONE: Final = b"data: [DONE]"
_READ: Final = (*_LAST, b"event: response.created\n", b"event: response.output_item.done\n")
"""How the events begin in which new ids stand."""

_LIMITS: Final = JsonLimits(
    containers=50_000, values=500_000, depth=MAX_ANSWER_DEPTH, has_exact_integers=False
)
"""What an answer may hold whose ids are kept."""

SLICE_ITEMS: Final = 500
"""Items of an input that are looked at before others have their turn."""


@dataclass(frozen=True, slots=True)
class ResponseRecipient:
    """Who receives an answer, and with which request."""

    user_id: str
    request_id: str = ""


class ResponseIds:
    """Remembers who received which id, and refuses the ids of others.

    What the database cannot take now is kept in memory, and counts as stored.
    """

    def __init__(
        self,
        store: ResponseIdStore,
        deferred: DeferredWrites,
        clock: ids.Clock = ids.now,
        prune_clock: ids.Clock | None = None,
    ) -> None:
        self._store = store
        self._deferred = deferred
        self._pending: dict[str, DeferredWrite] = {}
        self._clock = clock
        self._prune_clock = prune_clock or ids.retention_clock()

    async def check(self, body: Body, user_id: str) -> None:
        """Refuse a request with an id that the user has not received.

        Raises not_found, or invalid_request with the code previous_response_not_found: whether somebody else
        has received it is not told.
        """
        found = await _references(body)
        if not found:
            return
        if len(found) > MAX_REFERENCES:
            raise invalid(f"cannot use input: it names over {MAX_REFERENCES} ids", param="input")
        digests = {each.id: ids.digest(each.id) for each in found if len(each.id) <= MAX_ID_CHARACTERS}
        owners = await self._owners(digests.values())
        for each in found:
            if owners.get(digests.get(each.id, "")) == user_id:
                continue
            if each.noun == "response":
                raise invalid(
                    f"cannot find response {shorten(each.id)!r}",
                    param=each.param,
                    code="previous_response_not_found",
                )
            error = not_found(each.noun, each.id)
            raise GatewayError(error.kind, error.message, param=each.param)

    async def remember(self, given: Iterable[str], recipient: ResponseRecipient) -> None:
        """Remember that a user has received ids, now or later.

        Raises what the store raises, and its `unavailable` when too much is kept already.
        """
        short = (each for each in dict.fromkeys(given) if len(each) <= MAX_ID_CHARACTERS)
        digests = [ids.digest(each) for each in islice(short, MAX_REFERENCES)]
        # Who received an id first has it, also when that is not stored yet.
        digests = [each for each in digests if each not in self._pending]
        if not digests:
            return
        now = self._clock()

        async def store(_: bool) -> None:
            await self._store.add(digests, recipient.user_id, now)

        owner, request_id = recipient.user_id, recipient.request_id
        # No two writes have the same key: they need not wait for each other.
        write = await self._deferred.write(
            (NO_CHAT_ID, ids.new_id()), store, digests, owner=owner, is_answer=True, request_id=request_id
        )
        if write is not None:
            self._keep(digests, write)

    async def prune(self) -> int:
        """Forget ids that are 30 days old, and the oldest of users with too many; return how many."""
        return await self._store.prune(self._prune_clock() - KEPT_SECONDS, MAX_IDS_PER_USER)

    async def _owners(self, digests: Iterable[str]) -> dict[str, str]:
        """Return who received which ids; the database is not asked for those that wait for it."""
        asked = set(digests)
        owners = {each: self._pending[each].owner for each in asked if each in self._pending}
        rest = [each for each in asked if each not in owners]
        return owners | dict(await self._store.owners(rest)) if rest else owners

    def _keep(self, digests: Sequence[str], write: DeferredWrite) -> None:
        mine = [each for each in digests if self._pending.setdefault(each, write) is write]

        def forget() -> None:
            for each in mine:
                del self._pending[each]

        write.at_end = forget


class RememberedAnswer(PassedAnswer):
    """A `catalog.interfaces.Forwarded` over another one, whose ids are remembered before its last bytes pass.

    The bytes are left as they are, and pass also when the ids are lost, which is logged. A
    whole answer over 32 MiB passes without being remembered.
    """

    def __init__(self, answer: ForwardedAnswer, known: ResponseIds, recipient: ResponseRecipient) -> None:
        super().__init__(answer)
        self._known = known
        self._recipient = recipient
        self._given: dict[str, None] = {}

    def _body(self) -> AsyncGenerator[bytes, None]:
        return self._events() if self.content_type.lower().startswith(EVENT_STREAM_TYPE) else self._whole()

    async def _events(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._answer) as reads:
            async for read in reads:
                if b"event: response." in read or _DONE in read:
                    await self._look(read)
                yield read

    async def _look(self, read: bytes) -> None:
        """Take the ids of the events of a read, which holds whole ones."""
        is_over = False
        for frame in read.split(b"\n\n"):
            if frame.startswith(_READ):
                await self._take(frame.partition(b"\ndata:")[2])
            is_over = is_over or frame.startswith((*_LAST, _DONE))
        if is_over:
            await self._remember()

    async def _whole(self) -> AsyncGenerator[bytes, None]:
        held: list[bytes] = []
        size = 0
        async with aclosing(self._answer) as reads:
            async for read in reads:
                held.append(read)
                size += len(read)
                if size > MAX_WHOLE_BYTES:
                    break
            else:
                await self._take(b"".join(held))
                await self._remember()
            for each in held:
                yield each
            async for read in reads:
                yield read

    async def _take(self, raw: bytes) -> None:
        if len(self._given) >= MAX_REFERENCES:
            return
        self._given.update(dict.fromkeys(ids_in(as_mapping(await _decoded(raw)))))

    async def _remember(self) -> None:
        given, self._given = self._given, {}
        try:
            await self._known.remember(given, self._recipient)
        except GatewayError as error:
            extra = {"request_id": self._recipient.request_id}
            log.error("the ids of a response are not remembered: %s", error.full_message, extra=extra)


async def _references(body: Body) -> list[ResponseReference]:
    """Return what a request names, up to one more than it may name."""
    pace = LoopPacer()
    items = as_sequence(body.get("input"))
    found = list(islice(references_in({**body, "input": items[:SLICE_ITEMS]}), MAX_REFERENCES + 1))
    for start in range(SLICE_ITEMS, len(items), SLICE_ITEMS):
        if len(found) > MAX_REFERENCES:
            break
        found += references_in({"input": items[start : start + SLICE_ITEMS]})
        await pace.turn()
    return found


async def _decoded(raw: bytes) -> Any:
    try:
        return await json_decoder.decode(raw.strip(), _LIMITS)
    except GatewayError:
        # What is no JSON gives no ids, as a whole answer over 1 MiB may be, nor what holds too much.
        return None
