"""Schemas of stored chats, tags, tasks, and calls that wait for an answer."""

from collections.abc import Mapping
from typing import Any

from gatewayd.http.schemas import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    INTEGER_OR_NULL,
    OBJECT,
    SECONDS,
    TEXT,
    TEXT_OR_NULL,
    TRUE,
    listed,
    mapped,
    record,
)


def chat_element() -> dict[str, Any]:
    """Return the schema of a chat in a list."""
    return record(id=TEXT, title=TEXT, updated_at=SECONDS, created_at=SECONDS, last_read_at=INTEGER_OR_NULL)


def found_element() -> dict[str, Any]:
    """Return the schema of a chat in the reply to a search, with the message that matched."""
    return record(
        id=TEXT,
        title=TEXT,
        updated_at=SECONDS,
        created_at=SECONDS,
        last_read_at=INTEGER_OR_NULL,
        message_id=TEXT_OR_NULL,
        snippet=TEXT_OR_NULL,
    )


def favourite() -> dict[str, Any]:
    """Return the schema of a favourite message; `content` is its beginning."""
    return record(
        chat_id=TEXT,
        title=TEXT,
        folder_id=TEXT_OR_NULL,
        message_id=TEXT,
        role=TEXT,
        model=TEXT,
        content=TEXT,
        timestamp=SECONDS,
    )


def folder_element() -> dict[str, Any]:
    """Return the schema of a folder in a list."""
    return record(
        id=TEXT,
        name=TEXT,
        parent_id=TEXT_OR_NULL,
        is_expanded=BOOLEAN,
        meta=OBJECT,
        created_at=SECONDS,
        updated_at=SECONDS,
    )


def folder() -> dict[str, Any]:
    """Return the schema of a folder."""
    return record(
        id=TEXT,
        name=TEXT,
        parent_id=TEXT_OR_NULL,
        is_expanded=BOOLEAN,
        meta=OBJECT,
        created_at=SECONDS,
        updated_at=SECONDS,
        user_id=TEXT,
        data=OBJECT,
    )


def shared_element() -> dict[str, Any]:
    """Return the schema of a shared chat in a list."""
    return record(
        id=TEXT,
        title=TEXT,
        updated_at=SECONDS,
        created_at=SECONDS,
        last_read_at=INTEGER_OR_NULL,
        share_id=TEXT,
    )


def message() -> dict[str, Any]:
    """Return the schema of a stored message; clients and events add further members."""
    known = record(
        {"done": BOOLEAN},
        id=TEXT,
        parentId=TEXT_OR_NULL,
        childrenIds=listed(TEXT),
        role=TEXT,
        content={"type": ["string", "array"]},
        timestamp=SECONDS,
    )
    return {**known, "additionalProperties": True}


def chat() -> dict[str, Any]:
    """Return the schema of a whole chat; clients add further members to its `chat` and `meta`."""
    history = record(messages=mapped(message), currentId=TEXT_OR_NULL)
    inner = record(title=TEXT, history=history, messages=listed(message))
    return _chat_with(inner)


def chat_head() -> dict[str, Any]:
    """Return the schema of a chat without its messages."""
    return _chat_with(record(title=TEXT))


def branch_page() -> dict[str, Any]:
    """Return the schema of a page of a branch."""
    return record(
        chat=chat_head,
        messages=listed(branch_message),
        leaf_id=TEXT_OR_NULL,
        has_earlier=BOOLEAN,
        count=INTEGER,
        event_id=TEXT,
    )


def branch_message() -> dict[str, Any]:
    """Return the schema of a message with its place in the tree."""
    known = message()
    properties = {**known["properties"], "siblingIds": listed(TEXT), "descendantCount": INTEGER}
    return {**known, "properties": properties, "required": list(known["required"])}


def removed_branch() -> dict[str, Any]:
    """Return the schema of the result of the removal of a branch."""
    return record(removed=INTEGER)


def _chat_with(inner: Mapping[str, Any]) -> dict[str, Any]:
    return record(
        {"folder_path": listed(TEXT)},
        id=TEXT,
        user_id=TEXT,
        title=TEXT,
        chat={**inner, "additionalProperties": True},
        updated_at=SECONDS,
        created_at=SECONDS,
        last_read_at=INTEGER_OR_NULL,
        share_id=TEXT_OR_NULL,
        archived=BOOLEAN,
        pinned=BOOLEAN,
        meta={**record({"tags": listed(TEXT)}), "additionalProperties": True},
        folder_id=TEXT_OR_NULL,
        current_message_id=TEXT_OR_NULL,
    )


def tag() -> dict[str, Any]:
    """Return the schema of a tag."""
    return record(id=TEXT, name=TEXT, user_id=TEXT, meta={"type": "null"})


def stop_result() -> dict[str, Any]:
    """Return the schema of the result of a stop, with a sentence."""
    return record(status=BOOLEAN, message=TEXT)


def task_ids() -> dict[str, Any]:
    """Return the schema of the tasks of a chat."""
    return record(task_ids=listed(TEXT))


def tasks() -> dict[str, Any]:
    """Return the schema of all running tasks."""
    return record(tasks=listed(TEXT))


def task_config() -> dict[str, Any]:
    """Return the schema of the task configuration: which tasks are on, and their model."""
    return record(
        TASK_MODEL=TEXT,
        ENABLE_TITLE_GENERATION=BOOLEAN,
        ENABLE_TAGS_GENERATION=BOOLEAN,
        ENABLE_FOLLOW_UP_GENERATION=BOOLEAN,
    )


def task_completion() -> dict[str, Any]:
    """Return the schema of a title, of tags or of follow-ups, as a completion."""
    spoken = record(role={"const": "assistant"}, content=TEXT)
    choice = record(
        index={"const": 0}, message=spoken, logprobs={"type": "null"}, finish_reason={"const": "stop"}
    )
    return record(id=TEXT, object={"const": "chat.completion"}, model=TEXT, choices=listed(choice))


def started_answer() -> dict[str, Any]:
    """Return the schema of the reply to a chat request whose answer is sent as events."""
    return record(status=TRUE, task_ids=listed(TEXT), task_id=TEXT, chat_id=TEXT, message_ids=listed(TEXT))


def ticket() -> dict[str, Any]:
    """Return the schema of a ticket for the event stream."""
    return record(ticket=TEXT, expires_in={"type": "integer", "description": "Seconds."})


def call() -> dict[str, Any]:
    """Return the schema of a call that waits for an answer."""
    return record(
        chat_id=TEXT,
        message_id=TEXT,
        call_id=TEXT,
        data=record(type=TEXT, data=ANYTHING),
        created_at=SECONDS,
    )


def calls() -> dict[str, Any]:
    """Return the schema of the calls that wait for an answer."""
    return record(calls=listed(call), total=INTEGER)
