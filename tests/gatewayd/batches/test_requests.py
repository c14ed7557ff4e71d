"""Tests for gatewayd.batches.requests: answers of providers."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.batches.records import Batch
from gatewayd.batches.requests import BatchRequests, read_answer
from gatewayd.completions.records import Completion
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from tests.fakes.providers.models import make_actor


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


async def test_a_request_belongs_to_no_stored_chat() -> None:
    """Events of plugins and queues would go to the message of another user."""
    asked: list[ChatRequest] = []

    class Answering:
        async def run(self, request: ChatRequest, actor: Actor) -> ChatAnswer:
            asked.append(request)
            return ChatAnswer(completion=Completion(body={"choices": []}))

    unused = cast(Any, None)
    requests = BatchRequests(cast(Pipeline, Answering()), unused, unused, unused)
    batch = cast(Batch, SimpleNamespace(endpoint="/v1/chat/completions"))
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tool_ids": ["t"]}
    named = {"chat_id": "c", "id": "a", "session_id": "s"}
    assert await requests.run(batch, body | named, make_actor("stranger"), "r") == {"choices": []}
    assert asked[0].options == {"tool_ids": ["t"]}
