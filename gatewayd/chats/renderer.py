"""Renders stored chats as clients know them: the record, the history tree, the branch that is shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.chats.records import Chat, Message
from gatewayd.time_slices import LoopPacer


async def render_chat(chat: Chat, messages: Sequence[Message]) -> dict[str, Any]:
    """Return a whole chat; `chat.messages` is the branch to the current message."""
    nodes, current_id = await render_history(messages, chat.current_id)
    return {
        "id": chat.id,
        "user_id": chat.user_id,
        "title": chat.title,
        "chat": {
            **chat.head,
            "title": chat.title,
            "history": {"messages": nodes, "currentId": current_id},
            "messages": _line(nodes, current_id),
        },
        "updated_at": chat.updated_at,
        "created_at": chat.created_at,
        "last_read_at": chat.last_read_at,
        "share_id": chat.share_id,
        "archived": chat.archived,
        "pinned": chat.pinned,
        "meta": {**chat.meta, "tags": list(chat.tags)},
        "folder_id": chat.folder_id,
        "current_message_id": current_id,
    }


def render_list_item(chat: Chat) -> dict[str, Any]:
    """Return what lists tell of a chat."""
    return {
        "id": chat.id,
        "title": chat.title,
        "updated_at": chat.updated_at,
        "created_at": chat.created_at,
        "last_read_at": chat.last_read_at,
    }


def render_branch(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages that follow each other, the root first."""
    ids = [message.id for message in messages]
    return [
        render_message(message, ids[place - 1] if place else None, ids[place + 1 : place + 2])
        for place, message in enumerate(messages)
    ]


def render_message(message: Message, parent_id: str | None, children: Sequence[str]) -> dict[str, Any]:
    """Return one message with its place in the tree."""
    shown: dict[str, Any] = {
        "id": message.id,
        "parentId": parent_id,
        "childrenIds": list(children),
        "role": message.role,
        "content": message.content if message.parts is None else message.parts,
        "timestamp": message.timestamp,
    }
    if message.done is not None:
        shown["done"] = message.done
    return {**message.attributes, **message.items, **shown}


async def render_history(
    messages: Sequence[Message], current_id: str | None
) -> tuple[dict[str, dict[str, Any]], str | None]:
    """Return the messages by id, in the order of their making, and which is the current one.

    That is the last one made where `current_id` names none. A message whose parent is missing is a root, and
    a ring of messages is cut, so that who walks along the parents always arrives.
    """
    pace = LoopPacer()
    parents = _parents(messages)
    children: dict[str, list[str]] = {message.id: [] for message in messages}
    await pace.turn()
    for message_id, parent_id in parents.items():
        if parent_id is not None:
            children[parent_id].append(message_id)
    nodes = {}
    for each in messages:
        await pace.turn()
        nodes[each.id] = render_message(each, parents[each.id], children[each.id])
    return nodes, current_of(messages, current_id)


def current_of(messages: Sequence[Message], current_id: str | None) -> str | None:
    """Return the id of the current message: the last one where `current_id` names none."""
    if any(message.id == current_id for message in messages):
        return current_id
    return messages[-1].id if messages else None


def _parents(messages: Sequence[Message]) -> dict[str, str | None]:
    named = {message.id: message.parent_id for message in messages}
    parents = {message_id: parent if parent in named else None for message_id, parent in named.items()}
    sound: set[str] = set()
    for message_id in parents:
        walked: set[str] = set()
        at: str | None = message_id
        while at is not None and at not in sound and at not in walked:
            walked.add(at)
            at = parents[at]
        if at is not None and at in walked:
            parents[at] = None
        sound |= walked
    return parents


def _line(nodes: Mapping[str, dict[str, Any]], current_id: str | None) -> list[dict[str, Any]]:
    line = []
    while current_id is not None:
        line.append(nodes[current_id])
        current_id = nodes[current_id]["parentId"]
    return line[::-1]
