"""Remembers the reasoning of answers, and gives it back to its maker with the next requests."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gatewayd.catalog.records import Model
from gatewayd.completions.given_call_ids import give_ids, has_ids, with_given_ids
from gatewayd.completions.native_thoughts import NativeHistory, NativeRequest, NativeWatch
from gatewayd.completions.reasoning_history import ReasoningHistory, is_answer
from gatewayd.completions.reasoning_marks import origin_of
from gatewayd.completions.reasoning_memory import ReasoningMemory
from gatewayd.completions.reasoning_watch import ReasoningWatch, is_plain_answer
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.time_slices import LoopPacer

MAX_PLAIN_MESSAGES: Final = 64
"""Maximum number of messages that are looked through at once."""

SLICE_MESSAGES: Final = 1024
"""Number of messages between two looks at the clock."""

NO_IDS: Final[Mapping[str, str]] = MappingProxyType({})


def has_answers(body: Body) -> bool:
    """Return True if a request may have answers of a model, whose reasoning `restore` returns or removes.

    Of a long request the messages are not looked through.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    if len(messages) > MAX_PLAIN_MESSAGES:
        return True
    for message in messages:  # noqa: SIM110 - a generator would cost more than the loop
        if isinstance(message, dict) and message.get("role") == "assistant":
            return True
    return False


def reasoning_origin(model: Model) -> str:
    """Return the word for who makes the reasoning of a model."""
    return origin_of(model.maker, model.source)


class AnswerWatcher:
    """The `catalog.interfaces.AnswerWatch` of one request of a user, for one answer after the other.

    It gives calls the ids of the caller, and remembers reasoning.
    """

    __slots__ = ("_is_native", "_memory", "_origin", "_reader", "_user_id", "call_ids")

    def __init__(self, memory: ReasoningMemory, user_id: str) -> None:
        self._memory = memory
        self._user_id = user_id
        self._origin = ""
        self._is_native = False
        self._reader: ReasoningWatch | NativeWatch | None = None
        self.call_ids: Mapping[str, str] = NO_IDS

    def begin(self, origin: str, *, is_native: bool = False) -> None:
        """Expect an answer of this origin; `is_native` tells that it is one of the messages protocol."""
        self._origin, self._is_native = origin, is_native
        self._reader, self.call_ids = None, NO_IDS

    def feed(self, chunk: CompletionChunk) -> CompletionChunk:
        """Return the chunk, or one with the ids of the caller; a plain one costs next to nothing."""
        if chunk.is_plain and self._reader is None:
            return chunk
        if self.call_ids:
            chunk = with_given_ids(chunk, self.call_ids)
        self._reader = self._reader or self._new_reader()
        self._reader.feed(chunk)
        return chunk

    def whole(self, completion: Completion) -> Completion:
        """Return the whole answer, or one with the ids of the caller."""
        if is_plain_answer(completion.decoded):
            return completion
        if self.call_ids and has_ids(completion.decoded, self.call_ids):
            give_ids(completion.body, self.call_ids)
        self._new_reader().whole(completion.decoded)
        return completion

    def _new_reader(self) -> ReasoningWatch | NativeWatch:
        reader = NativeWatch if self._is_native else ReasoningWatch
        return reader(self._memory, self._user_id, self._origin)


class ReasoningKeeper:
    """The memory of reasoning, for the requests of all users."""

    def __init__(self, memory: ReasoningMemory) -> None:
        self.memory = memory

    def watch(self, user_id: str) -> AnswerWatcher:
        """Return a watch for the answers to a request of a user."""
        return AnswerWatcher(self.memory, user_id)

    async def restore_native(self, native: Body, user_id: str, model: Model) -> NativeRequest:
        """Return a messages request without thinking that its model's maker has not signed."""
        messages = native.get("messages")
        if not isinstance(messages, list):
            return NativeRequest(native)
        history = NativeHistory(self.memory, user_id, reasoning_origin(model))
        pace = LoopPacer()
        for message in messages:
            history.add(message)
            await pace.turn()
        return history.finish(native)

    def restore_native_at_once(self, native: Body, user_id: str, model: Model) -> NativeRequest | None:
        """Return what `restore_native` returns for a request with a list of messages; None for a long one."""
        messages = native["messages"]
        if len(messages) > MAX_PLAIN_MESSAGES:
            return None
        history = NativeHistory(self.memory, user_id, reasoning_origin(model))
        for message in messages:
            history.add(message)
        return history.finish(native)

    def may_restore(self, body: Body, user_id: str, model: Model) -> bool:
        """Return False if `restore` returns the body itself.

        A long request is not looked through.
        """
        if not has_answers(body):
            return False
        messages = body["messages"]
        history = ReasoningHistory(self.memory, user_id, reasoning_origin(model))
        return len(messages) > MAX_PLAIN_MESSAGES or any(
            is_answer(message) and history.concerns(message) for message in messages
        )

    async def restore(self, body: Body, user_id: str, model: Model, *, is_converted: bool) -> Body:
        """Return a request with the reasoning that the model's maker made, and none of other makers.

        Returns the body itself if nothing changes; it is never modified.
        """
        if not has_answers(body):
            return body
        messages = body["messages"]
        origin = reasoning_origin(model)
        history = ReasoningHistory(self.memory, user_id, origin, is_converted=is_converted)
        pace, restored = LoopPacer(), None
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if is_answer(message) and history.concerns(message):
                changed = history.restore(message)
                if changed is not message:
                    restored = list(messages) if restored is None else restored
                    restored[index] = changed
                await pace.turn()
            elif index % SLICE_MESSAGES == 0:
                await pace.turn()
        return body if restored is None else {**body, "messages": restored}
