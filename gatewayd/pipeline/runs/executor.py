"""Executes one run: calls the pipeline, emits events to the user's subscribers, and stores the answer."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
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
from gatewayd.nodes.records import RUN_TAKEN
from gatewayd.pipeline.interfaces import RunLimiter
from gatewayd.pipeline.records import ChatAnswer
from gatewayd.pipeline.runs.debouncer import Debouncer
from gatewayd.pipeline.runs.interfaces import (
    ChatPipeline,
    EventEmitter,
    MessageWriter,
    RunContext,
    RunOptions,
    RunRegister,
)
from gatewayd.pipeline.runs.message_builder import MessageBuilder
from gatewayd.pipeline.runs.pictures import StoredPictures
from gatewayd.pipeline.runs.post_processor import PostProcessing
from gatewayd.pipeline.runs.subscriber import RunSubscriber
from gatewayd.tasks import TaskRegistry
from gatewayd.write_attempt import DeferredWrite, Key, Work

log = logging.getLogger(__name__)

EMIT_SECONDS: Final = 0.05
"""Minimum delay between content events; it grows with the length, as each event carries the whole content."""

EMIT_SECONDS_PER_CHARACTER: Final = 1 / 400_000
EMIT_SECONDS_PER_TASK: Final = 0.001
"""Additional delay per running task, which keeps all events together below a thousand a second."""

SAVE_SECONDS: Final = 1.0
SAVE_SECONDS_PER_CHARACTER: Final = 1 / 200_000
"""The delay between saves grows with the length, because each save writes the whole content."""

GATEWAY_STOPPED: Final = "the gateway was stopped while this was answered"
ANSWER_STOPPED: Final = "cannot finish the answer: it was stopped"
ANSWER_FAILED: Final = "cannot finish the answer: internal error, see the log of the gateway"


@dataclass(frozen=True, slots=True)
class RunServices:
    """Services that all runs share."""

    pipeline: ChatPipeline
    answers: MessageWriter
    messages: MessageStore
    effects: MessageEffects
    events: EventEmitter
    tasks: TaskRegistry
    deferred: DeferredWrites
    limiter: RunLimiter
    register: RunRegister
    pictures: StoredPictures | None = None


class RunExecutor:
    """One run, from the pipeline call to the post-processing of the answer.

    Events are emitted in the same order as in Open WebUI. Whatever ends the run, the message is marked as
    done and keeps the partial answer. During a database outage events are still emitted, and post-processing
    waits until the answer is stored.
    """

    def __init__(
        self,
        services: RunServices,
        context: RunContext,
        options: RunOptions,
        post_processing: PostProcessing,
        subscriber: RunSubscriber | None,
    ) -> None:
        self._services = services
        self._context = context
        self._options = options
        self._post_processing = post_processing
        self._subscriber = subscriber
        self._builder = MessageBuilder(parse_reasoning_tags(context.request.options.get("params")))
        self._messages = _conversation(context.request.body)
        self._sent_sources = 0
        self._sent_content = ""
        self._is_stream_complete = False
        self._is_finished = False
        self._deferred: DeferredWrite | None = None
        self._failure: GatewayError | None = None

    @property
    def _key(self) -> Key:
        return self._context.target.chat_id, self._context.target.message_id

    async def run(self) -> None:
        """Execute the run; on cancellation the partial answer is saved."""
        try:
            await self._emit("chat:active", {"active": True})
            await self._answer()
            if self._deferred is not None and not await self._deferred.wait():
                # The deferred write failed, which is logged.
                return
            await self._post_processing.run(self._context, self._messages, self._builder, self._options)
        except GatewayError as error:
            await self._fail(error)
        except asyncio.CancelledError:
            await self._stop()
            raise
        finally:
            await self._end()

    async def _answer(self) -> None:
        context = self._context
        answer = await self._services.pipeline.run(context.request, context.actor)
        completion = answer.completion
        if completion is None:
            await self._read(answer)
        else:
            # The completion holds the sources of the pipeline as well.
            self._builder.add_steps(answer.steps)
            self._builder.take(Completion(raw=completion.raw).body)
            self._check_length()
        await self._emit_new_sources()
        if self._builder.error is not None:
            raise GatewayError(ErrorKind.UPSTREAM_FAILED, self._builder.error)
        await self._emit_content()
        await self._finish_message(None)
        if self._subscriber is not None:
            if completion is not None:
                self._subscriber.begin(answer)
            self._subscriber.end()
        await self._emit_done()

    async def _read(self, answer: ChatAnswer) -> None:
        """Read the chunks of a streamed answer, after its sources; whatever fails, its source is closed."""
        if answer.chunks is None:
            raise RuntimeError("an answer has a completion or chunks")
        async with AsyncExitStack() as stack:
            chunks = await stack.enter_async_context(aclosing(answer.chunks))
            await self._emit_sources(answer.sources)
            if self._subscriber is not None:
                self._subscriber.begin(answer)
            tasks = self._services.tasks
            fields = self._context.target.log_fields
            emitter = Debouncer(tasks, self._emit_content, self._emit_interval, fields)
            debouncers = [await stack.enter_async_context(emitter)]
            if self._options.is_saved_often and self._context.chat is not None:
                saver = Debouncer(tasks, self._save, self._save_interval, fields)
                debouncers.append(await stack.enter_async_context(saver))
            async for chunk in chunks:
                self._builder.add_steps(answer.steps)
                self._builder.feed(self._events(chunk))
                await self._emit_new_sources()
                for debouncer in debouncers:
                    debouncer.touch()
        self._builder.add_steps(answer.steps)
        self._builder.finish()
        self._check_length()
        self._is_stream_complete = True

    def _check_length(self) -> None:
        """Raise AnswerSizeError if the answer with tool results and markup is too long for a message."""
        if len(self._builder.content()) > MAX_CONTENT_CHARACTERS:
            raise AnswerSizeError(f"with tool results it is over {MAX_CONTENT_CHARACTERS} characters")

    def _content(self) -> str:
        """Return the answer so far, truncated to the limit of a message."""
        return self._builder.content()[:MAX_CONTENT_CHARACTERS]

    def _events(self, chunk: CompletionChunk) -> list[Body]:
        """Return the events of a chunk; the subscriber gets its bytes."""
        if self._subscriber is None:
            return chunk.events
        raw = chunk.raw
        self._subscriber.put(CompletionChunk(raw=raw))
        return CompletionChunk(raw=raw).events

    async def _emit_content(self) -> None:
        content = self._content()
        if content and content != self._sent_content:
            self._sent_content = content
            await self._emit("chat:completion", {"content": content})

    def _emit_interval(self) -> float:
        tasks = len(self._services.tasks.started())
        by_length = len(self._sent_content) * EMIT_SECONDS_PER_CHARACTER
        return max(EMIT_SECONDS, by_length, tasks * EMIT_SECONDS_PER_TASK)

    async def _save(self) -> None:
        content = self._content()
        if content and not self._services.deferred.is_pending(self._key):
            target = self._context.target
            async with self._fenced():
                await self._services.answers.save(target.chat_id, target.message_id, content)

    def _save_interval(self) -> float:
        return max(SAVE_SECONDS, len(self._sent_content) * SAVE_SECONDS_PER_CHARACTER)

    async def _emit_new_sources(self) -> None:
        new = self._builder.sources[self._sent_sources :]
        self._sent_sources += len(new)
        await self._emit_sources(new)

    async def _emit_sources(self, sources: list[dict[str, Any]]) -> None:
        if not sources:
            return
        target = self._context.target
        if self._context.chat is not None:
            effects = self._services.effects

            async def write(_: bool) -> None:
                async with self._fenced():
                    await effects.append_items(target.chat_id, target.message_id, "sources", sources)

            await self._defer(write, sources)
        await self._emit("chat:completion", {"sources": sources})

    async def _emit_done(self) -> None:
        builder, chat = self._builder, self._context.chat
        content = self._content()
        if not content and chat is not None:
            # Plugin events wrote the content.
            content = await self._stored_content()
        done: dict[str, Any] = {"done": True, "content": content, "output": builder.output()}
        if chat is not None:
            done["title"] = chat.title
        if builder.usage:
            await self._emit("chat:completion", {"usage": builder.usage})
            done["usage"] = builder.usage
        await self._emit("chat:completion", done)

    async def _stored_content(self) -> str:
        """Return the content that plugin events wrote; "" while the database is unavailable."""
        target = self._context.target
        if self._deferred is not None:
            return ""
        try:
            stored = await self._services.messages.find(target.chat_id, target.message_id)
        except GatewayError as error:
            extra = target.log_fields
            log.warning(
                "final event of an answer sent without its content: %s", error.full_message, extra=extra
            )
            return ""
        return "" if stored is None else stored.content

    async def _finish_message(self, error: str | None) -> None:
        """Mark the message as done; a None among the attributes removes the value of an earlier answer."""
        builder, target = self._builder, self._context.target
        if self._context.chat is not None:
            attributes = {
                "model": self._context.request.model,
                "usage": builder.usage or None,
                "output": builder.output() or None,
                "selectedModelId": builder.selected,
                "error": None if error is None else {"content": error},
            }
            content = self._content()
            answers = self._services.answers

            async def write(is_superseded: bool) -> None:
                kept = None if is_superseded else content or None
                async with self._fenced():
                    await answers.finish(
                        target.chat_id, target.message_id, content=kept, attributes=attributes
                    )

            self._deferred = await self._defer(write, (content, attributes))
        self._is_finished = True

    def _fenced(self) -> AbstractAsyncContextManager[None]:
        return self._services.register.fenced(self._context.claim)

    async def _defer(self, write: Work, values: object) -> DeferredWrite | None:
        target = self._context.target
        return await self._services.deferred.write(
            self._key,
            write,
            values,
            owner=target.user_id,
            is_answer=True,
            request_id=target.request_id,
        )

    async def _finish_or_log(self, error: str | None) -> bool:
        """Mark the message as done, once; if that fails, log the loss of the answer and return False.

        It is no loss that another run has the message: the later answer takes the place of this one.
        """
        try:
            await self._finish_message(error)
        except GatewayError as failure:
            is_taken = failure.code == RUN_TAKEN
            sentence = "answer dropped: %s" if is_taken else "answer lost: %s"
            level = logging.INFO if is_taken else logging.ERROR
            log.log(level, sentence, failure.full_message, extra=self._context.target.log_fields)
            self._is_finished = True
            return False
        return True

    async def _fail(self, error: GatewayError) -> None:
        self._failure = error
        self._builder.finish()
        await self._emit_content()
        is_stored = await self._finish_or_log(error.message)
        if is_stored and error.kind is ErrorKind.INTERNAL and self._subscriber is None:
            # Without a subscriber no other code logs the error.
            fields = {"request_id": self._context.request.request_id, "kind": error.kind.value}
            log.error("answer failed: %s", error.full_message, exc_info=error, extra=fields)
        await self._emit("chat:message:error", {"error": {"content": error.message}})
        await self._emit("chat:tasks:cancel", {})

    async def _stop(self) -> None:
        # A plugin in a thread withdraws its own calls later.
        self._services.events.withdraw_calls(self._context.target)
        is_closing = self._services.tasks.is_closing
        sentence = GATEWAY_STOPPED if is_closing else ANSWER_STOPPED
        self._failure = GatewayError(ErrorKind.UNAVAILABLE if is_closing else ErrorKind.CONFLICT, sentence)
        if not self._is_finished:
            self._builder.finish()
            await self._finish_or_log(GATEWAY_STOPPED if is_closing else None)
            await self._emit_content()
        await self._emit("chat:tasks:cancel", {})

    async def _end(self) -> None:
        """Finish the message and the subscriber in every case, and emit the end of the run."""
        failure = self._failure
        if failure is None and not self._is_finished:
            failure = GatewayError(ErrorKind.INTERNAL, ANSWER_FAILED)
        if self._subscriber is not None:
            # A subscriber of a stream already got the source's own error frame.
            self._subscriber.end(None if self._is_stream_complete and self._builder.error else failure)
        if failure is not None and not self._is_finished:
            await self._finish_or_log(failure.message)
            await self._emit("chat:message:error", {"error": {"content": failure.message}})
        await self._emit("chat:active", {"active": False})

    async def _emit(self, event_type: str, data: Any) -> None:
        await self._services.events.emit(self._context.target, {"type": event_type, "data": data})


def _conversation(body: Body) -> list[Body]:
    """Return the messages as the client sent them, without changes by filters and documents."""
    return [{"role": item.get("role"), "content": item.get("content")} for item in body.get("messages") or ()]
