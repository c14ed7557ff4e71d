"""The meter: each call is begun, admitted, watched and finished once, however it ends."""

import asyncio
from dataclasses import dataclass, field

import pytest

from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.answers import MeteredChunks, MeteredReply
from gatewayd.metering.begun_call import BEGUN, BegunCall
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall, TokenUsage

LIMITED = GatewayError(ErrorKind.RATE_LIMITED, "cannot answer: too many requests")
BODY = {"model": "m", "messages": [{"role": "user", "content": "x" * 40}], "max_tokens": 7}


@dataclass
class Caller:
    user_id: str = "u"
    group_ids: tuple[str, ...] = ("g",)
    key_id: str | None = None


@dataclass
class Observer:
    told: list[str] = field(default_factory=list)

    def begun(self, call: MeteredCall) -> None:
        self.told.append("begun")

    def first(self, call: MeteredCall) -> None:
        self.told.append("first")

    def finished(self, call: MeteredCall) -> None:
        assert call.outcome is not None
        self.told.append(call.outcome)


@dataclass
class Admission:
    refuses: bool = False
    estimate: TokenUsage | None = None
    settlements: list[TokenUsage | None] = field(default_factory=list)

    def concerns(self, call: MeteredCall) -> bool:
        return call.model == "m"

    async def admit(self, call: MeteredCall, estimate: TokenUsage) -> None:
        self.estimate = estimate
        if self.refuses:
            raise LIMITED

    def settled(self, call: MeteredCall) -> None:
        self.settlements.append(call.usage)


class Chunks:
    def __init__(self, *parts: CompletionChunk | BaseException) -> None:
        self.parts = list(parts)

    async def __anext__(self) -> CompletionChunk:
        if not self.parts:
            raise StopAsyncIteration
        part = self.parts.pop(0)
        if isinstance(part, BaseException):
            raise part
        return part

    async def aclose(self) -> None:
        self.parts.clear()


def begun(meter: CallMeter, model: str = "m") -> MeteredCall:
    call = meter.begin(Caller(), model, "chat", BODY, request_id="r", is_stream=True)
    call.attempts = 1
    return call


def text_chunk(text: str) -> CompletionChunk:
    return CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": text}}]}])


async def answer() -> str:
    return "answer"


async def fail(error: BaseException) -> str:
    raise error


async def test_an_admitted_call_is_settled_once_with_its_usage() -> None:
    watch, first, second = Observer(), Admission(), Admission()
    meter = CallMeter([watch], [first, second], lambda call, usage: usage.total * 1000)
    call = begun(meter)
    assert meter.calls == {call}
    assert await meter.run(call, answer) == "answer"
    assert first.estimate == TokenUsage(prompt=11, completion=7)
    meter.finish(call, CallOutcome.ANSWERED, TokenUsage(3, completion=4))
    meter.finish(call, CallOutcome.FAILED)
    assert not meter.calls
    assert watch.told == ["begun", "answered"]
    assert first.settlements == second.settlements == [TokenUsage(3, completion=4)]
    assert (call.cost, call.is_estimated, call.body) == (7000, False, None)


async def test_a_refused_admission_sends_nothing_and_settles_those_before_it() -> None:
    watch, first, second = Observer(), Admission(), Admission(refuses=True)
    meter = CallMeter([watch], [first, second])
    call = begun(meter)
    call.attempts = 0
    with pytest.raises(GatewayError):
        await meter.run(call, fail, AssertionError("asked"))
    assert watch.told == ["begun", "refused"]
    assert first.settlements == [TokenUsage()]
    assert second.settlements == []


async def test_a_call_that_no_admission_concerns_is_not_settled() -> None:
    admission = Admission(refuses=True)
    meter = CallMeter(admissions=[admission])
    call = begun(meter, "other")
    await meter.run(call, answer)
    meter.finish(call, CallOutcome.ANSWERED)
    assert admission.settlements == []


async def test_a_limit_that_is_set_while_the_fast_path_asks_concerns_the_next_call() -> None:
    meter, admission = CallMeter(), Admission(refuses=True)
    call = begun(meter)
    token = BEGUN.set(BegunCall(call, ("", {}, b""), None, lambda *_: None))
    try:
        meter.admissions = [admission]
        assert begun(meter) is call
        assert await meter.run(call, answer) == "answer"
        with pytest.raises(GatewayError):
            await meter.run(begun(meter), answer)
    finally:
        BEGUN.reset(token)


@pytest.mark.parametrize(
    ("error", "outcome", "prompt"),
    [
        (LIMITED, CallOutcome.REFUSED, 0),
        (GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot"), CallOutcome.FAILED, 0),
        (asyncio.CancelledError(), CallOutcome.CANCELLED, 11),
        (ValueError("a fault"), CallOutcome.FAILED, 0),
    ],
)
async def test_a_call_without_an_answer_ends_by_its_error(
    error: BaseException, outcome: CallOutcome, prompt: int
) -> None:
    meter = CallMeter()
    call = begun(meter)
    with pytest.raises(type(error)):
        await meter.run(call, fail, error)
    assert (call.outcome, call.usage) == (outcome, TokenUsage(prompt))
    assert not meter.calls


async def test_a_stream_that_breaks_off_counts_by_what_came() -> None:
    watch = Observer()
    meter = CallMeter([watch])
    call = begun(meter)
    broken = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot get the rest")
    chunks = MeteredChunks(Chunks(text_chunk("abcd"), text_chunk("efghi"), broken), call, meter)
    with pytest.raises(GatewayError):
        _ = [chunk async for chunk in chunks]
    assert watch.told == ["begun", "first", "cut"]
    assert (call.usage, call.is_estimated) == (TokenUsage(11, completion=3), True)


async def test_an_error_before_the_first_chunk_leaves_the_call_to_the_next_source() -> None:
    meter = CallMeter()
    call = begun(meter)
    with pytest.raises(GatewayError):
        await anext(MeteredChunks(Chunks(LIMITED), call, meter))
    assert call in meter.calls


async def test_a_stream_that_its_reader_leaves_is_cancelled_once() -> None:
    meter = CallMeter()
    call = begun(meter)
    usage = {"prompt_tokens": 5, "completion_tokens": 6}
    chunks = MeteredChunks(Chunks(CompletionChunk(raw=b"", usage=usage), text_chunk("a")), call, meter)
    await anext(chunks)
    await chunks.aclose()
    await chunks.aclose()
    assert (call.outcome, call.usage) == (CallOutcome.CANCELLED, TokenUsage(5, completion=6))


class Reply:
    status = 200
    content_type = "application/json"

    def __init__(self, *reads: bytes) -> None:
        self.reads = list(reads)

    async def __anext__(self) -> bytes:
        if not self.reads:
            raise StopAsyncIteration
        return self.reads.pop(0)

    async def aclose(self) -> None:
        self.reads.clear()


async def test_a_reply_ends_its_call_with_its_usage() -> None:
    meter = CallMeter()
    call = begun(meter)
    reply = MeteredReply(Reply(b'{"usage":{"prompt_tokens":2,', b'"total_tokens":2}}'), call, meter)
    assert b"".join([read async for read in reply]).startswith(b'{"usage"')
    await reply.aclose()
    assert (call.outcome, call.usage, call.is_estimated) == (CallOutcome.ANSWERED, TokenUsage(2), False)


async def test_zeros_are_no_usage() -> None:
    meter = CallMeter()
    call = begun(meter)
    call.attempts, call.characters = 1, 8
    meter.finish(call, CallOutcome.ANSWERED, TokenUsage())
    assert (call.usage, call.is_estimated) == (TokenUsage(prompt=11, completion=2), True)


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices":[{"text":"abcdefgh"}]}',
        b'{"output":[{"content":[{"text":"abcdefgh"}]}]}',
        b'{"response":"abcdefgh"}',
        b'{"choices":[{"message":{"role":"assistant","content":"abcdefgh"}}],"usage":{"total_tokens":0}}',
    ],
)
async def test_the_text_of_a_whole_reply_without_usage_is_estimated(body: bytes) -> None:
    meter = CallMeter()
    call = begun(meter)
    reply = MeteredReply(Reply(body), call, meter)
    assert [read async for read in reply] == [body]
    assert (call.usage, call.is_estimated) == (TokenUsage(prompt=11, completion=2), True)
