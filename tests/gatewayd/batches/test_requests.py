"""Tests for gatewayd.batches.requests: answers of providers."""

from collections.abc import Iterator
from typing import Self

import pytest

from gatewayd.batches.requests import read_answer
from gatewayd.errors import ErrorKind, GatewayError


class Answer:
    """A `ForwardedAnswer` of some pieces."""

    status = 200
    content_type = "application/json"

    def __init__(self, *pieces: bytes) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self.is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    "data", [b"{", b"[" * 300 + b"]" * 300, b"[" + b"[]," * 600_000 + b"1]"], ids=["half", "deep", "many"]
)
async def test_an_answer_has_the_limits_of_any_other(data: bytes) -> None:
    """One of millions of lists was decoded at once, on the event loop."""
    answer = Answer(data)
    with pytest.raises(GatewayError, match="cannot use the answer of the provider") as refused:
        await read_answer(answer)
    assert refused.value.kind is ErrorKind.UPSTREAM_FAILED
    assert answer.is_closed


async def test_an_answer_is_read_whole() -> None:
    assert await read_answer(Answer(b'{"a": 1', b"}")) == {"a": 1}
