"""Runs: answers to messages of chats, each a task that no HTTP request holds on to."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.catalog.service import Catalog
from gatewayd.chats.interfaces import ChatStore
from gatewayd.chats.parser import UNTITLED
from gatewayd.chats.records import Chat
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.events.message_effects import is_kept
from gatewayd.events.records import EventTarget
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.pipeline.runs.executor import RunExecutor, RunServices
from gatewayd.pipeline.runs.history import to_messages
from gatewayd.pipeline.runs.interfaces import OwnedChats, RunContext, RunOptions
from gatewayd.pipeline.runs.post_processor import PostProcessing
from gatewayd.pipeline.runs.request import (
    AnswerTarget,
    RunRequest,
    copy_for_answers,
    parse_run_request,
    wants_chat,
    wants_run,
)
from gatewayd.pipeline.runs.subscriber import RunSubscriber
from gatewayd.pipeline.tasks import prompts
from gatewayd.tasks import TaskOwner
from gatewayd.write_attempts import Key

TASK_NAME: Final = "answer"
"""The name of the tasks."""


ReleasePlace = Callable[[], None]
"""Gives a place back."""


@dataclass(frozen=True, slots=True)
class StartedRun:
    """What a caller gets who does not wait: the tasks, one for each message, in the order of the request."""

    task_ids: tuple[str, ...]
    chat_id: str
    message_ids: tuple[str, ...]


class RunService:
    """Begins runs, whose callers do not wait for them or follow them."""

    def __init__(
        self,
        desk: RunServices,
        catalog: Catalog,
        store: ChatStore,
        chats: OwnedChats,
        after: PostProcessing,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._clock = clock
        self._desk = desk
        self._catalog = catalog
        self._store = store
        self._chats = chats
        self._after = after
        self._options = RunOptions()
        self._beginning: set[TaskOwner] = set()

    def configure(self, options: RunOptions) -> None:
        """Use these options for answers from now on."""
        self._options = options

    @property
    def options(self) -> RunOptions:
        """What is set for runs now."""
        return self._options

    async def check(self, request: ChatRequest, actor: Actor) -> None:
        """Raise not_found when a request names a stored chat of somebody else."""
        chat_id = request.options.get("chat_id")
        if isinstance(chat_id, str) and chat_id:
            await self._find(chat_id, actor)

    def answer(self, request: ChatRequest, actor: Actor) -> Awaitable[ChatAnswer | StartedRun]:
        """Answer as the request asks for it: by a run that is not waited for, by one that is, or without one.

        Raises not_found when it names a stored chat of somebody else.
        """
        return (self._answer if request.options else self._desk.pipeline.run)(request, actor)

    async def _answer(self, request: ChatRequest, actor: Actor) -> ChatAnswer | StartedRun:
        if wants_chat(request):
            request.options["chat_id"] = await self._make_chat(request, actor)
        if not wants_run(request):
            await self.check(request, actor)
            return await self._desk.pipeline.run(request, actor)
        if request.options.get("session_id"):
            return await self.start(request, actor)
        return await self.follow(request, actor)

    async def start(self, request: ChatRequest, actor: Actor) -> StartedRun:
        """Begin to answer and return at once; the tasks are listed before that.

        Raises not_found for a chat that is not there or not the actor's and for a model that the actor may
        not use, conflict when a message begins to be answered at this moment.
        """
        order = parse_run_request(request)
        chat = await self._find(order.chat_id, actor)
        if chat is None and order.is_stored:
            raise not_found("chat", order.chat_id)
        return await self._begin(_Launch(order, request, actor, chat, None))

    async def follow(self, request: ChatRequest, actor: Actor) -> ChatAnswer:
        """Begin to answer and return the answer as it comes; who no longer reads it does not end it.

        A chat that nobody has is no chat: the request is answered and nothing is kept. Raises what the
        pipeline raises, and what `start` does.
        """
        order = parse_run_request(request)
        chat = await self._find(order.chat_id, actor)
        if chat is None and order.is_stored:
            await self._fill(_Launch(order, request, actor, None, None))
            return await self._desk.pipeline.run(request, actor)
        follower = RunSubscriber()
        await self._begin(_Launch(order, request, actor, chat, follower))
        return await follower.answer()

    async def _find(self, chat_id: str, actor: Actor) -> Chat | None:
        """Return the actor's chat, None when nobody has it or it is not kept; not_found for a foreign one."""
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

    async def _begin(self, launch: "_Launch") -> StartedRun:
        for one in launch.order.answered:
            await self._catalog.candidates(one.model, launch.actor)
        # A caller who leaves now would leave a message that says for ever that it is being written.
        return await self._desk.tasks.finish("begin of an answer", self._launch(launch))

    async def _launch(self, launch: "_Launch") -> StartedRun:
        order = launch.order
        # Chats that are not kept may have the same id for several users.
        purposes = {TaskOwner(launch.actor.user_id, order.chat_id, one.message_id) for one in order.answered}
        if purposes & self._beginning:
            raise GatewayError(
                ErrorKind.CONFLICT, "cannot answer a message that begins to be answered just now"
            )
        self._beginning |= purposes
        try:
            await self._stop_earlier(purposes)
            places = self._take_places(launch)
            try:
                await self._prepare(launch)
                task_ids = self._spawn(launch, places)
            finally:
                # Those of answers that began are given back at their ends.
                for leave in places:
                    leave()
        finally:
            self._beginning -= purposes
        # A task that is cancelled before its first step would leave its message as it is.
        await asyncio.sleep(0)
        return StartedRun(task_ids, order.chat_id, tuple(one.message_id for one in order.answered))

    def _take_places(self, launch: "_Launch") -> list[ReleasePlace]:
        """Return what gives the place of each answer back; none is taken when there is not one for each."""
        places: list[ReleasePlace] = []
        try:
            for _ in launch.order.answered:
                places.append(self._desk.room.begin_run(launch.actor.user_id))
        except GatewayError:
            for leave in places:
                leave()
            raise
        return places

    def _spawn(self, launch: "_Launch", places: list[ReleasePlace]) -> tuple[str, ...]:
        order, task_ids = launch.order, []
        follower, background = launch.follower, order.background
        for request, one in zip(
            copy_for_answers(launch.request, order.answered), order.answered, strict=True
        ):
            actor = launch.actor
            ids = order.chat_id, one.message_id, order.session_id
            target = EventTarget(actor.user_id, *ids, request_id=request.request_id)
            running = RunContext(request, actor, target, launch.chat, background)
            answering = RunExecutor(self._desk, running, self._options, self._after, follower)
            purpose = TaskOwner(actor.user_id, order.chat_id, one.message_id)
            task_ids.append(self._desk.tasks.spawn(TASK_NAME, answering.run(), purpose, places.pop()))
            # One answer is followed, and names the chat.
            follower, background = None, background & {prompts.FOLLOW_UPS.name}
        return tuple(task_ids)

    async def _stop_earlier(self, purposes: Set[TaskOwner]) -> None:
        """Stop what still answers the same messages: the new answer takes its place."""
        for info in self._desk.tasks.started():
            if info.name == TASK_NAME and info.purpose in purposes:
                await self._desk.tasks.stop(info.id)

    async def _prepare(self, launch: "_Launch") -> None:
        """Keep the question and the empty answers, and take the messages from the chat if need be."""
        order, question = launch.order, launch.order.user_message
        begun: list[AnswerTarget] = []
        try:
            for one in order.answered if launch.chat is not None else ():
                await self._desk.answers.begin(
                    order.chat_id, one.message_id, order.parent_id, one.model, question
                )
                # What an earlier answer to it left to be written is of no use now.
                self._desk.deferred.drop((order.chat_id, one.message_id))
                begun.append(one)
                question = None
            await self._fill(launch)
            if order.extra_prompt:
                asked = launch.request.body["messages"]
                launch.request.body["messages"] = [*asked, {"role": "user", "content": order.extra_prompt}]
        except GatewayError as error:
            for one in begun:
                await self._give_up((order.chat_id, one.message_id), error, launch)
            raise

    async def _give_up(self, key: Key, error: GatewayError, launch: "_Launch") -> None:
        """Make a message done that was begun and cannot be answered."""

        async def write(_: bool) -> None:
            attributes = {"error": {"content": error.message}}
            await self._desk.answers.finish(*key, content=None, attributes=attributes)

        owner, request_id = launch.actor.user_id, launch.request.request_id
        await self._desk.deferred.write(
            key, write, error.message, owner=owner, is_answer=True, request_id=request_id
        )

    async def _fill(self, launch: "_Launch") -> None:
        order, body = launch.order, launch.request.body
        if body.get("messages"):
            return
        question = order.user_message
        if question is None:
            raise invalid("cannot accept messages: expected a list", param="messages")
        stored: Sequence[dict[str, object]] = [{"role": "user", **question}]
        if launch.chat is not None:
            stored = await self._chats.branch(order.chat_id, question["id"])
        body["messages"] = to_messages(stored)
        if not body["messages"]:
            raise invalid("cannot accept user_message: it has no content", param="user_message")


@dataclass(frozen=True, slots=True)
class _Launch:
    """A run about to begin."""

    order: RunRequest
    request: ChatRequest
    actor: Actor
    chat: Chat | None
    follower: RunSubscriber | None
