from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from gatewayd.pipeline.filters.forwarded_answers import PassedAnswer


class Answer:
    """A good answer of a provider."""

    status = 201
    content_type = "text/plain"

    def __init__(self) -> None:
        self.is_closed = False
        self._parts = iter([b"a", b"b"])

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for part in self._parts:
            return part
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True


class Louder(PassedAnswer):
    """The answer in capitals; `is_over` when its generator has ended."""

    is_over = False

    async def _body(self) -> AsyncGenerator[bytes, None]:
        try:
            async for part in self._answer:
                yield part.upper()
        finally:
            self.is_over = True


async def test_head_and_end_are_those_of_the_answer_and_the_body_is_what_is_made_of_it() -> None:
    answer = Answer()
    louder = Louder(answer)
    assert (louder.status, louder.content_type) == (201, "text/plain")
    assert [part async for part in louder] == [b"A", b"B"]
    with pytest.raises(StopAsyncIteration):
        await anext(louder)


async def test_to_close_it_is_to_close_both() -> None:
    answer = Answer()
    louder = Louder(answer)
    assert await anext(louder) == b"A"
    await louder.aclose()
    assert louder.is_over
    assert answer.is_closed
