"""Transcript of a stored chat: messages with their status, citations and errors as text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gatewayctl.events.citations import citations, is_execution
from gatewayctl.wire.stored_chats import StoredChatDetail, StoredMessage

INDENT: Final = "  "


def transcript(chat: StoredChatDetail) -> Iterator[str]:
    """Yield the lines of a chat: its title and attributes, then its messages.

    If a message has several answers, each of them and its successors are indented one step further.
    """
    yield chat.title
    yield f"chat {chat.id} of {chat.user or chat.user_id}, {_facts(chat)}"
    depths = _depths(chat.messages)
    for message in chat.messages:
        yield ""
        margin = INDENT * depths[message.id]
        yield from (f"{margin}{line}".rstrip() for line in message_lines(message))


def message_lines(message: StoredMessage) -> Iterator[str]:
    """Yield the lines of one message."""
    facts = [message.role, message.model, message.created_at, message.id]
    head = INDENT.join(fact for fact in facts if fact)
    yield head if message.current else f"{head}{INDENT}(another branch)"
    for status in message.status:
        yield f"{INDENT}. {_status(status)}"
    yield from (f"{INDENT}{line}" for line in message.content.splitlines())
    for number, cited in enumerate(citations(message.sources), start=1):
        yield f"{INDENT}[{number}] {cited}"
    for source in filter(is_execution, message.sources):
        yield f"{INDENT}code: {_name(source, 'name', 'id')}"
    for file in message.files:
        yield f"{INDENT}file: {_name(file, 'name', 'filename', 'id', 'url')}"
    if message.embeds:
        yield f"{INDENT}{len(message.embeds)} embeds"
    if message.error:
        yield f"{INDENT}error: {message.error}"
    elif message.done is False:
        yield f"{INDENT}(not finished)"


def _depths(messages: Sequence[StoredMessage]) -> Mapping[str, int]:
    """Return the number of branchings above each message; parents come before their children."""
    answers: dict[str | None, int] = {}
    for message in messages:
        answers[message.parent_id] = answers.get(message.parent_id, 0) + 1
    depths: dict[str, int] = {}
    for message in messages:
        above = 0 if message.parent_id is None else depths.get(message.parent_id, 0)
        depths[message.id] = above + (answers[message.parent_id] > 1)
    return depths


def _facts(chat: StoredChatDetail) -> str:
    facts = [f"changed {chat.updated_at}" if chat.updated_at else ""]
    facts += [word for word, is_so in (("archived", chat.archived), ("pinned", chat.pinned)) if is_so]
    facts += [f"tags {' '.join(chat.tags)}" if chat.tags else "", f"{len(chat.messages)} messages"]
    return ", ".join(fact for fact in facts if fact)


def _status(status: Any) -> str:
    summary = _name(status, "description", "action")
    return f"{summary} (done)" if isinstance(status, Mapping) and status.get("done") is True else summary


def _name(value: Any, *names: str) -> str:
    """Return the first of these members that is a text, or the value as JSON if none is."""
    if isinstance(value, Mapping):
        for name in names:
            if isinstance(value.get(name), str) and value[name]:
                return str(value[name])
    return json.dumps(value, ensure_ascii=False)
