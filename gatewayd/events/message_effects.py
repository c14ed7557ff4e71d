"""Effects of events on stored messages. gatewayd-plugins(7), EVENTS lists them by type."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from gatewayd.errors import GatewayError
from gatewayd.events.interfaces import MessageEffects
from gatewayd.events.records import Effect, EventTarget

log = logging.getLogger(__name__)

CODE_EXECUTION: Final = "code_execution"
"""The `type` of a source that describes executed code.

Such a source is `{"type", "id", "name", "code", "language", "result"?}`.
"""

_UNSTORED: Final = ("local:", "temporary:", "channel:")

# Effect -> the list in the payload whose values it appends. A status or a source is appended whole.
_LISTS: Final = {Effect.APPEND_EMBEDS: "embeds", Effect.APPEND_FILES: "files"}


def is_kept(chat_id: str) -> bool:
    """Tell whether a chat id names a stored chat and not a temporary one."""
    return bool(chat_id) and not chat_id.startswith(_UNSTORED)


def is_stored(target: EventTarget) -> bool:
    """Tell whether a target may name a stored message."""
    return bool(target.message_id) and is_kept(target.chat_id)


class StoredEffects:
    """Stores the effect of an event and returns the payload for subscribers."""

    def __init__(self, store: MessageEffects) -> None:
        self._store = store

    async def apply(self, target: EventTarget, effect: Effect, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the stored message, if it exists, and return the payload to deliver.

        The payload is `data` itself. For a list it has the whole list, old values first: pages replace the
        list that they show.
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
            # The values are stored: after a failure the caller would store them again.
            log.warning("cannot send a whole list, sending its new values: %s", error.full_message)
            return data
        return {**data, field: list(whole)}


def _is_execution(source: Mapping[str, Any]) -> bool:
    """Tell whether a source describes executed code, which is sent again with its id when it has ended."""
    return source.get("type") == CODE_EXECUTION and isinstance(source.get("id"), str)
