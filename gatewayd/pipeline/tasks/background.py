"""Background tasks after an answer: follow-up questions, chat title and tags."""

import logging
from collections.abc import Sequence
from typing import Any

from gatewayd import ids
from gatewayd.chats.interfaces import ChatStore, MessageStore
from gatewayd.chats.records import ChatChange, MessageChange
from gatewayd.chats.tags import make_tag
from gatewayd.completions.records import Body
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import GatewayError
from gatewayd.nodes.records import RUN_TAKEN
from gatewayd.pipeline.runs.interfaces import EventEmitter, RunContext, RunOptions, RunRegister
from gatewayd.pipeline.tasks import prompts
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.write_attempt import CHAT_ITSELF_ID, Key, Work

log = logging.getLogger(__name__)


class BackgroundWork:
    """Runs the tasks that the request names and the settings allow; a failing task is logged and skipped.

    During a database outage the events are still emitted, and the writes are deferred. A run whose message
    another run has claimed makes nothing more.
    """

    def __init__(
        self,
        models: TaskModels,
        chats: ChatStore,
        messages: MessageStore,
        events: EventEmitter,
        deferred: DeferredWrites,
        register: RunRegister,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._models = models
        self._chats = chats
        self._messages = messages
        self._events = events
        self._deferred = deferred
        self._register = register
        self._clock = clock

    async def run(self, context: RunContext, messages: Sequence[Body], options: RunOptions) -> None:
        """Generate follow-ups, title and tags, in this order; `messages` includes the answer."""
        steps = (
            (prompts.FOLLOW_UPS, options.makes_follow_ups, self._follow_up),
            (prompts.TITLE, options.makes_titles, self._title),
            (prompts.TAGS, options.makes_tags, self._tag),
        )
        for task, is_allowed, make in steps:
            # A chat that is not stored has no title and no tags.
            is_of_chat = task is not prompts.FOLLOW_UPS
            if not is_allowed or task.name not in context.background or (is_of_chat and context.chat is None):
                continue
            if await self._is_taken(context):
                return
            try:
                answer = await self._models.text(task, messages, context.request, context.actor)
                await make(context, messages, answer)
            except GatewayError as error:
                log.warning("%s failed: %s", task.name, error.full_message, extra=context.target.log_fields)

    async def _is_taken(self, context: RunContext) -> bool:
        try:
            async with self._register.fenced(context.claim):
                return False
        except GatewayError as error:
            return error.code == RUN_TAKEN

    async def _follow_up(self, context: RunContext, messages: Sequence[Body], answer: str) -> None:
        questions = prompts.read_follow_ups(answer)
        if not questions:
            return
        target = context.target
        if context.chat is not None:
            change = MessageChange(attributes={"followUps": questions})

            async def write(_: bool) -> None:
                await self._messages.change(target.chat_id, target.message_id, change)

            await self._defer(context, (target.chat_id, target.message_id), write, questions)
        await self._emit(context, "chat:message:follow_ups", {"follow_ups": questions})

    async def _title(self, context: RunContext, messages: Sequence[Body], answer: str) -> None:
        title = prompts.read_title(answer) or prompts.fallback_title(messages)
        chat = context.chat
        if chat is None or not title:
            return

        async def write(is_superseded: bool) -> None:
            # A title that was set meanwhile stays.
            if not is_superseded:
                await self._chats.change(chat.id, ChatChange(title=title), self._clock())

        await self._defer(context, (chat.id, CHAT_ITSELF_ID), write, title)
        await self._emit(context, "chat:title", title)

    async def _tag(self, context: RunContext, messages: Sequence[Body], answer: str) -> None:
        chat, names = context.chat, prompts.read_tags(answer)
        if chat is None or not names:
            return

        async def write(_: bool) -> None:
            for name in names:
                await self._chats.add_tag(chat.id, make_tag(chat.user_id, name))

        await self._defer(context, (chat.id, CHAT_ITSELF_ID), write, names)
        await self._emit(context, "chat:tags", names)

    async def _defer(self, context: RunContext, key: Key, work: Work, values: object) -> None:
        target = context.target
        await self._deferred.write(
            key, work, values, owner=target.user_id, is_answer=True, request_id=target.request_id
        )

    async def _emit(self, context: RunContext, event_type: str, data: Any) -> None:
        await self._events.emit(context.target, {"type": event_type, "data": data})
