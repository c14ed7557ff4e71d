"""What is made after an answer: questions that may follow, a title and tags for the chat."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.replies import Body, Completion
from gatewayd.catalog.service import Catalog
from gatewayd.chat import tasktexts
from gatewayd.chat.endpoints import context_of
from gatewayd.chat.gather import message_of, said
from gatewayd.chat.records import ChatRequest
from gatewayd.chat.running import Emitting, Running, RunOptions
from gatewayd.chat.scopes import make_scope
from gatewayd.chat.tasktexts import TaskText
from gatewayd.chats.interfaces import ChatStore, MessageStore
from gatewayd.chats.records import ChatChange, MessageChange
from gatewayd.chats.tags import make_tag
from gatewayd.errors import GatewayError, Kind

log = logging.getLogger(__name__)


class TaskModels:
    """Puts the questions of tasks to models: no filter, document or tool has a part in that."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def ask(self, task: str, request: ChatRequest, actor: Actor, original: Body) -> Completion:
        """Return the answer; plugins are told the name of the task, and `original`, what it is made of."""
        candidates = await self._catalog.candidates(request.model, actor)
        model = candidates[0].model
        scope = make_scope(request, model, self._catalog.find_record(model.id), actor)
        scope.task, scope.task_body = task, original
        # What a plugin emits on the way is nothing of the answer that the task is about.
        scope.target = replace(scope.target, message_id="")
        scope.metadata |= {"task": task, "task_body": original}
        chat_id = request.options.get("chat_id")
        context = context_of(actor, request.request_id, scope=scope, chat_id=chat_id)

        async def question(model: Model, source: ModelSource) -> Completion:
            return await source.complete({**request.body, "model": model.upstream_id}, model, context)

        return await self._catalog.failover.ask(candidates, question)

    async def text(
        self,
        task: TaskText,
        messages: Sequence[Mapping[str, Any]],
        request: ChatRequest,
        actor: Actor,
        model: str,
    ) -> str:
        """Return what a model says to a task about a conversation; `request` is what caused the task.

        A task model that the actor may not use, or that is gone, gives its place to that of the request.
        """
        try:
            completion = await self._ask(task, messages, request, actor, model or request.model)
        except GatewayError as error:
            if error.kind is not Kind.NOT_FOUND or not model or model == request.model:
                raise
            log.warning("the task model is not used: %s", error.message)
            completion = await self._ask(task, messages, request, actor, request.model)
        return said(message_of(completion.body))

    async def _ask(
        self,
        task: TaskText,
        messages: Sequence[Mapping[str, Any]],
        request: ChatRequest,
        actor: Actor,
        model: str,
    ) -> Completion:
        body = tasktexts.task_body(model, task.prompt(messages))
        kept = {name: request.options.get(name) for name in ("chat_id", "id", "session_id")}
        asked = replace(
            request, model=model, body=body, stream=False, files=[], options=kept, native=None, scope=None
        )
        return await self.ask(task.name, asked, actor, {"model": model, "messages": list(messages), **kept})


class Background:
    """Makes what a request asks for and the settings permit; what fails is logged and left out."""

    def __init__(
        self,
        models: TaskModels,
        chats: ChatStore,
        messages: MessageStore,
        events: Emitting,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._models = models
        self._chats = chats
        self._messages = messages
        self._events = events
        self._clock = clock

    async def run(self, running: Running, messages: Sequence[Body], options: RunOptions) -> None:
        """Make follow-ups, title and tags, in this order; `messages` is the conversation with the answer."""
        steps = (
            (tasktexts.FOLLOW_UPS, options.makes_follow_ups, self._follow_up),
            (tasktexts.TITLE, options.makes_titles, self._title),
            (tasktexts.TAGS, options.makes_tags, self._tag),
        )
        for task, is_allowed, make in steps:
            # What is not kept has neither title nor tags.
            is_of_chat = task is not tasktexts.FOLLOW_UPS
            if not is_allowed or task.name not in running.background or (is_of_chat and running.chat is None):
                continue
            try:
                answer = await self._models.text(
                    task, messages, running.request, running.actor, options.task_model
                )
                await make(running, messages, answer)
            except GatewayError as error:
                log.warning("%s failed: %s", task.name, error.message)

    async def _follow_up(self, running: Running, messages: Sequence[Body], answer: str) -> None:
        questions = tasktexts.read_follow_ups(answer)
        if not questions:
            return
        target = running.target
        if running.chat is not None:
            change = MessageChange(attributes={"followUps": questions})
            await self._messages.change(target.chat_id, target.message_id, change)
        await self._say(running, "chat:message:follow_ups", {"follow_ups": questions})

    async def _title(self, running: Running, messages: Sequence[Body], answer: str) -> None:
        title = tasktexts.read_title(answer) or tasktexts.fallback_title(messages)
        if running.chat is None or not title:
            return
        await self._chats.change(running.chat.id, ChatChange(title=title), self._clock())
        await self._say(running, "chat:title", title)

    async def _tag(self, running: Running, messages: Sequence[Body], answer: str) -> None:
        chat, names = running.chat, tasktexts.read_tags(answer)
        if chat is None or not names:
            return
        for name in names:
            await self._chats.add_tag(chat.id, make_tag(chat.user_id, name))
        await self._say(running, "chat:tags", names)

    async def _say(self, running: Running, event_type: str, data: Any) -> None:
        await self._events.emit(running.target, {"type": event_type, "data": data})
