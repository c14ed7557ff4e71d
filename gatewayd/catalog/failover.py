"""Failover between the sources of one model: the order of attempts, and the errors that allow another."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.records import MeteredCall

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class NamedSource(Protocol):
    """A source with a name."""

    @property
    def name(self) -> str:
        """The name, unique among the sources."""
        ...


Source = TypeVar("Source", bound=NamedSource)

SAFE_RETRY_KINDS: Final = frozenset({ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.RATE_LIMITED})
"""Errors after which another source may be tried: the refused request has had no effect."""

MISSING_ENDPOINT_CODE: Final = "endpoint_not_found"
"""Error code of a source that lacks the endpoint; another source may have it."""

REST_SECONDS: Final = 10.0
"""How long a source that could not be reached is tried last."""


UNSUPPORTED_ENDPOINT_CODE: Final = "endpoint_not_supported"
"""Error code of a source without an endpoint of images, audio, moderations or reranking."""

MISSING_CODES: Final = frozenset({MISSING_ENDPOINT_CODE, UNSUPPORTED_ENDPOINT_CODE})


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Source]):
    """A model as one source offers it."""

    model: Model
    source: Source


class Failover:
    """Tries candidates in order, but those that were recently unreachable last.

    `move` is awaited before a call is sent to another source than the one that it was admitted for.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        move: Callable[[MeteredCall], Awaitable[None]] | None = None,
    ) -> None:
        self._clock = clock
        self._move = move
        self._unreachable: dict[str, float] = {}

    def ask(
        self,
        candidates: Sequence[Candidate[Source]],
        question: Callable[[Model, Source], Awaitable[Result]],
        call: MeteredCall | None = None,
    ) -> Awaitable[Result]:
        """Return the result of the first successful attempt, or raise the error of the last attempt.

        `question` returns at the first byte of the answer, so that later errors are never retried. A source
        that is unreachable or refuses temporarily (429, 503) has done nothing, and the next one is tried.
        Every other error is raised at once, because the source may have processed the request. `call` is told
        which source is asked.
        """
        if len(candidates) == 1:
            only = candidates[0]
            if call is not None:
                note_attempt(call, only.model, only.source.name)
            return question(only.model, only.source)
        return self._ask_each(candidates, question, call)

    async def _ask_each(
        self,
        candidates: Sequence[Candidate[Source]],
        question: Callable[[Model, Source], Awaitable[Result]],
        call: MeteredCall | None,
    ) -> Result:
        *others, last = self._reachable_first(candidates)
        for candidate in others:
            try:
                return await self._ask(candidate, question, call)
            except GatewayError as error:
                if error.kind not in SAFE_RETRY_KINDS and error.code not in MISSING_CODES:
                    raise
                log.warning(
                    "trying another source: %s", error.full_message, extra={"model": candidate.model.id}
                )
        return await self._ask(last, question, call)

    async def _ask(
        self,
        candidate: Candidate[Source],
        question: Callable[[Model, Source], Awaitable[Result]],
        call: MeteredCall | None,
    ) -> Result:
        if call is not None:
            former = call.source
            note_attempt(call, candidate.model, candidate.source.name)
            if self._move is not None and call.source != former:
                await self._move(call)
        try:
            return await question(candidate.model, candidate.source)
        except GatewayError as error:
            if error.kind is ErrorKind.UPSTREAM_UNREACHABLE:
                self._unreachable[candidate.source.name] = self._clock() + REST_SECONDS
            raise

    def _reachable_first(self, candidates: Sequence[Candidate[Source]]) -> Sequence[Candidate[Source]]:
        now = self._clock()
        self._unreachable = {name: until for name, until in self._unreachable.items() if until > now}
        return sorted(candidates, key=lambda candidate: candidate.source.name in self._unreachable)


def note_attempt(call: MeteredCall, model: Model, source: str) -> None:
    """Tell a call which source is asked."""
    call.attempts += 1
    if call.source != source or call.upstream_model != model.upstream_id:
        foresee(call, model, source)


def foresee(call: MeteredCall, model: Model, source: str) -> None:
    """Tell a call which source will be asked for which of its models, so that its price is known."""
    call.source, call.upstream_model, call.family = source, model.upstream_id, model.family
    call.details, call.maker = model.detail, model.maker
