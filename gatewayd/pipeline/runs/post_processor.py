"""What follows a finished answer: the outlet filters, then what is made in the background."""

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
"""What outlet filters see of a message."""


class PostProcessing:
    """Runs what follows an answer; a step that fails is logged and leaves the answer as it is."""

    def __init__(
        self,
        outlets: RunOutlets,
        background: BackgroundWork,
        chats: OwnedChats,
        rewriting: MessageUpdates,
        events: EventEmitter,
    ) -> None:
        self._outlets = outlets
        self._background = background
        self._chats = chats
        self._rewriting = rewriting
        self._events = events

    async def run(
        self, running: RunContext, asked: Sequence[Body], assembly: MessageBuilder, options: RunOptions
    ) -> None:
        """Do all that is asked for; `asked` is the conversation before the answer."""
        answer = {"role": "assistant", "content": assembly.text()}
        try:
            await self._filter(running, [*asked, {"id": running.target.message_id, **answer}])
        except GatewayError as error:
            log.warning("an answer is not filtered: %s", error.full_message, extra=running.target.log_fields)
        await self._background.run(running, [*asked, answer], options)

    async def _filter(self, running: RunContext, asked: Sequence[Body]) -> None:
        target, before = running.target, list(asked)

        async def read() -> Sequence[Body]:
            if running.chat is not None:
                branch = await self._chats.branch(target.chat_id, target.message_id)
                before[:] = [
                    {name: item[name] for name in OUTLET_MESSAGE_FIELDS if name in item} for item in branch
                ]
            return before

        after = await self._outlets.run_for_run(running.request, running.actor, read)
        if after is None:
            return
        if running.chat is not None:
            await self._rewriting.keep_contents(target, before, after)
        event = {"type": "chat:outlet", "data": {"messages": after}}
        await self._events.emit(target, event)
