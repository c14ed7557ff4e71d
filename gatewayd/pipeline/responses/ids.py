"""Access control for the ids of the Responses protocol: only the recipient of an id may use it."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Final

from gatewayd import ids
from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import GatewayError, invalid, not_found, shorten
from gatewayd.pipeline.filters.forwarded_answers import PassedAnswer
from gatewayd.pipeline.filters.streams import EVENT_STREAM_TYPE
from gatewayd.pipeline.interfaces import ResponseIdStore
from gatewayd.pipeline.responses.references import MAX_REFERENCES, ResponseReference, ids_in, references_in
from gatewayd.pipeline.responses.reply_bodies import FINAL_EVENTS, decode_reply, examined
from gatewayd.time_slices import LoopPacer
from gatewayd.write_attempt import NO_CHAT_ID, DeferredWrite

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 30 * 86_400
"""How long an id is remembered."""

MAX_IDS_PER_USER: Final = 100_000
"""Maximum number of remembered ids per user."""

MAX_ID_CHARACTERS: Final = 512
"""Maximum length of a remembered id."""

_DONE: Final = b"data: [DONE]"
_ID_EVENTS: Final = (*FINAL_EVENTS, b"event: response.created\n", b"event: response.output_item.done\n")
"""First lines of the events that hold new ids."""

SLICE_ITEMS: Final = 500
"""Number of input items that are examined before other tasks get a turn."""


@dataclass(frozen=True, slots=True)
class ResponseRecipient:
    """The user who receives a reply, and the id of their request."""

    user_id: str
    request_id: str = ""


class ResponseIds:
    """Remembers the recipient of each id and refuses ids of other users.

    Ids that the database cannot store now stay in memory and count as stored.
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
        """Refuse a request that names an id which the user has not received.

        Raises not_found, or invalid_request with the code previous_response_not_found. The error does not
        reveal whether another user received the id.
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
        """Remember that a user received ids, immediately or by a deferred write.

        Raises the errors of the store, and `unavailable` if too many deferred writes are pending.
        """
        short = (each for each in dict.fromkeys(given) if len(each) <= MAX_ID_CHARACTERS)
        digests = [ids.digest(each) for each in islice(short, MAX_REFERENCES)]
        # The first recipient keeps an id, even if its write is still pending.
        digests = [each for each in digests if each not in self._pending]
        if not digests:
            return
        now = self._clock()

        async def store(_: bool) -> None:
            await self._store.add(digests, recipient.user_id, now)

        owner, request_id = recipient.user_id, recipient.request_id
        # Each write has its own key, because the writes are independent.
        write = await self._deferred.write(
            (NO_CHAT_ID, ids.new_id()), store, digests, owner=owner, is_answer=True, request_id=request_id
        )
        if write is not None:
            self._track(digests, write)

    async def prune(self) -> int:
        """Delete ids older than 30 days, and the oldest ids of users with too many; return the count."""
        return await self._store.prune(self._prune_clock() - KEPT_SECONDS, MAX_IDS_PER_USER)

    async def _owners(self, digests: Iterable[str]) -> dict[str, str]:
        """Return the recipients of ids, pending ones from memory, others from the database."""
        asked = set(digests)
        owners = {each: self._pending[each].owner for each in asked if each in self._pending}
        rest = [each for each in asked if each not in owners]
        return owners | dict(await self._store.owners(rest)) if rest else owners

    def _track(self, digests: Sequence[str], write: DeferredWrite) -> None:
        mine = [each for each in digests if self._pending.setdefault(each, write) is write]

        def forget() -> None:
            for each in mine:
                del self._pending[each]

        write.at_end = forget


class RememberedAnswer(PassedAnswer):
    """A `catalog.interfaces.ForwardedAnswer` whose ids are remembered before its last bytes pass.

    `note` gets the first id, that of the response, and the response's last status.

    The bytes are unchanged, and pass even if the ids cannot be remembered, which is logged. The ids of an
    unstreamed reply over 32 MiB are not remembered.
    """

    def __init__(
        self,
        answer: ForwardedAnswer,
        known: ResponseIds,
        recipient: ResponseRecipient,
        note: Callable[[str, str], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(answer)
        self._note = note
        self._known = known
        self._recipient = recipient
        self._given: dict[str, None] = {}
        self._status = ""

    def _body(self) -> AsyncGenerator[bytes, None]:
        is_stream = self.content_type.lower().startswith(EVENT_STREAM_TYPE)
        return self._events() if is_stream else examined(self._answer, self._collect_whole)

    async def _events(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._answer) as reads:
            async for read in reads:
                if b"event: response." in read or _DONE in read:
                    await self._collect_events(read)
                yield read

    async def _collect_events(self, read: bytes) -> None:
        """Collect the ids of the events of a read, which holds whole events."""
        is_over = False
        for frame in read.split(b"\n\n"):
            if frame.startswith(_ID_EVENTS):
                await self._collect(frame.partition(b"\ndata:")[2])
            is_over = is_over or frame.startswith((*FINAL_EVENTS, _DONE))
        if is_over:
            await self._remember()

    async def _collect_whole(self, raw: bytes) -> None:
        await self._collect(raw)
        await self._remember()

    async def _collect(self, raw: bytes) -> None:
        if len(self._given) >= MAX_REFERENCES:
            return
        found = as_mapping(await decode_reply(raw))
        self._status = as_text(as_mapping(found.get("response", found)).get("status")) or self._status
        self._given.update(dict.fromkeys(ids_in(found)))

    async def _remember(self) -> None:
        given, self._given = self._given, {}
        if given and self._note is not None:
            note, self._note = self._note, None
            await note(next(iter(given)), self._status)
        try:
            await self._known.remember(given, self._recipient)
        except GatewayError as error:
            extra = {"request_id": self._recipient.request_id}
            log.error("response ids not remembered: %s", error.full_message, extra=extra)


async def _references(body: Body) -> list[ResponseReference]:
    """Return the references of a request, at most one more than MAX_REFERENCES."""
    pace = LoopPacer()
    items = as_sequence(body.get("input"))
    found = list(islice(references_in({**body, "input": items[:SLICE_ITEMS]}), MAX_REFERENCES + 1))
    for start in range(SLICE_ITEMS, len(items), SLICE_ITEMS):
        if len(found) > MAX_REFERENCES:
            break
        found += references_in({"input": items[start : start + SLICE_ITEMS]})
        await pace.turn()
    return found
