"""Chats with the tree of their messages, folders of chats, and shared copies.

Newer versions keep each message in a row of its own beside the JSON of the chat; the row counts.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.texts import clean, clean_object
from gatewayd.chats.folders import MAX_FOLDER_DATA_BYTES, MAX_FOLDER_META_BYTES
from gatewayd.chats.json_limits import check_json
from gatewayd.chats.parser import (
    MAX_MESSAGES,
    MAX_ROLE_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    UNTITLED,
    read_id,
    read_node,
)
from gatewayd.chats.records import ITEM_KINDS, Chat, ChatFolder, Message, NewChat
from gatewayd.chats.tags import MAX_TAG_CHARACTERS, make_tag
from gatewayd.errors import GatewayError, invalid
from gatewayd.imports.accounts import check_id
from gatewayd.imports.rows import ForeignRow, clean_value, plain_text, read_moment, try_read
from gatewayd.imports.trees import mend_tree, without_nodes
from gatewayd.text import MAX_CHAT_DEPTH

MAX_MESSAGE_REMARKS: Final = 5
"""Messages of one chat that a report names; further ones are counted."""

KEPT_LEVELS: Final = 60
"""Levels of a member of a chat or message that are kept; deeper ones become text."""

COLUMNS: Final = {
    "role": "role",
    "parent_id": "parentId",
    "content": "content",
    "output": "output",
    "model_id": "model",
    "files": "files",
    "sources": "sources",
    "embeds": "embeds",
    "done": "done",
    "status_history": "statusHistory",
    "error": "error",
    "usage": "usage",
    "context_summary": "contextSummary",
    "created_at": "timestamp",
}
"""The member of a message for each column of its row."""

JSON_COLUMNS: Final = frozenset(
    {"content", "output", "files", "sources", "embeds", "status_history", "error", "usage"}
)
OWN_MEMBERS: Final = frozenset({"title", "history", "messages"})

CheckMessage = Callable[[Message], Awaitable[None]]
"""Raises too_large for a message that cannot be stored."""


@dataclass(frozen=True, slots=True)
class ForeignChat:
    """A chat to store, and what differs from the one there."""

    new: NewChat
    changes: tuple[str, ...]


async def read_chat(
    row: ForeignRow,
    message_rows: AsyncIterator[Mapping[str, Any]],
    tag_names: Mapping[str, str],
    owner_id: str,
    check: CheckMessage,
) -> ForeignChat:
    """Return a chat; raise invalid_request if its id, its JSON or the number of its messages is unusable.

    `tag_names` are the names of the tags of its user by id. A message that cannot be stored is left out, and
    its answers follow the message before it.
    """
    changes: list[str] = []
    chat_id = check_id(row.text("id"))
    document = row.object("chat", MAX_CHAT_DEPTH)
    created_at = row.moment("created_at")
    nodes = _nodes_of(document)
    await _lay_rows(nodes, chat_id, message_rows)
    if len(nodes) > MAX_MESSAGES:
        raise invalid(f"it has more than {MAX_MESSAGES} messages", param="messages")
    messages = await _messages(nodes, created_at, check, changes)
    meta = row.optional("meta", changes)
    tags = meta.pop("tags", None)
    last_read_at = row.moment("last_read_at") or None
    chat = Chat(
        id=chat_id,
        user_id=owner_id,
        title=_title(row.text("title"), document),
        head=_head(document, changes),
        current_id=_current(row, document, messages),
        archived=row.flag("archived"),
        pinned=row.flag("pinned"),
        folder_id=row.text("folder_id") or None,
        meta=try_read(lambda: clean_object(meta, "meta"), changes, {}),
        last_read_at=last_read_at,
        updated_at=row.moment("updated_at", created_at),
        created_at=created_at,
    )
    made = []
    for each in tags if isinstance(tags, list) else []:
        name = tag_names.get(plain_text(each), plain_text(each))[:MAX_TAG_CHARACTERS]
        tag = try_read(partial(make_tag, owner_id, name), changes, None)
        made += [tag] if tag is not None else []
    return ForeignChat(NewChat(chat, messages, made), tuple(changes))


def read_folder(row: ForeignRow, owner_id: str, now: int) -> tuple[ChatFolder, tuple[str, ...]]:
    """Return a folder, with its parent there, and what differs; raise invalid_request without id or name."""
    changes: list[str] = []
    created_at = row.moment("created_at", now)
    limits = {"meta": MAX_FOLDER_META_BYTES, "data": MAX_FOLDER_DATA_BYTES}
    objects = {name: try_read(partial(_limited, row, name, limits[name]), changes, {}) for name in limits}
    folder = ChatFolder(
        id=check_id(row.text("id")),
        user_id=owner_id,
        name=clean(row.text("name"), "name"),
        parent_id=row.text("parent_id") or None,
        is_expanded=row.flag("is_expanded"),
        meta=objects["meta"],
        data=objects["data"],
        updated_at=row.moment("updated_at", created_at),
        created_at=created_at,
    )
    return folder, tuple(changes)


def _limited(row: ForeignRow, name: str, limit: int) -> dict[str, Any]:
    value = row.object(name)
    if len(json.dumps(clean_object(value, name))) > limit:
        raise invalid(f"cannot use {name}: it is over {limit} bytes", param=name)
    return value


def _title(text: str, document: Mapping[str, Any]) -> str:
    title = (text or plain_text(document.get("title"))).strip()[:MAX_TITLE_CHARACTERS]
    return title or UNTITLED


def _head(document: Mapping[str, Any], changes: list[str]) -> dict[str, Any]:
    head = {
        name: clean_value(member, KEPT_LEVELS) for name, member in document.items() if name not in OWN_MEMBERS
    }
    try:
        check_json(head, "chat")
    except GatewayError as error:
        changes.append(f"{error.message}; only its messages are imported")
        return {}
    return head


def _current(row: ForeignRow, document: Mapping[str, Any], messages: Sequence[Message]) -> str | None:
    """Return the message that clients show: the named one if it is there, else the newest."""
    history = document.get("history")
    named = history.get("currentId") if isinstance(history, dict) else None
    known = {message.id for message in messages}
    for each in (row.text("current_message_id"), named):
        if isinstance(each, str) and each in known:
            return each
    return messages[-1].id if messages else None


def _nodes_of(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the messages of a chat by id: those of its tree, or of the flat list of the oldest versions."""
    history = document.get("history")
    tree = history.get("messages") if isinstance(history, dict) else None
    if isinstance(tree, dict) and tree:
        return {key: dict(node) for key, node in tree.items() if key and isinstance(node, dict)}
    nodes: dict[str, dict[str, Any]] = {}
    last = None
    flat = document.get("messages")
    for node in flat if isinstance(flat, list) else []:
        if isinstance(node, dict):
            key = plain_text(node.get("id")) or ids.new_id()
            nodes[key] = {"parentId": last, **node}
            last = key
    return nodes


async def _lay_rows(
    nodes: dict[str, dict[str, Any]], chat_id: str, rows: AsyncIterator[Mapping[str, Any]]
) -> None:
    """Lay the columns of the messages' own rows over the messages; further rows are further messages."""
    prefix = f"{chat_id}-"
    async for values in rows:
        row = ForeignRow(values)
        message_id = row.text("id").removeprefix(prefix)
        node = nodes.setdefault(message_id, {}) if message_id else {}
        for column, member in COLUMNS.items():
            if values.get(column) is None:
                continue
            if column in JSON_COLUMNS:
                value = try_read(partial(row.json, column), [], None)
            else:
                value = row.flag(column) if column == "done" else values[column]
            if value is not None:
                node[member] = value


async def _messages(
    nodes: Mapping[str, Mapping[str, Any]], created_at: int, check: CheckMessage, changes: list[str]
) -> list[Message]:
    parents = {key: _parent(node) for key, node in nodes.items()}
    mended, cut = mend_tree(parents)
    if cut:
        changes.append(f"{len(cut)} of its messages follow a missing one or themselves: they are first ones")
    kept: dict[str, Message] = {}
    refused: dict[str, str] = {}
    for key, node in nodes.items():
        try:
            read = await read_node(_plain(node, created_at), "message", read_id(key, "id"))
            message = read.fresh(created_at)
            await check(message)
            kept[key] = message
        except GatewayError as error:
            refused[key] = error.message
    for key, reason in list(refused.items())[:MAX_MESSAGE_REMARKS]:
        changes.append(f"message {plain_text(key)[:64]} is left out: {reason}")
    if len(refused) > MAX_MESSAGE_REMARKS:
        changes.append(f"{len(refused) - MAX_MESSAGE_REMARKS} further messages are left out")
    tree = without_nodes(mended, refused.keys())
    return [replace(message, parent_id=tree[key]) for key, message in kept.items()]


def _parent(node: Mapping[str, Any]) -> str | None:
    parent = node.get("parentId")
    return parent if isinstance(parent, str) and parent else None


def _plain(node: Mapping[str, Any], created_at: int) -> dict[str, Any]:
    """Return a message in the form that clients of the gateway send."""
    plain = {
        name: member if name in ITEM_KINDS else clean_value(member, KEPT_LEVELS)
        for name, member in node.items()
        if name not in {"id", "parentId", "childrenIds"}
    }
    role = plain.pop("role", None)
    if isinstance(role, str) and 0 < len(role) <= MAX_ROLE_CHARACTERS:
        plain["role"] = role
    content = plain.get("content")
    is_parts = isinstance(content, list) and all(isinstance(part, dict) for part in content)
    if content is not None and not isinstance(content, str) and not is_parts:
        plain["content"] = json.dumps(content, ensure_ascii=False)
    if not isinstance(plain.get("done"), bool):
        plain.pop("done", None)
    plain["timestamp"] = read_moment(plain.get("timestamp"), created_at)
    for kind in ITEM_KINDS:
        if not isinstance(plain.get(kind), list):
            plain.pop(kind, None)
    return plain
