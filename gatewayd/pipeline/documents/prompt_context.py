"""Finds the last question of a conversation and inserts text beside it or in the system message; pure."""

from collections.abc import Callable, Sequence
from typing import Any, Final

Message = dict[str, Any]

SYSTEM_ROLES: Final = frozenset({"system", "developer"})


def last_question(messages: Sequence[Message]) -> str:
    """Return the text of the last user message with text; "" if there is none."""
    index = _last_question_index(messages)
    return "" if index is None else _text_of(messages[index].get("content"))


def prepend_to_question(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with a text inserted before the last question, whose other parts stay."""
    index = _last_question_index(messages)
    if index is None:
        return list(messages)
    return _replaced(messages, index, lambda content: f"{text}\n{content}")


def prepend_to_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with a text prepended to the first system message, or as a new first message."""
    return _with_system(
        messages, text, lambda content: f"{text}\n{content}", lambda part, parts: [part, *parts]
    )


def append_to_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with a text appended to the first system message, or as a new first message."""
    return _with_system(
        messages, text, lambda content: f"{content}\n\n{text}", lambda part, parts: [*parts, part]
    )


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


def _last_question_index(messages: Sequence[Message]) -> int | None:
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
    """Return the messages with the text, or the first text part, of one message changed."""
    content = messages[index]["content"]
    if isinstance(content, str):
        changed: Any = change(content)
    else:
        first = next(position for position, part in enumerate(content) if _is_text(part))
        part = {**content[first], "text": change(content[first]["text"])}
        changed = [*content[:first], part, *content[first + 1 :]]
    return [*messages[:index], {**messages[index], "content": changed}, *messages[index + 1 :]]
