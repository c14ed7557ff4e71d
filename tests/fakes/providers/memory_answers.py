"""The answers of one batch in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from gatewayd.errors import GatewayError


async def _yield() -> None:
    await asyncio.sleep(0)


@dataclass
class MemoryAnswers:
    """Implements `batches.interfaces.AnswerStore`; the next writes raise `failures`."""

    failures: list[GatewayError] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    before_add: Callable[[], Awaitable[None]] = field(default=_yield)

    async def add(self, batch_id: str, records: bytes) -> None:
        await self.before_add()
        if self.failures:
            raise self.failures.pop()
        self.pieces.append(records)

    async def read(self, batch_id: str) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    async def batch_ids(self) -> Sequence[str]:
        return ["b"] if self.pieces else []

    async def take_over(self, batch_id: str, pieces: Iterator[bytes]) -> bool:
        found = list(pieces)
        if self.failures:
            raise self.failures.pop()
        if self.pieces:
            return False
        self.pieces = found
        return True

    async def remove(self, batch_id: str) -> None:
        self.pieces = []

    async def remove_ended(self) -> None:
        if self.failures:
            raise self.failures.pop()
