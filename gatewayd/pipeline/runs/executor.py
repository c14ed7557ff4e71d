"""Answers one message of a chat: asks, tells the user's listeners what comes, and keeps it."""

import asyncio
import logging
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.chats.interfaces import MessageStore
from gatewayd.chats.records import MAX_CONTENT_CHARACTERS
from gatewayd.completions.limits import AnswerSizeError
from gatewayd.completions.reasoning_tags import parse_reasoning_tags
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.interfaces import MessageEffects
from gatewayd.pipeline.interfaces import RunLimiter
from gatewayd.pipeline.records import ChatAnswer
from gatewayd.pipeline.runs.debouncer import Debouncer
from gatewayd.pipeline.runs.interfaces import (
    ChatPipeline,
    EventEmitter,
    MessageWriter,
    RunContext,
    RunOptions,
)
from gatewayd.pipeline.runs.message_builder import MessageBuilder
from gatewayd.pipeline.runs.post_processor import PostProcessing
from gatewayd.pipeline.runs.subscriber import RunSubscriber
from gatewayd.tasks import TaskRegistry
from gatewayd.write_attempts import DeferredWrite, Key, Work

log = logging.getLogger(__name__)

EMIT_SECONDS: Final = 0.05
"""Between two tellings of a short content; a long one, which is told whole, is told less often."""

EMIT_SECONDS_PER_CHARACTER: Final = 1 / 400_000
EMIT_SECONDS_PER_TASK: Final = 0.001
"""So that the tellings of all answers together stay below a thousand a second."""

SAVE_SECONDS: Final = 1.0
SAVE_SECONDS_PER_CHARACTER: Final = 1 / 200_000
"""A long content, which is written whole, is written less often."""

GATEWAY_STOPPED: Final = "the gateway was stopped while this was answered"
ANSWER_STOPPED: Final = "cannot go on: the answer was stopped"
ANSWER_FAILED: Final = "cannot go on: the gateway itself failed, its log says more"


@dataclass(frozen=True, slots=True)
class RunServices:
    """What every answer is made with."""

    pipeline: ChatPipeline
    answers: MessageWriter
    messages: MessageStore
    effects: MessageEffects
    events: EventEmitter
    tasks: TaskRegistry
    deferred: DeferredWrites
    room: RunLimiter


class RunExecutor:
    """One answer from the question to the last thing that is made of it.

    Events come in the order of peers of this API family. Whatever ends it, the message is done afterwards
    and has what was produced. While the database is away the listeners are told all the same, and the run
    goes on with what follows the answer once that is stored.
    """

    def __init__(
        self,
        desk: RunServices,
        running: RunContext,
        options: RunOptions,
        after: PostProcessing,
        follower: RunSubscriber | None,
    ) -> None:
        self._desk = desk
        self._running = running
        self._options = options
        self._after = after
        self._follower = follower
        self._assembly = MessageBuilder(parse_reasoning_tags(running.request.options.get("params")))
        self._asked = _conversation(running.request.body)
        self._told_sources = 0
        self._told_content = ""
        self._is_read = False
        self._is_kept = False
        self._deferred: DeferredWrite | None = None
        self._failure: GatewayError | None = None

    @property
    def _key(self) -> Key:
        return self._running.target.chat_id, self._running.target.message_id

    async def run(self) -> None:
        """Do all of it; a cancellation stops the answer, and what there is is kept."""
        try:
            await self._say("chat:active", {"active": True})
            await self._answer()
            if self._deferred is not None and not await self._deferred.wait():
                # It is logged as lost.
                return
            await self._after.run(self._running, self._asked, self._assembly, self._options)
        except GatewayError as error:
            await self._fail(error)
        except asyncio.CancelledError:
            await self._stop()
            raise
        finally:
            await self._end()

    async def _answer(self) -> None:
        running = self._running
        answer = await self._desk.pipeline.run(running.request, running.actor)
        completion = answer.completion
        if completion is None:
            await self._tell_sources(answer.sources)
            await self._read(answer)
        else:
            # The sources that the pipeline found are in there, too.
            self._assembly.add_steps(answer.steps)
            self._assembly.take(Completion(raw=completion.raw).body)
            self._check_length()
        await self._tell_more_sources()
        if self._assembly.error is not None:
            raise GatewayError(ErrorKind.UPSTREAM_FAILED, self._assembly.error)
        await self._tell_content()
        await self._keep(None)
        if self._follower is not None:
            if completion is not None:
                self._follower.begin(answer)
            self._follower.end()
        await self._tell_done()

    async def _read(self, answer: ChatAnswer) -> None:
        """Take the chunks of a streamed answer as they come."""
        if answer.chunks is None:
            raise RuntimeError("an answer has a completion or chunks")
        if self._follower is not None:
            self._follower.begin(answer)
        async with AsyncExitStack() as stack:
            chunks = await stack.enter_async_context(aclosing(answer.chunks))
            tasks = self._desk.tasks
            fields = self._running.target.log_fields
            telling = Debouncer(tasks, self._tell_content, self._tell_pause, fields)
            paces = [await stack.enter_async_context(telling)]
            if self._options.is_saved_often and self._running.chat is not None:
                saving = Debouncer(tasks, self._save, self._save_pause, fields)
                paces.append(await stack.enter_async_context(saving))
            async for chunk in chunks:
                self._assembly.add_steps(answer.steps)
                self._assembly.feed(self._events(chunk))
                await self._tell_more_sources()
                for pace in paces:
                    pace.touch()
        self._assembly.add_steps(answer.steps)
        self._assembly.finish()
        self._check_length()
        self._is_read = True

    def _check_length(self) -> None:
        """Raise AnswerSizeError for an answer that no message holds, with what tools gave and its markup."""
        if len(self._assembly.content()) > MAX_CONTENT_CHARACTERS:
            raise AnswerSizeError(f"with what tools gave it is over {MAX_CONTENT_CHARACTERS} characters")

    def _content(self) -> str:
        """Return what there is of the answer, as far as a message holds it."""
        return self._assembly.content()[:MAX_CONTENT_CHARACTERS]

    def _events(self, chunk: CompletionChunk) -> list[Body]:
        """Return what a chunk holds; who follows gets its bytes."""
        if self._follower is None:
            return chunk.events
        raw = chunk.raw
        self._follower.put(CompletionChunk(raw=raw))
        return CompletionChunk(raw=raw).events

    async def _tell_content(self) -> None:
        content = self._content()
        if content and content != self._told_content:
            self._told_content = content
            await self._say("chat:completion", {"content": content})

    def _tell_pause(self) -> float:
        tasks = len(self._desk.tasks.started())
        by_length = len(self._told_content) * EMIT_SECONDS_PER_CHARACTER
        return max(EMIT_SECONDS, by_length, tasks * EMIT_SECONDS_PER_TASK)

    async def _save(self) -> None:
        content = self._content()
        if content and not self._desk.deferred.is_pending(self._key):
            target = self._running.target
            await self._desk.answers.save(target.chat_id, target.message_id, content)

    def _save_pause(self) -> float:
        return max(SAVE_SECONDS, len(self._told_content) * SAVE_SECONDS_PER_CHARACTER)

    async def _tell_more_sources(self) -> None:
        fresh = self._assembly.sources[self._told_sources :]
        self._told_sources += len(fresh)
        await self._tell_sources(fresh)

    async def _tell_sources(self, sources: list[dict[str, Any]]) -> None:
        if not sources:
            return
        target = self._running.target
        if self._running.chat is not None:
            effects = self._desk.effects

            async def write(_: bool) -> None:
                await effects.append_items(target.chat_id, target.message_id, "sources", sources)

            await self._defer(write, sources)
        await self._say("chat:completion", {"sources": sources})

    async def _tell_done(self) -> None:
        assembly, chat = self._assembly, self._running.chat
        content = self._content()
        if not content and chat is not None:
            # Events have written it.
            content = await self._stored_content()
        done: dict[str, Any] = {"done": True, "content": content, "output": assembly.output()}
        if chat is not None:
            done["title"] = chat.title
        if assembly.usage:
            await self._say("chat:completion", {"usage": assembly.usage})
            done["usage"] = assembly.usage
        await self._say("chat:completion", done)

    async def _stored_content(self) -> str:
        """Return what events have written; nothing while the database is away, the message then keeps it."""
        target = self._running.target
        if self._deferred is not None:
            return ""
        try:
            stored = await self._desk.messages.find(target.chat_id, target.message_id)
        except GatewayError as error:
            extra = target.log_fields
            log.warning(
                "the end of an answer is told without its content: %s", error.full_message, extra=extra
            )
            return ""
        return "" if stored is None else stored.content

    async def _keep(self, error: str | None) -> None:
        """Make the message done; a None among the attributes takes away what an earlier answer left."""
        assembly, target = self._assembly, self._running.target
        if self._running.chat is not None:
            attributes = {
                "model": self._running.request.model,
                "usage": assembly.usage or None,
                "output": assembly.output() or None,
                "selectedModelId": assembly.selected,
                "error": None if error is None else {"content": error},
            }
            content = self._content()
            answers = self._desk.answers

            async def write(is_superseded: bool) -> None:
                kept = None if is_superseded else content or None
                await answers.finish(target.chat_id, target.message_id, content=kept, attributes=attributes)

            self._deferred = await self._defer(write, (content, attributes))
        self._is_kept = True

    async def _defer(self, write: Work, values: object) -> DeferredWrite | None:
        target = self._running.target
        return await self._desk.deferred.write(
            self._key,
            write,
            values,
            owner=target.user_id,
            is_answer=True,
            request_id=target.request_id,
        )

    async def _keep_or_lose(self, error: str | None) -> bool:
        """Make the message done, once; False when even that fails: the answer is lost, which is logged."""
        try:
            await self._keep(error)
        except GatewayError as failure:
            log.error("an answer is lost: %s", failure.full_message, extra=self._running.target.log_fields)
            self._is_kept = True
            return False
        return True

    async def _fail(self, error: GatewayError) -> None:
        self._failure = error
        self._assembly.finish()
        await self._tell_content()
        is_kept = await self._keep_or_lose(error.message)
        if is_kept and error.kind is ErrorKind.INTERNAL and self._follower is None:
            # Nobody waits for the answer who would log it.
            told = {"request_id": self._running.request.request_id, "kind": error.kind.value}
            log.error("answer failed: %s", error.full_message, exc_info=error, extra=told)
        await self._say("chat:message:error", {"error": {"content": error.message}})
        await self._say("chat:tasks:cancel", {})

    async def _stop(self) -> None:
        is_closing = self._desk.tasks.is_closing
        sentence = GATEWAY_STOPPED if is_closing else ANSWER_STOPPED
        self._failure = GatewayError(ErrorKind.UNAVAILABLE if is_closing else ErrorKind.CONFLICT, sentence)
        if not self._is_kept:
            self._assembly.finish()
            await self._keep_or_lose(GATEWAY_STOPPED if is_closing else None)
            await self._tell_content()
        await self._say("chat:tasks:cancel", {})

    async def _end(self) -> None:
        """Leave nothing half done, whatever happened, and say that it is over."""
        failure = self._failure
        if failure is None and not self._is_kept:
            failure = GatewayError(ErrorKind.INTERNAL, ANSWER_FAILED)
        if self._follower is not None:
            # Who follows a stream has got the source's own error frame.
            self._follower.end(None if self._is_read and self._assembly.error else failure)
        if failure is not None and not self._is_kept:
            await self._keep_or_lose(failure.message)
            await self._say("chat:message:error", {"error": {"content": failure.message}})
        await self._say("chat:active", {"active": False})

    async def _say(self, event_type: str, data: Any) -> None:
        await self._desk.events.emit(self._running.target, {"type": event_type, "data": data})


def _conversation(body: Body) -> list[Body]:
    """Return the messages as they were sent, before filters and documents change them."""
    return [{"role": item.get("role"), "content": item.get("content")} for item in body.get("messages") or ()]
