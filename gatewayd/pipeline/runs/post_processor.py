"""Post-processing of finished answers: outlet filters, then background tasks."""

import logging
from collections.abc import Sequence
from typing import Final

from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError
from gatewayd.pipeline.runs.interfaces import EventEmitter, OwnedChats, RunContext, RunOptions, RunOutlets
from gatewayd.pipeline.runs.message_builder import MessageBuilder
from gatewayd.pipeline.runs.message_updates import MessageUpdates
from gatewayd.pipeline.tasks.background import BackgroundWork

log = logging.getLogger(__name__)

OUTLET_MESSAGE_FIELDS: Final = ("id", "role", "content", "info", "timestamp", "output", "usage", "sources")
"""Fields of a message that outlet filters see."""


class PostProcessing:
    """Post-processes an answer; a failing step is logged and leaves the answer unchanged."""

    def __init__(
        self,
        outlets: RunOutlets,
        background: BackgroundWork,
        chats: OwnedChats,
        updates: MessageUpdates,
        events: EventEmitter,
    ) -> None:
        self._outlets = outlets
        self._background = background
        self._chats = chats
        self._updates = updates
        self._events = events

    async def run(
        self, context: RunContext, conversation: Sequence[Body], builder: MessageBuilder, options: RunOptions
    ) -> None:
        """Run all steps; `asked` is the conversation before the answer."""
        answer = {"role": "assistant", "content": builder.text()}
        try:
            await self._filter(context, [*conversation, {"id": context.target.message_id, **answer}])
        except GatewayError as error:
            log.warning("answer not filtered: %s", error.full_message, extra=context.target.log_fields)
        await self._background.run(context, [*conversation, answer], options)

    async def _filter(self, context: RunContext, conversation: Sequence[Body]) -> None:
        target, before = context.target, list(conversation)

        async def read() -> Sequence[Body]:
            if context.chat is not None:
                branch = await self._chats.branch(target.chat_id, target.message_id)
                before[:] = [
                    {name: item[name] for name in OUTLET_MESSAGE_FIELDS if name in item} for item in branch
                ]
            return before

        after = await self._outlets.run_for_run(context.request, context.actor, read)
        if after is None:
            return
        if context.chat is not None:
            await self._updates.keep_contents(target, before, after)
        event = {"type": "chat:outlet", "data": {"messages": after}}
        await self._events.emit(target, event)
