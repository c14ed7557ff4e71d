"""Service of runs: answers messages of chats in tasks that are independent of HTTP requests."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.catalog.service import Catalog
from gatewayd.chats.interfaces import ChatStore
from gatewayd.chats.parser import UNTITLED
from gatewayd.chats.records import Chat
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.events.message_effects import is_kept
from gatewayd.events.records import EventTarget
from gatewayd.nodes.records import RunClaim
from gatewayd.nodes.runs import RUN_NAME
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.pipeline.runs.executor import RunExecutor, RunServices
from gatewayd.pipeline.runs.history import to_messages
from gatewayd.pipeline.runs.interfaces import OwnedChats, RunContext, RunOptions
from gatewayd.pipeline.runs.post_processor import PostProcessing
from gatewayd.pipeline.runs.request import (
    RunRequest,
    copy_for_answers,
    parse_run_request,
    wants_chat,
    wants_run,
)
from gatewayd.pipeline.runs.subscriber import RunSubscriber
from gatewayd.pipeline.tasks import prompts
from gatewayd.tasks import TaskOwner

ReleasePlace = Callable[[], None]
"""Releases the place of a run."""


@dataclass(frozen=True, slots=True)
class StartedRun:
    """The reply to a caller who does not wait: one task for each message, in the order of the request."""

    task_ids: tuple[str, ...]
    chat_id: str
    message_ids: tuple[str, ...]


class RunService:
    """Starts runs for callers who subscribe to the answer or only get the task ids."""

    def __init__(
        self,
        services: RunServices,
        catalog: Catalog,
        store: ChatStore,
        chats: OwnedChats,
        post_processing: PostProcessing,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._clock = clock
        self._services = services
        self._catalog = catalog
        self._store = store
        self._chats = chats
        self._post_processing = post_processing
        self._options = RunOptions()
        self._beginning: set[TaskOwner] = set()

    def configure(self, options: RunOptions) -> None:
        """Use these options for later runs."""
        self._options = options

    @property
    def options(self) -> RunOptions:
        """The current options of runs."""
        return self._options

    async def check(self, request: ChatRequest, actor: Actor) -> None:
        """Raise not_found if a request names another user's stored chat."""
        chat_id = request.options.get("chat_id")
        if isinstance(chat_id, str) and chat_id:
            await self._find(chat_id, actor)

    def answer(self, request: ChatRequest, actor: Actor) -> Awaitable[ChatAnswer | StartedRun]:
        """Answer a request by a started run, by a run that the caller follows, or without a run.

        Raises not_found if the request names another user's stored chat.
        """
        return (self._answer if request.options else self._services.pipeline.run)(request, actor)

    async def _answer(self, request: ChatRequest, actor: Actor) -> ChatAnswer | StartedRun:
        if wants_chat(request):
            request.options["chat_id"] = await self._make_chat(request, actor)
        if not wants_run(request):
            await self.check(request, actor)
            return await self._services.pipeline.run(request, actor)
        if request.options.get("session_id"):
            return await self.start(request, actor)
        return await self.follow(request, actor)

    async def start(self, request: ChatRequest, actor: Actor) -> StartedRun:
        """Start a run and return immediately; its tasks are listed by then.

        Raises not_found for an unknown chat, another user's chat and a model that the actor may not use, and
        conflict if another run of the same message is starting.
        """
        run_request = parse_run_request(request)
        chat = await self._find(run_request.chat_id, actor)
        if chat is None and run_request.is_stored:
            raise not_found("chat", run_request.chat_id)
        return await self._begin(_RunStart(run_request, request, actor, chat, None))

    async def follow(self, request: ChatRequest, actor: Actor) -> ChatAnswer:
        """Start a run and return its answer; the run continues if the caller stops reading.

        For an unknown chat id the request is answered without storing anything. Raises the errors of the
        pipeline and of `start`.
        """
        run_request = parse_run_request(request)
        chat = await self._find(run_request.chat_id, actor)
        if chat is None and run_request.is_stored:
            await self._load_messages(_RunStart(run_request, request, actor, None, None))
            return await self._services.pipeline.run(request, actor)
        subscriber = RunSubscriber()
        await self._begin(_RunStart(run_request, request, actor, chat, subscriber))
        return await subscriber.answer()

    async def _find(self, chat_id: str, actor: Actor) -> Chat | None:
        """Return the actor's chat, or None if it is not stored; raise not_found for another user's."""
        if not is_kept(chat_id):
            return None
        chat = await self._store.find(chat_id)
        if chat is not None and chat.user_id != actor.user_id:
            raise not_found("chat", chat_id)
        return chat

    async def _make_chat(self, request: ChatRequest, actor: Actor) -> str:
        parse_run_request(request)
        await self._catalog.candidates(request.model, actor)
        now = self._clock()
        head = {"models": [request.model]}
        made = Chat(ids.new_id(), actor.user_id, UNTITLED, head=head, updated_at=now, created_at=now)
        await self._store.add(made, ())
        return made.id

    async def _begin(self, run_start: "_RunStart") -> StartedRun:
        for one in run_start.run_request.answered:
            await self._catalog.candidates(one.model, run_start.actor)
        # If the caller could cancel this, the message would stay in the state RUNNING for ever.
        return await self._services.tasks.finish("begin of an answer", self._launch(run_start))

    async def _launch(self, run_start: "_RunStart") -> StartedRun:
        run_request = run_start.run_request
        # Several users may have temporary chats with the same id.
        owners = {
            TaskOwner(run_start.actor.user_id, run_request.chat_id, one.message_id)
            for one in run_request.answered
        }
        if owners & self._beginning:
            raise GatewayError(ErrorKind.CONFLICT, "cannot answer the message: another run of it is starting")
        self._beginning |= owners
        try:
            await self._stop_earlier(owners)
            places = self._take_places(run_start)
            try:
                task_ids = await self._launch_claimed(run_start, places)
            finally:
                # Started runs release their places at their end.
                for release in places:
                    release()
        finally:
            self._beginning -= owners
        # A task that is cancelled before its first step could not finish its message.
        await asyncio.sleep(0)
        return StartedRun(
            task_ids, run_request.chat_id, tuple(one.message_id for one in run_request.answered)
        )

    async def _launch_claimed(self, run_start: "_RunStart", places: list[ReleasePlace]) -> tuple[str, ...]:
        """Claim the messages and start the runs, each of which ends its own claim."""
        run_request, register = run_start.run_request, self._services.register
        claims = await register.claim(
            [
                TaskOwner(run_start.actor.user_id, run_request.chat_id, one.message_id)
                for one in run_request.answered
            ]
        )
        is_started = False
        try:
            await self._prepare(run_start, claims)
            task_ids = self._spawn(run_start, claims, places)
            is_started = True
            return task_ids
        finally:
            for claim in () if is_started else claims:
                await register.end(claim)

    def _take_places(self, run_start: "_RunStart") -> list[ReleasePlace]:
        """Take a place for each answer and return their release functions; take all places or none."""
        places: list[ReleasePlace] = []
        try:
            for _ in run_start.run_request.answered:
                places.append(self._services.limiter.begin_run(run_start.actor.user_id))
        except GatewayError:
            for release in places:
                release()
            raise
        return places

    def _spawn(
        self, run_start: "_RunStart", claims: Sequence[RunClaim], places: list[ReleasePlace]
    ) -> tuple[str, ...]:
        run_request, task_ids = run_start.run_request, []
        subscriber, background = run_start.subscriber, run_request.background
        requests = copy_for_answers(run_start.request, run_request.answered)
        for request, claim in zip(requests, claims, strict=True):
            actor, owner = run_start.actor, claim.owner
            target = EventTarget(
                actor.user_id,
                owner.chat_id,
                owner.message_id,
                run_request.session_id,
                request_id=request.request_id,
            )
            context = RunContext(request, actor, target, run_start.chat, claim, background)
            executor = RunExecutor(self._services, context, self._options, self._post_processing, subscriber)
            work = self._run_claimed(executor, claim)
            task_ids.append(self._services.tasks.spawn(RUN_NAME, work, owner, places.pop(), claim.task_id))
            # The subscriber gets the first answer, which also names the chat.
            subscriber, background = None, background & {prompts.FOLLOW_UPS.name}
        return tuple(task_ids)

    async def _run_claimed(self, executor: RunExecutor, claim: RunClaim) -> None:
        try:
            await executor.run()
        finally:
            await self._services.register.end(claim)

    async def _stop_earlier(self, owners: Set[TaskOwner]) -> None:
        """Stop earlier runs of the same messages."""
        for info in self._services.tasks.started():
            if info.name == RUN_NAME and info.purpose in owners:
                await self._services.tasks.stop(info.id)

    async def _prepare(self, run_start: "_RunStart", claims: Sequence[RunClaim]) -> None:
        """Store the question and the empty answers; load the chat's messages if the request has none."""
        run_request, question = run_start.run_request, run_start.run_request.user_message
        begun: list[RunClaim] = []
        try:
            stored = zip(run_request.answered, claims, strict=True) if run_start.chat is not None else ()
            for one, claim in stored:
                async with self._services.register.fenced(claim):
                    await self._services.answers.begin(
                        run_request.chat_id, one.message_id, run_request.parent_id, one.model, question
                    )
                # Drop pending writes of an earlier answer to this message.
                self._services.deferred.drop((run_request.chat_id, one.message_id))
                begun.append(claim)
                question = None
            await self._load_messages(run_start)
            if run_request.extra_prompt:
                asked = run_start.request.body["messages"]
                run_start.request.body["messages"] = [
                    *asked,
                    {"role": "user", "content": run_request.extra_prompt},
                ]
        except GatewayError as error:
            for claim in begun:
                await self._finish_with_error(claim, error, run_start)
            raise

    async def _finish_with_error(self, claim: RunClaim, error: GatewayError, run_start: "_RunStart") -> None:
        """Mark a message as done whose run could not start."""
        key = claim.owner.chat_id, claim.owner.message_id

        async def write(_: bool) -> None:
            attributes = {"error": {"content": error.message}}
            async with self._services.register.fenced(claim):
                await self._services.answers.finish(*key, content=None, attributes=attributes)

        owner, request_id = run_start.actor.user_id, run_start.request.request_id
        await self._services.deferred.write(
            key, write, error.message, owner=owner, is_answer=True, request_id=request_id
        )

    async def _load_messages(self, run_start: "_RunStart") -> None:
        run_request, body = run_start.run_request, run_start.request.body
        if body.get("messages"):
            return
        question = run_request.user_message
        if question is None:
            raise invalid("cannot accept messages: expected a list", param="messages")
        stored: Sequence[Mapping[str, Any]] = [{"role": "user", **question}]
        if run_start.chat is not None:
            stored = await self._chats.branch(run_request.chat_id, question["id"])
        if self._services.pictures is not None:
            warnings = run_start.request.warnings
            stored = await self._services.pictures.fill(run_start.actor, stored, warnings)
        body["messages"] = to_messages(stored)
        if not body["messages"]:
            raise invalid("cannot accept user_message: it has no content", param="user_message")


@dataclass(frozen=True, slots=True)
class _RunStart:
    """A run that is starting."""

    run_request: RunRequest
    request: ChatRequest
    actor: Actor
    chat: Chat | None
    subscriber: RunSubscriber | None
