"""Finds the question in a conversation, and puts documents beside it; pure."""

from collections.abc import Callable, Sequence
from typing import Any, Final

Message = dict[str, Any]

SYSTEM_ROLES: Final = frozenset({"system", "developer"})


def last_question(messages: Sequence[Message]) -> str:
    """Return the text of the last user message that has one, "" for none."""
    index = _last_asked(messages)
    return "" if index is None else _text_of(messages[index].get("content"))


def prepend_to_question(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with a text put before the last question; what else it holds stays."""
    index = _last_asked(messages)
    if index is None:
        return list(messages)
    return _replaced(messages, index, lambda said: f"{text}\n{said}")


def prepend_to_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with a text put at the start of the first system message, or as one before all."""
    return _with_system(messages, text, lambda said: f"{text}\n{said}", lambda part, parts: [part, *parts])


def append_to_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with a text put at the end of the first system message, or as one before all."""
    return _with_system(messages, text, lambda said: f"{said}\n\n{text}", lambda part, parts: [*parts, part])


def _with_system(
    messages: Sequence[Message],
    text: str,
    join: Callable[[str], str],
    add: Callable[[Message, Sequence[Message]], list[Message]],
) -> list[Message]:
    for index, message in enumerate(messages):
        if message.get("role") in SYSTEM_ROLES:
            content = message.get("content")
            if isinstance(content, list):
                changed = {**message, "content": add({"type": "text", "text": text}, content)}
            else:
                changed = {**message, "content": join(content) if content else text}
            return [*messages[:index], changed, *messages[index + 1 :]]
    return [{"role": "system", "content": text}, *messages]


def _last_asked(messages: Sequence[Message]) -> int | None:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user" and _text_of(messages[index].get("content")).strip():
            return index
    return None


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(part["text"] for part in content if _is_text(part))


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _replaced(messages: Sequence[Message], index: int, change: Callable[[str], str]) -> list[Message]:
    """Return the messages with the text, or the first text part, of one of them changed."""
    content = messages[index]["content"]
    if isinstance(content, str):
        changed: Any = change(content)
    else:
        first = next(place for place, part in enumerate(content) if _is_text(part))
        part = {**content[first], "text": change(content[first]["text"])}
        changed = [*content[:first], part, *content[first + 1 :]]
    return [*messages[:index], {**messages[index], "content": changed}, *messages[index + 1 :]]
