"""What is made after an answer: questions that may follow, a title and tags for the chat."""

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
from gatewayd.pipeline.runs.interfaces import EventEmitter, RunContext, RunOptions
from gatewayd.pipeline.tasks import prompts
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.write_attempts import CHAT_ITSELF_ID, Key, Work

log = logging.getLogger(__name__)


class BackgroundWork:
    """Makes what a request asks for and the settings permit; what fails is logged and left out.

    While the database is away listeners hear of it all the same, and it is written later.
    """

    def __init__(
        self,
        models: TaskModels,
        chats: ChatStore,
        messages: MessageStore,
        events: EventEmitter,
        deferred: DeferredWrites,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._models = models
        self._chats = chats
        self._messages = messages
        self._events = events
        self._deferred = deferred
        self._clock = clock

    async def run(self, running: RunContext, messages: Sequence[Body], options: RunOptions) -> None:
        """Make follow-ups, title and tags, in this order; `messages` is the conversation with the answer."""
        steps = (
            (prompts.FOLLOW_UPS, options.makes_follow_ups, self._follow_up),
            (prompts.TITLE, options.makes_titles, self._title),
            (prompts.TAGS, options.makes_tags, self._tag),
        )
        for task, is_allowed, make in steps:
            # What is not kept has neither title nor tags.
            is_of_chat = task is not prompts.FOLLOW_UPS
            if not is_allowed or task.name not in running.background or (is_of_chat and running.chat is None):
                continue
            try:
                answer = await self._models.text(task, messages, running.request, running.actor)
                await make(running, messages, answer)
            except GatewayError as error:
                log.warning("%s failed: %s", task.name, error.full_message, extra=running.target.log_fields)

    async def _follow_up(self, running: RunContext, messages: Sequence[Body], answer: str) -> None:
        questions = prompts.read_follow_ups(answer)
        if not questions:
            return
        target = running.target
        if running.chat is not None:
            change = MessageChange(attributes={"followUps": questions})

            async def write(_: bool) -> None:
                await self._messages.change(target.chat_id, target.message_id, change)

            await self._defer(running, (target.chat_id, target.message_id), write, questions)
        await self._say(running, "chat:message:follow_ups", {"follow_ups": questions})

    async def _title(self, running: RunContext, messages: Sequence[Body], answer: str) -> None:
        title = prompts.read_title(answer) or prompts.fallback_title(messages)
        chat = running.chat
        if chat is None or not title:
            return

        async def write(is_superseded: bool) -> None:
            # Whoever has given the chat a title meanwhile knows better.
            if not is_superseded:
                await self._chats.change(chat.id, ChatChange(title=title), self._clock())

        await self._defer(running, (chat.id, CHAT_ITSELF_ID), write, title)
        await self._say(running, "chat:title", title)

    async def _tag(self, running: RunContext, messages: Sequence[Body], answer: str) -> None:
        chat, names = running.chat, prompts.read_tags(answer)
        if chat is None or not names:
            return

        async def write(_: bool) -> None:
            for name in names:
                await self._chats.add_tag(chat.id, make_tag(chat.user_id, name))

        await self._defer(running, (chat.id, CHAT_ITSELF_ID), write, names)
        await self._say(running, "chat:tags", names)

    async def _defer(self, running: RunContext, key: Key, work: Work, values: object) -> None:
        target = running.target
        await self._deferred.write(
            key, work, values, owner=target.user_id, is_answer=True, request_id=target.request_id
        )

    async def _say(self, running: RunContext, event_type: str, data: Any) -> None:
        await self._events.emit(running.target, {"type": event_type, "data": data})
