"""Renders stored chats for clients: the record, the history tree and the current branch."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.chats.records import Chat, Message, MessageLink
from gatewayd.time_slices import LoopPacer


async def render_chat(chat: Chat, messages: Sequence[Message]) -> dict[str, Any]:
    """Render a whole chat; `chat.messages` is the branch to the current message."""
    nodes, current_id = await render_history(messages, chat.current_id)
    head = render_head(chat)
    history = {"messages": nodes, "currentId": current_id}
    return {
        **head,
        "chat": {**head["chat"], "history": history, "messages": _walk_branch(nodes, current_id)},
        "current_message_id": current_id,
    }


def render_head(chat: Chat) -> dict[str, Any]:
    """Render a chat without its messages."""
    return {
        "id": chat.id,
        "user_id": chat.user_id,
        "title": chat.title,
        "chat": {**chat.head, "title": chat.title},
        "updated_at": chat.updated_at,
        "created_at": chat.created_at,
        "last_read_at": chat.last_read_at,
        "share_id": chat.share_id,
        "archived": chat.archived,
        "pinned": chat.pinned,
        "meta": {**chat.meta, "tags": list(chat.tags)},
        "folder_id": chat.folder_id,
        "current_message_id": chat.current_id,
    }


def render_list_item(chat: Chat) -> dict[str, Any]:
    """Render a chat as an element of a list."""
    return {
        "id": chat.id,
        "title": chat.title,
        "updated_at": chat.updated_at,
        "created_at": chat.created_at,
        "last_read_at": chat.last_read_at,
    }


def render_branch(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Render consecutive messages, the root first."""
    ids = [message.id for message in messages]
    return [
        render_message(message, ids[position - 1] if position else None, ids[position + 1 : position + 2])
        for position, message in enumerate(messages)
    ]


def render_message(message: Message, parent_id: str | None, children: Sequence[str]) -> dict[str, Any]:
    """Render one message with its parent and children."""
    rendered: dict[str, Any] = {
        "id": message.id,
        "parentId": parent_id,
        "childrenIds": list(children),
        "role": message.role,
        "content": message.content if message.parts is None else message.parts,
        "timestamp": message.timestamp,
    }
    if message.done is not None:
        rendered["done"] = message.done
    return {**message.attributes, **message.items, **rendered}


async def render_history(
    messages: Sequence[Message], current_id: str | None
) -> tuple[dict[str, dict[str, Any]], str | None]:
    """Return the messages by id, in the order of creation, and the id of the current one.

    If `current_id` names no message, the last one is current. A message whose parent is missing becomes a
    root. Cycles are cut, so that a walk along the parents always ends.
    """
    pace = LoopPacer()
    parents = acyclic_parents(messages)
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
    """Return the id of the current message: the last one if `current_id` names no message."""
    if any(message.id == current_id for message in messages):
        return current_id
    return messages[-1].id if messages else None


def acyclic_parents(messages: Sequence[Message] | Sequence[MessageLink]) -> dict[str, str | None]:
    """Return the parents of messages by their ids; a missing parent and one that closes a cycle is None."""
    named = {message.id: message.parent_id for message in messages}
    parents = {message_id: parent if parent in named else None for message_id, parent in named.items()}
    acyclic: set[str] = set()
    for message_id in parents:
        walked: set[str] = set()
        at: str | None = message_id
        while at is not None and at not in acyclic and at not in walked:
            walked.add(at)
            at = parents[at]
        if at is not None and at in walked:
            parents[at] = None
        acyclic |= walked
    return parents


def _walk_branch(nodes: Mapping[str, dict[str, Any]], current_id: str | None) -> list[dict[str, Any]]:
    branch = []
    while current_id is not None:
        branch.append(nodes[current_id])
        current_id = nodes[current_id]["parentId"]
    return branch[::-1]
