"""Functions of `open_webui.utils.misc` for lists of chat messages.

A message is a mapping with `role` and `content`, which is text or a list of parts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Message = dict[str, Any]


def get_content_from_message(message: Mapping[str, Any]) -> str | None:
    """Return the text of a message: the content, or the first text among its parts."""
    content = message.get("content")
    if isinstance(content, list):
        texts = (part.get("text") for part in content if part.get("type") == "text")
        return next((text for text in texts if text is not None), None)
    return content


def get_last_user_message_item(messages: Sequence[Message]) -> Message | None:
    """Return the last user message, not a copy."""
    return _last(messages, "user")


def get_last_user_message(messages: Sequence[Message]) -> str | None:
    """Return the text of the last user message."""
    return _text(_last(messages, "user"))


def get_last_assistant_message_item(messages: Sequence[Message]) -> Message | None:
    """Return the last assistant message, not a copy."""
    return _last(messages, "assistant")


def get_last_assistant_message(messages: Sequence[Message]) -> str | None:
    """Return the text of the last assistant message."""
    return _text(_last(messages, "assistant"))


def get_system_message(messages: Sequence[Message]) -> Message | None:
    """Return the first system message, not a copy."""
    return next((message for message in messages if message.get("role") == "system"), None)


def remove_system_message(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without system messages."""
    return [message for message in messages if message.get("role") != "system"]


def pop_system_message(messages: Sequence[Message]) -> tuple[Message | None, list[Message]]:
    """Return the first system message, and the messages without system messages."""
    return get_system_message(messages), remove_system_message(messages)


def update_message_content(message: Message, content: str, append: bool = True) -> Message:
    """Append or prepend text to a message in place and return it."""
    held = message.get("content")
    if isinstance(held, list):
        part = {"type": "text", "text": content}
        message["content"] = [*held, part] if append else [part, *held]
    else:
        first, second = (held or "", content) if append else (content, held or "")
        message["content"] = f"{first}\n{second}"
    return message


def replace_system_message_content(content: str, messages: list[Message]) -> list[Message]:
    """Replace the text of each system message in place and return the list."""
    for message in messages:
        if message.get("role") == "system":
            message["content"] = content
    return messages


def add_or_update_system_message(
    content: str, messages: list[Message], append: bool = False
) -> list[Message]:
    """Prepend or append text to a leading system message, or insert one; return the changed list."""
    if messages and messages[0].get("role") == "system":
        update_message_content(messages[0], content, append)
    else:
        messages.insert(0, {"role": "system", "content": content})
    return messages


def add_or_update_user_message(content: str, messages: list[Message], append: bool = True) -> list[Message]:
    """Append text to a trailing user message, or add one; return the changed list."""
    if messages and messages[-1].get("role") == "user":
        update_message_content(messages[-1], content, append)
    else:
        messages.append({"role": "user", "content": content})
    return messages


def prepend_to_first_user_message_content(content: str, messages: list[Message]) -> list[Message]:
    """Prepend text to the first user message; return the changed list."""
    first = next((message for message in messages if message.get("role") == "user"), None)
    if first is not None:
        update_message_content(first, content, append=False)
    return messages


def append_or_update_assistant_message(content: str, messages: list[Message]) -> list[Message]:
    """Append text to a trailing assistant message, or add one; return the changed list."""
    if messages and messages[-1].get("role") == "assistant":
        update_message_content(messages[-1], content)
    else:
        messages.append({"role": "assistant", "content": content})
    return messages


def get_message_list(messages_map: Mapping[str, Message] | None, message_id: str | None) -> list[Message]:
    """Return the messages from the root of a chat to `message_id`, along `parentId`."""
    found: list[Message] = []
    seen: set[str] = set()
    while message_id and message_id not in seen:
        seen.add(message_id)
        message = (messages_map or {}).get(message_id)
        if message is None:
            break
        found.append(message)
        message_id = message.get("parentId")
    return found[::-1]


def get_messages_content(messages: Sequence[Message]) -> str:
    """Return the messages as lines that begin with the role in upper case."""
    return "\n".join(
        f"{str(message.get('role', '')).upper()}: {get_content_from_message(message)}" for message in messages
    )


def _last(messages: Sequence[Message], role: str) -> Message | None:
    return next((message for message in reversed(messages) if message.get("role") == role), None)


def _text(message: Message | None) -> str | None:
    return None if message is None else get_content_from_message(message)
