"""The tool loop: calls the model again with the results of its tool calls, within one answer."""

from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Final, Protocol, Self

from gatewayd.catalog.interfaces import ChunkStream
from gatewayd.completions.deltas import calls_of, message_of, text_of, usage_of
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.completions.tool_call_assembler import whole_calls
from gatewayd.pipeline.interfaces import ToolUse
from gatewayd.pipeline.records import ChatRequest, ToolStep
from gatewayd.pipeline.tools.turn import CALLS, ToolLoopState, ToolTurn, assistant_call_message

FIRST_TURN_FIELDS: Final = ("tool_choice",)
"""Fields that apply to the first round only: a model that is forced to call a tool would never answer."""


class SourceCaller(Protocol):
    """Sends the current state of a request to a source of its model."""

    def complete(self) -> Awaitable[Completion]:
        """Return a whole answer."""
        ...

    def stream(self) -> Awaitable[ChunkStream]:
        """Return the chunks of an answer; the first one has arrived."""
        ...


class ToolLoop:
    """The rounds of one answer; `steps` grows with each call that was run."""

    def __init__(self, request: ChatRequest, use: ToolUse) -> None:
        self._request = request
        self._use = use
        self.steps: list[ToolStep] = []
        self._rounds = 0
        if request.body.pop("n", None) not in (None, 1):
            request.warnings.append("cannot give n answers: a request with tools of the gateway has one")

    @property
    def note(self) -> str:
        """The last text of an answer that reached the maximum number of rounds."""
        return f"The answer ends here: {self._use.iterations} rounds of tool calls are allowed."

    async def run_calls(self, message: Body, calls: Sequence[Body]) -> bool:
        """Run the calls of a message and append message and results to the request; False past the limit."""
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


async def complete_tool_loop(loop: ToolLoop, caller: SourceCaller) -> Completion:
    """Return the answer after the last tool call: the texts of all rounds joined, their usage summed."""
    state, text, rounds = ToolLoopState(), "", 0
    while True:
        completion = await caller.complete()
        body = completion.body
        rounds += 1
        state.add_usage(usage_of(body))
        message = message_of(body)
        calls = whole_calls(calls_of(message))
        new = text_of(message)
        state.last_character = text[-1:]
        text += state.gap(new) + new
        if (
            body.get("error")
            or not calls
            or not await loop.run_calls(assistant_call_message(message, calls), calls)
        ):
            break
    return completion if rounds == 1 and not calls else _whole(body, text, state, loop.note if calls else "")


class ToolLoopStream:
    """The chunks of all rounds as one stream with one id, one finish reason and the summed usage.

    `aclose` stops running tools and closes the source.
    """

    def __init__(self, loop: ToolLoop, caller: SourceCaller, first: ChunkStream) -> None:
        self._loop = loop
        self._caller = caller
        self._source = first
        self._chunks = self._all()

    @classmethod
    async def start(cls, loop: ToolLoop, caller: SourceCaller) -> Self:
        """Wait for the first chunk, so that an earlier error still sets the HTTP status."""
        return cls(loop, caller, await caller.stream())

    def __aiter__(self) -> Self:
        """Return itself; the stream is read once."""
        return self

    async def __anext__(self) -> CompletionChunk:
        """Return the next chunk of any round."""
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Stop everything immediately."""
        await self._chunks.aclose()
        await self._source.aclose()

    async def _all(self) -> AsyncGenerator[CompletionChunk, None]:
        state = ToolLoopState()
        while True:
            part = ToolTurn(state)
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
            if not await self._loop.run_calls(part.message(), calls):
                yield CompletionChunk(events=_cut_off(tail, state, self._loop.note))
                return
            self._source = await self._caller.stream()


def _whole(body: Body, text: str, state: ToolLoopState, note: str) -> Completion:
    """Return the last answer with the texts of all rounds, and with a note if it was cut off."""
    message = message_of(body)
    choice: Body = {"index": 0, **as_mapping(next(iter(as_sequence(body.get("choices"))), None))}
    message["content"] = "\n\n".join(part for part in (text, note) if part)
    if note:
        for name in CALLS:
            message.pop(name, None)
        choice["finish_reason"] = "length"
    used = {"usage": state.used} if state.used else {}
    return Completion(body={**body, "choices": [{**choice, "message": message}], **used})


def _cut_off(tail: Sequence[Body], state: ToolLoopState, note: str) -> list[Body]:
    """Return the final events of a stream that was cut off: note, finish reason and usage."""
    head: Body = {"object": "chat.completion.chunk", **state.head}
    note_choice = {"index": 0, "delta": {"content": state.gap(note) + note}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "length"}
    usage = [{**event, "choices": []} for event in tail if event.get("usage")]
    return [{**head, "choices": [note_choice]}, {**head, "choices": [end]}, *usage]
