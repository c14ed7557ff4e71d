"""The tool loop: a model that calls tools is asked again with their results, all in one answer."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final, Protocol, Self

from gatewayd.catalog.interfaces import ChunkStream
from gatewayd.completions.deltas import calls_of, message_of, text_of, usage_of
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.completions.tool_calls import whole_calls
from gatewayd.pipeline.interfaces import ToolUse
from gatewayd.pipeline.records import ChatRequest, ToolStep
from gatewayd.pipeline.tools.turn import CALLS, ToolLoopState, ToolTurn, assistant_call_message

FIRST_TURN_FIELDS: Final = ("tool_choice",)
"""Fields that hold for the first round alone: a model that is made to call would never answer."""


class SourceCaller(Protocol):
    """Puts the request, as it is at the moment, to a source of its model."""

    async def complete(self) -> Completion:
        """Return a whole answer."""
        ...

    async def stream(self) -> ChunkStream:
        """Return the chunks of an answer, the first of which has arrived."""
        ...


class ToolLoop:
    """The rounds of one answer; `steps` grow with the calls that were run."""

    def __init__(self, request: ChatRequest, use: ToolUse) -> None:
        self._request = request
        self._use = use
        self.steps: list[ToolStep] = []
        self._rounds = 0
        if request.body.pop("n", None) not in (None, 1):
            request.warnings.append("cannot give n answers: where the gateway runs tools there is one")

    @property
    def note(self) -> str:
        """What an answer says that was ended after too many rounds."""
        return f"The answer ends here: {self._use.iterations} rounds of tool calls are allowed."

    async def go_on(self, message: Body, calls: Sequence[Body]) -> bool:
        """Run the calls of a message and extend the request by it and the results; False past the limit."""
        runner = self._use.runner
        if runner is None or self._rounds >= self._use.iterations:
            return False
        self._rounds += 1
        body = self._request.body
        steps = await runner.run(calls, body["messages"])
        self.steps.extend(steps)
        results = [{"role": "tool", "tool_call_id": step.id, "content": step.result} for step in steps]
        body["messages"] = [*body["messages"], message, *results]
        for name in FIRST_TURN_FIELDS:
            body.pop(name, None)
        return True


async def complete_tool_loop(loop: ToolLoop, asking: SourceCaller) -> Completion:
    """Return the answer once the model calls no tool any more: its texts joined, its usage summed."""
    joined, words, rounds = ToolLoopState(), "", 0
    while True:
        completion = await asking.complete()
        body = completion.body
        rounds += 1
        joined.add_usage(usage_of(body))
        message = message_of(body)
        calls = whole_calls(calls_of(message))
        new = text_of(message)
        joined.last_character = words[-1:]
        words += joined.gap(new) + new
        if (
            body.get("error")
            or not calls
            or not await loop.go_on(assistant_call_message(message, calls), calls)
        ):
            break
    return (
        completion if rounds == 1 and not calls else _whole(body, words, joined, loop.note if calls else "")
    )


class ToolLoopStream:
    """The chunks of all rounds as one stream: one id, one finish reason, the usage of all.

    `aclose` stops the tools that run and closes the source.
    """

    def __init__(self, loop: ToolLoop, asking: SourceCaller, first: ChunkStream) -> None:
        self._loop = loop
        self._asking = asking
        self._source = first
        self._chunks = self._all()

    @classmethod
    async def start(cls, loop: ToolLoop, asking: SourceCaller) -> Self:
        """Wait for the first chunk, so that a failure before it is still a status."""
        return cls(loop, asking, await asking.stream())

    def __aiter__(self) -> Self:
        """Return itself: a stream is read once."""
        return self

    async def __anext__(self) -> CompletionChunk:
        """Return the next chunk of any round."""
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Stop everything at once."""
        await self._chunks.aclose()
        await self._source.aclose()

    async def _all(self) -> AsyncGenerator[CompletionChunk, None]:
        joined = ToolLoopState()
        while True:
            part = ToolTurn(joined)
            async for chunk in self._source:
                events = part.feed(chunk.events)
                if events:
                    yield CompletionChunk(events=events)
            await self._source.aclose()
            tail, calls = part.close(), part.calls()
            if part.is_broken or not calls:
                if tail:
                    yield CompletionChunk(events=tail)
                return
            if not await self._loop.go_on(part.message(), calls):
                yield CompletionChunk(events=_cut(tail, joined, self._loop.note))
                return
            self._source = await self._asking.stream()


def _whole(body: Body, words: str, joined: ToolLoopState, note: str) -> Completion:
    """Return the last answer with the texts of all, and the note when it was cut off."""
    message = message_of(body)
    choice: Body = {"index": 0, **as_mapping(next(iter(as_sequence(body.get("choices"))), None))}
    message["content"] = "\n\n".join(part for part in (words, note) if part)
    if note:
        for name in CALLS:
            message.pop(name, None)
        choice["finish_reason"] = "length"
    used = {"usage": joined.used} if joined.used else {}
    return Completion(body={**body, "choices": [{**choice, "message": message}], **used})


def _cut(tail: Sequence[Body], joined: ToolLoopState, note: str) -> list[Body]:
    """Return what ends a stream whose model still calls tools: the note, the reason, the usage."""
    head: Body = {"object": "chat.completion.chunk", **joined.head}
    said_last = {"index": 0, "delta": {"content": joined.gap(note) + note}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "length"}
    usage = [{**event, "choices": []} for event in tail if event.get("usage")]
    return [{**head, "choices": [said_last]}, {**head, "choices": [end]}, *usage]
