"""What events do to the stored message they are about (6.5)."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from gatewayd.errors import GatewayError
from gatewayd.events.interfaces import MessageEffects
from gatewayd.events.records import Effect, EventTarget

log = logging.getLogger(__name__)

CODE_EXECUTION: Final = "code_execution"
"""The `type` of a source that is `{"type", "id", "name", "code", "language", "result"?}` (6.2)."""

_UNSTORED: Final = ("local:", "temporary:", "channel:")

# Which list of the payload goes into which list of the message; a status and a source go in whole.
_LISTS: Final = {Effect.APPEND_EMBEDS: "embeds", Effect.APPEND_FILES: "files"}


def is_kept(chat_id: str) -> bool:
    """Tell whether a chat id is one of those under which chats are stored, and not of a temporary chat."""
    return bool(chat_id) and not chat_id.startswith(_UNSTORED)


def is_stored(target: EventTarget) -> bool:
    """Tell whether there can be a stored message behind a target."""
    return bool(target.message_id) and is_kept(target.chat_id)


class StoredEffects:
    """Writes the effect of one event and says what listeners are told."""

    def __init__(self, store: MessageEffects) -> None:
        self._store = store

    async def apply(self, target: EventTarget, effect: Effect, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the stored message and return the payload to deliver: `data` itself, or for a list the
        whole of it, old values first, as pages put it in place of what they show.

        Nothing is stored when there is no such message.
        """
        chat_id, message_id = target.chat_id, target.message_id
        match effect:
            case Effect.NONE:
                pass
            case Effect.APPEND_CONTENT:
                if data["content"]:
                    await self._store.append_content(chat_id, message_id, data["content"])
            case Effect.REPLACE_CONTENT:
                await self._store.replace_content(chat_id, message_id, data["content"])
            case Effect.APPEND_SOURCES if _is_execution(data):
                await self._store.put_item(chat_id, message_id, effect.value, data)
            case Effect.APPEND_STATUS | Effect.APPEND_SOURCES:
                await self._store.append_items(chat_id, message_id, effect.value, [data])
            case Effect.APPEND_EMBEDS | Effect.APPEND_FILES:
                return await self._extend(target, effect, data)
        return data

    async def _extend(
        self, target: EventTarget, effect: Effect, data: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        field, kind = _LISTS[effect], effect.value
        chat_id, message_id = target.chat_id, target.message_id
        if effect is Effect.APPEND_EMBEDS and data.get("replace") is True:
            await self._store.replace_items(chat_id, message_id, kind, data[field])
            return data
        if not await self._store.append_items(chat_id, message_id, kind, data[field]):
            return data
        try:
            whole = await self._store.items(chat_id, message_id, kind)
        except GatewayError as error:
            # The values are stored: a failure now would have them stored again.
            log.warning("listeners get the new values of a list alone: %s", error.full_message)
            return data
        return {**data, field: list(whole)}


def _is_execution(source: Mapping[str, Any]) -> bool:
    """Tell whether a source is one of code that runs, which is sent anew under its id when it has ended."""
    return source.get("type") == CODE_EXECUTION and isinstance(source.get("id"), str)
