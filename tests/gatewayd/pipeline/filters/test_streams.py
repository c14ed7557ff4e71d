"""Tests for gatewayd.pipeline.filters.streams."""

from collections.abc import Sequence
from typing import Any, Self

import orjson
import pytest

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Completion, CompletionChunk
from gatewayd.errors import GatewayError
from gatewayd.pipeline.filters import streams as filters_streams
from gatewayd.pipeline.filters.conversions import LegacyCompletions
from gatewayd.pipeline.filters.streams import ChangedAnswer
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.responses.items import ResponseItems
from tests.fakes.providers.upstream import sse


class Reads:
    """An answer of these reads."""

    status = 200

    def __init__(self, reads: Sequence[bytes], content_type: str = "text/event-stream") -> None:
        self.content_type = content_type
        self.closed = False
        self._reads = iter(reads)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return next(self._reads)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.closed = True


class Holding:
    """A filter that shouts, and holds the last letter back until the end."""

    def __init__(self) -> None:
        self.held = ""

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        return

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        for event in chunk.events:
            for choice in event["choices"]:
                said = self.held + choice["delta"].get("content", "").upper()
                is_over = bool(choice["finish_reason"])
                self.held = "" if is_over else said[-1:]
                choice["delta"] = {"content": said if is_over else said[:-1]}
        return chunk

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        return


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %s\n%s" % (kind.encode(), sse({"type": kind, **fields}))


async def read(answer: ChangedAnswer) -> list[dict[str, Any]]:
    frames = b"".join([part async for part in answer]).split(b"\n\n")
    found = (frame.partition(b"data: ")[2] for frame in frames if frame)
    return [orjson.loads(data) for data in found if data != b"[DONE]"]


AT = {"item_id": "m", "output_index": 0, "content_index": 0}


async def test_texts_that_are_repeated_at_the_end_are_what_the_filters_made_of_them() -> None:
    part = {"type": "output_text", "text": "hello"}
    item = {"type": "message", "content": [part]}
    reads = [
        event("response.created", sequence_number=0, response={"output": []})
        + event("response.output_text.delta", sequence_number=1, delta="hel", **AT),
        event("response.output_text.delta", sequence_number=2, delta="lo", **AT),
        event("response.output_text.done", sequence_number=3, text="hello", **AT),
        event("response.content_part.done", sequence_number=4, part=part, **AT),
        event("response.output_item.done", sequence_number=5, output_index=0, item=item),
        event("response.completed", sequence_number=6, response={"output": [item, {"type": "reasoning"}]}),
    ]
    events = await read(ChangedAnswer(Reads(reads), ResponseItems(), (Holding(),)))
    assert [one["delta"] for one in events if "delta" in one] == ["HE", "LL", "O"]
    assert [one["sequence_number"] for one in events] == list(range(8))
    ends = {one["type"]: one for one in events}
    assert ends["response.output_text.done"]["text"] == "HELLO"
    assert ends["response.content_part.done"]["part"]["text"] == "HELLO"
    assert ends["response.output_item.done"]["item"]["content"][0]["text"] == "HELLO"
    assert ends["response.completed"]["response"]["output"] == [
        {"type": "message", "content": [{"type": "output_text", "text": "HELLO"}]},
        {"type": "reasoning"},
    ]


PART = {"type": "output_text", "text": "hello", "logprobs": [{"token": "hello"}]}
MESSAGE = {"type": "message", "content": [PART]}


@pytest.mark.parametrize(
    "whole",
    [
        event("response.output_text.done", text="hello", logprobs=[{"token": "hello"}], **AT),
        event("response.content_part.done", part=PART, **AT),
        event("response.content_part.added", part=PART, **AT) + event("response.output_text.done", **AT),
        event("response.output_item.added", item=MESSAGE, **AT)
        + event("response.output_item.done", item=MESSAGE, **AT),
        event("response.output_item.done", item=MESSAGE, **AT),
        event("response.created", response={"output": [MESSAGE]}),
        event("response.completed", response={"output": [{"type": "reasoning"}, MESSAGE]}),
        event("response.incomplete", response={"output": [{"type": "message", "content": [PART, PART]}]}),
        event("response.output_text.done", text="hello", output_index=[], content_index={}),
    ],
)
async def test_texts_that_come_in_no_pieces_are_filtered(whole: bytes) -> None:
    over = event("response.completed", response={"output": [MESSAGE]})
    answer = ChangedAnswer(Reads([whole, over]), ResponseItems(), (Holding(),))
    said = b"".join([part async for part in answer])
    assert b"hello" not in said
    assert b'"HELLO"' in said


async def test_the_tokens_of_a_changed_piece_are_left_out() -> None:
    reads = [event("response.output_text.delta", delta="hi", logprobs=[{"token": "hi"}], **AT)]
    (piece,) = await read(ChangedAnswer(Reads(reads), ResponseItems(), (Holding(),)))
    assert (piece["delta"], piece["logprobs"]) == ("H", [])


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        ({"id": "r", "output": [MESSAGE]}, "HELLO"),
        ({"id": "c", "choices": [{"index": 0, "text": "hello", "finish_reason": None}]}, "HELLO"),
    ],
)
async def test_a_whole_answer_to_a_request_for_a_stream_is_filtered(
    whole: dict[str, Any], expected: str
) -> None:
    conversion = LegacyCompletions() if "choices" in whole else ResponseItems()
    raw = orjson.dumps(whole)
    answer = ChangedAnswer(Reads([raw], "application/json"), conversion, (Holding(),))
    said = b"".join([part async for part in answer])
    assert expected.encode() in said
    assert b"hello" not in said
    unasked = Reads([raw], "application/json")
    answer = ChangedAnswer(unasked, conversion, (Holding(),), is_stream_asked=False)
    assert b"".join([part async for part in answer]) == raw


async def test_continuations_are_filtered_to_their_last_piece() -> None:
    reads = [
        sse({"object": "text_completion", "choices": [{"index": 0, "text": "ab", "finish_reason": None}]}),
        sse({"object": "text_completion", "choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
        + sse(b"[DONE]"),
    ]
    events = await read(ChangedAnswer(Reads(reads), LegacyCompletions(), (Holding(),)))
    assert [one["choices"][0]["text"] for one in events] == ["A", "B"]


async def test_an_answer_repeats_the_callers_instructions_alone() -> None:
    own = {"instructions": "mine"}
    streamed = Reads([event("response.created", response={"id": "r", "instructions": "secret"})])
    (created,) = await read(ChangedAnswer(streamed, ResponseItems(), (), own))
    assert created["response"] == {"id": "r", "instructions": "mine"}
    whole = Reads([b'{"id": "r", "instruc', b'tions": "secret"}'], "application/json")
    answer = ChangedAnswer(whole, ResponseItems(), (), own)
    assert orjson.loads(b"".join([part async for part in answer])) == {"id": "r", "instructions": "mine"}
    assert whole.closed


@pytest.mark.parametrize("kind", ["a\ndata: {}\n\ndata: {", "a\rid: 1", "", "x" * 65, "\u2028"])
async def test_a_type_that_is_no_name_begins_no_line(kind: str) -> None:
    answer = ChangedAnswer(Reads([sse({"type": kind})]), ResponseItems(), (Holding(),))
    assert b"".join([part async for part in answer]) == sse({"type": kind})


@pytest.mark.parametrize("raw", [b"[]", b"{", b"x" * 11])
async def test_an_answer_that_cannot_be_changed_is_not_passed_on(
    raw: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters_streams, "MAX_WHOLE_BYTES", 10)
    answer = ChangedAnswer(Reads([raw], "application/json"), ResponseItems(), (), {"instructions": None})
    with pytest.raises(GatewayError, match="cannot pass an answer on"):
        await anext(answer)


async def test_leaving_closes_the_answer() -> None:
    reads = Reads([sse({"choices": []})])
    await ChangedAnswer(reads, ResponseItems(), (), None).aclose()
    assert reads.closed
