"""Parses the `chat` objects and messages that clients send (the history tree, or a flat list).

Invalid input raises invalid_request with the path of the member as `param`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gatewayd.chats.json_limits import MAX_MEMBER_VALUES, check_json, invalid_field
from gatewayd.chats.records import ITEM_KINDS, Message
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.text import MAX_STORED_DEPTH
from gatewayd.time_slices import LoopPacer

MAX_ID_CHARACTERS: Final = 255
MAX_TITLE_CHARACTERS: Final = 1000
MAX_ROLE_CHARACTERS: Final = 64
MAX_TIMESTAMP: Final = 2**53
MAX_MESSAGES: Final = 10_000
"""Maximum number of messages of a chat, in all its branches."""

UNTITLED: Final = "New Chat"

# Members of a message that have their own field in `Message` or are derived from others.
_FIELDS: Final = frozenset({"id", "parentId", "childrenIds", "role", "content", "done", "timestamp"})
_OWN: Final = frozenset({"title", "history", "messages"})


@dataclass(frozen=True, slots=True)
class MessageNode:
    """The parsed fields of one message.

    `values` holds the `Message` fields that the client gave. An empty `id` means that a new one is needed.
    """

    id: str
    values: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    items: dict[str, list[Any]] = field(default_factory=dict)

    def fresh(self, now: int) -> Message:
        """Return a new message; the default role is `assistant` with a `model`, else `user`."""
        made = Message(
            id=self.id,
            parent_id=None,
            role="assistant" if "model" in self.attributes else "user",
            timestamp=now,
        )
        return self.merged(made)

    def merged(self, message: Message) -> Message:
        """Return a message with the given fields merged over it."""
        items = {kind: kept for kind, kept in {**message.items, **self.items}.items() if kept}
        return replace(
            message, **self.values, attributes={**message.attributes, **self.attributes}, items=items
        )


@dataclass(frozen=True, slots=True)
class ChatDocument:
    """The parsed fields of a `chat` object; None means that the client did not send the field.

    `is_linear` is set when the nodes come from `messages` alone: each follows the previous one.
    """

    title: str | None = None
    head: dict[str, Any] = field(default_factory=dict)
    current_id: str | None = None
    nodes: tuple[MessageNode, ...] = ()
    is_linear: bool = False


async def read_document(value: Any, where: str = "chat") -> ChatDocument:
    """Parse a `chat` object; raise invalid_request with the name of a bad field.

    `messages` is used only without `history.messages`, because it repeats one branch of the tree.
    """
    if not isinstance(value, Mapping):
        raise invalid_field(where, "expected an object")
    head = {name: member for name, member in value.items() if name not in _OWN}
    check_json(head, where)
    title = read_title(value.get("title"), f"{where}.title")
    history = value.get("history")
    if history is not None and not isinstance(history, Mapping):
        raise invalid_field(f"{where}.history", "expected an object")
    messages = value.get("messages")
    if messages is not None and not isinstance(messages, list):
        raise invalid_field(f"{where}.messages", "expected a list")
    tree = (history or {}).get("messages")
    current_id = read_id((history or {}).get("currentId"), f"{where}.history.currentId")
    if tree is None and messages:
        return ChatDocument(
            title, head, current_id, await _read_list(messages, f"{where}.messages"), is_linear=True
        )
    return ChatDocument(title, head, current_id, await _read_tree(tree, f"{where}.history.messages"))


async def read_node(value: Any, where: str, node_id: str | None = None) -> MessageNode:
    """Parse one message; `node_id` is its key in the tree."""
    if not isinstance(value, Mapping):
        raise invalid_field(where, "expected an object")
    own_id = read_id(value.get("id"), f"{where}.id")
    if node_id is not None and own_id not in (None, node_id):
        raise invalid_field(f"{where}.id", "it differs from the key of the message")
    others = {
        name: member for name, member in value.items() if name not in _FIELDS and name not in ITEM_KINDS
    }
    check_json(others, where)
    items = {kind: await _read_items(value[kind], f"{where}.{kind}") for kind in ITEM_KINDS if kind in value}
    return MessageNode(node_id or own_id or "", _read_values(value, where), others, items)


def read_id(value: Any, where: str) -> str | None:
    """Parse the id of a message; return None for null and an empty text."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise invalid_field(where, "expected text")
    if len(value) > MAX_ID_CHARACTERS:
        raise invalid_field(where, f"it is longer than {MAX_ID_CHARACTERS} characters")
    check_json(value, where)
    return value


def read_title(value: Any, where: str) -> str | None:
    """Parse the title of a chat; return UNTITLED for a blank title and None for null."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise invalid_field(where, "expected text")
    check_json(value, where)
    title = value.strip()
    if len(title) > MAX_TITLE_CHARACTERS:
        raise invalid_field(where, f"it is longer than {MAX_TITLE_CHARACTERS} characters")
    return title or UNTITLED


async def link_messages(
    document: ChatDocument, branch: Sequence[Message], new_id: Callable[[], str]
) -> ChatDocument:
    """Return a document whose flat list of messages has ids and parents.

    `branch` holds the stored messages up to the current one. A message without an id gets the id at the same
    position of `branch` while the roles match. After the first mismatch all messages without an id are new.
    """
    if not document.is_linear:
        return document
    nodes: list[MessageNode] = []
    follows = True
    pace = LoopPacer()
    for position, node in enumerate(document.nodes):
        await pace.turn()
        stored = branch[position] if follows and position < len(branch) else None
        follows = stored is not None and _may_be(node, stored)
        known = stored.id if stored is not None and follows else ""
        values = dict(node.values)
        values.setdefault("parent_id", nodes[-1].id if nodes else None)
        nodes.append(replace(node, id=node.id or known or new_id(), values=values))
    return replace(document, nodes=tuple(nodes), current_id=document.current_id or nodes[-1].id)


def _may_be(node: MessageNode, stored: Message) -> bool:
    return node.id == stored.id if node.id else node.values.get("role", stored.role) == stored.role


async def _read_tree(value: Any, where: str) -> tuple[MessageNode, ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise invalid_field(where, "expected an object")
    _check_count(len(value), where)
    nodes = []
    pace = LoopPacer()
    for key, member in value.items():
        await pace.turn()
        node_id = read_id(key, where)
        if node_id is None:
            raise invalid_field(where, "a message has an empty id")
        nodes.append(await read_node(member, f"{where}.{node_id}", node_id))
    return tuple(nodes)


async def _read_list(values: list[Any], where: str) -> tuple[MessageNode, ...]:
    _check_count(len(values), where)
    nodes = []
    known: set[str] = set()
    pace = LoopPacer()
    for position, value in enumerate(values):
        await pace.turn()
        node = await read_node(value, f"{where}.{position}")
        nodes.append(node)
        if node.id and node.id in known:
            raise invalid_field(f"{where}.{position}.id", "another message of the list has the same id")
        known.add(node.id)
    return tuple(nodes)


def _check_count(messages: int, where: str) -> None:
    if messages > MAX_MESSAGES:
        raise GatewayError(
            ErrorKind.TOO_LARGE,
            f"cannot accept {where}: there are more than {MAX_MESSAGES} messages",
            param=where,
        )


def _read_values(value: Mapping[str, Any], where: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if "parentId" in value:
        values["parent_id"] = read_id(value["parentId"], f"{where}.parentId")
    if value.get("role") is not None:
        values["role"] = _read_role(value["role"], f"{where}.role")
    if "content" in value:
        values |= read_content(value["content"], f"{where}.content")
    if "done" in value:
        values["done"] = _read_done(value["done"], f"{where}.done")
    if value.get("timestamp") is not None:
        values["timestamp"] = _read_timestamp(value["timestamp"], f"{where}.timestamp")
    return values


def read_content(value: Any, where: str) -> dict[str, Any]:
    """Parse the `content` of a message into `content` and `parts`; null becomes an empty text."""
    check_json(value, where)
    if isinstance(value, list) and all(isinstance(part, dict) for part in value):
        return {"content": "", "parts": value}
    if value is not None and not isinstance(value, str):
        raise invalid_field(where, "expected text or a list of parts")
    return {"content": value or "", "parts": None}


def _read_role(value: Any, where: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ROLE_CHARACTERS:
        raise invalid_field(where, f"expected text of 1 to {MAX_ROLE_CHARACTERS} characters")
    check_json(value, where)
    return value


def _read_done(value: Any, where: str) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise invalid_field(where, "expected true or false")
    return value


def _read_timestamp(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TIMESTAMP:
        raise invalid_field(where, "expected a time in seconds")
    return int(value)


async def _read_items(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid_field(where, "expected a list")
    pace = LoopPacer()
    for place, member in enumerate(value):
        await pace.turn()
        check_json(member, f"{where}.{place}", MAX_MEMBER_VALUES, MAX_STORED_DEPTH)
    return value
