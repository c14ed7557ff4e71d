"""Which of several sources of one model answers, and when the next one is asked."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class NamedSource(Protocol):
    """What can be asked."""

    @property
    def name(self) -> str:
        """The name, unique among the sources."""
        ...


Source = TypeVar("Source", bound=NamedSource)

SAFE_RETRY_KINDS: Final = frozenset({ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.RATE_LIMITED})
"""Failures after which asking somebody else is safe: the refused request has begun nothing."""

MISSING_ENDPOINT_CODE: Final = "endpoint_not_found"
"""The code of the failure of a source that does not have the endpoint, which another one may have."""

REST_SECONDS: Final = 10.0
"""How long a source that was not reached is asked last."""


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Source]):
    """A model as one source has it."""

    model: Model
    source: Source


class Failover:
    """Asks the candidates in their order, those that were not reached just now last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._resting: dict[str, float] = {}

    async def ask(
        self,
        candidates: Sequence[Candidate[Source]],
        question: Callable[[Model, Source], Awaitable[Result]],
    ) -> Result:
        """Return the first answer; raises the last failure.

        `question` returns once the first byte is there, so that what raises later is never asked again. A
        source that cannot be reached or refuses for now (429, 503) has begun nothing; every other failure is
        raised at once, as the request may have been worked on.
        """
        if len(candidates) == 1:
            only = candidates[0]
            return await question(only.model, only.source)
        *others, last = self._by_rest(candidates)
        for candidate in others:
            try:
                return await self._ask(candidate, question)
            except GatewayError as error:
                if error.kind not in SAFE_RETRY_KINDS and error.code != MISSING_ENDPOINT_CODE:
                    raise
                log.warning(
                    "another source is asked: %s", error.full_message, extra={"model": candidate.model.id}
                )
        return await self._ask(last, question)

    async def _ask(
        self, candidate: Candidate[Source], question: Callable[[Model, Source], Awaitable[Result]]
    ) -> Result:
        try:
            return await question(candidate.model, candidate.source)
        except GatewayError as error:
            if error.kind is ErrorKind.UPSTREAM_UNREACHABLE:
                self._resting[candidate.source.name] = self._clock() + REST_SECONDS
            raise

    def _by_rest(self, candidates: Sequence[Candidate[Source]]) -> Sequence[Candidate[Source]]:
        now = self._clock()
        self._resting = {name: until for name, until in self._resting.items() if until > now}
        return sorted(candidates, key=lambda candidate: candidate.source.name in self._resting)
