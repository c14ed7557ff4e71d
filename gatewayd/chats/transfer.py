"""Chats as whole records: out by export, in by import, and copied."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, runtime_checkable

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.chats.access import require_chat
from gatewayd.chats.interfaces import ChatStore
from gatewayd.chats.merging import new_chat
from gatewayd.chats.plain import check, refused
from gatewayd.chats.reading import LATEST, MAX_TITLE, read_document
from gatewayd.chats.records import Chat, ChatQuery, Message, Tag
from gatewayd.chats.service import Chats, Record
from gatewayd.chats.tags import make_tag
from gatewayd.commits import Transactor
from gatewayd.errors import GatewayError, Kind

MAX_IMPORTED: Final = 10_000


@runtime_checkable
class Forms(Protocol):
    """Records to import, each read when its turn comes: they may be more than fit into memory."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def each(self) -> AsyncIterator[Any]:
        """Yield them in their order; may be called again."""
        ...


@dataclass(frozen=True, slots=True)
class Imported:
    """One chat to import as it is read."""

    chat: Chat
    messages: Sequence[Message]
    tags: Sequence[Tag] = field(default_factory=tuple)


class Transfer:
    """Takes chats in, gives them out, and copies them."""

    def __init__(
        self, chats: Chats, store: ChatStore, transactor: Transactor, clock: ids.Clock = ids.now
    ) -> None:
        self._chats = chats
        self._store = store
        self._transactor = transactor
        self._clock = clock

    async def take(self, actor: Actor, forms: Any, owner_id: str | None = None) -> Sequence[Chat]:
        """Import records, all or none, and return the chats that they have become, with new ids.

        `forms` is `Forms` of `{"chat", "meta"?, "pinned"?, "archived"?, "created_at"?, "updated_at"?}`,
        as `give` gives them. Takes the permission chat.import. Administrators may name another owner, others
        get forbidden. Raises invalid_request that names the member at fault (`chats.0.chat...`).
        """
        require_chat(actor, "import")
        user_id = actor.user_id if owner_id is None else owner_id
        if user_id != actor.user_id and not actor.is_admin:
            raise GatewayError(
                Kind.FORBIDDEN, "cannot import chats for another user: it takes an administrator"
            )
        if not isinstance(forms, Forms):
            raise refused("chats", "expected a list")
        if len(forms) > MAX_IMPORTED:
            raise refused("chats", f"there are more than {MAX_IMPORTED}")
        now = self._clock()
        # All are read before the first is stored: a list with a fault in it keeps nobody from writing.
        async for _ in _each(user_id, forms, now):
            pass
        made = []
        async with self._transactor.transaction():
            async for each in _each(user_id, forms, now):
                await self._store.add(each.chat, each.messages)
                for tag in each.tags:
                    await self._store.add_tag(each.chat.id, tag)
                made.append(replace(each.chat, tags=tuple(sorted({tag.id for tag in each.tags}))))
        return made

    def records(self, chats: Sequence[Chat]) -> AsyncIterator[Record]:
        """Return the records of chats that are stored, one after the other."""
        return self._records(chats)

    async def give(self, actor: Actor, chat_id: str) -> Record:
        """Return the record of a chat for keeping elsewhere; takes the permission chat.export."""
        require_chat(actor, "export")
        return await self._chats.get(actor, chat_id)

    async def give_all(self, actor: Actor, query: ChatQuery) -> AsyncIterator[Record]:
        """Return the records of the actor's own chats, one after the other; takes chat.export."""
        require_chat(actor, "export")
        found, _ = await self._chats.find(actor, query)
        return self._records(found)

    async def give_everything(self, actor: Actor, user_id: str | None = None) -> AsyncIterator[Record]:
        """Return the records of the chats of any user, or of all; forbidden to who may not read them."""
        self._chats.access.require_all(actor)
        found, _ = await self._store.list(ChatQuery(user_id=user_id))
        return self._records(found)

    async def clone(self, actor: Actor, chat_id: str, title: str | None = None) -> Record:
        """Copy a chat that the actor may read into one of its own, and return the copy's record."""
        return await self._chats.copy(actor, chat_id, title)

    async def clone_shared(self, actor: Actor, share_id: str) -> Record:
        """Copy what was shared under an id into a chat of the actor's own."""
        record = (await self._chats.access.shared(share_id)).document
        name = f"Clone of {record['title']}"[:MAX_TITLE]
        document = {**record["chat"], "title": name, "originalChatId": record["id"]}
        document["branchPointMessageId"] = record["chat"]["history"]["currentId"]
        return await self._chats.create(actor, document)

    async def _records(self, chats: Sequence[Chat]) -> AsyncIterator[Record]:
        for chat in chats:
            found = await self._chats.find_record(chat.id)
            if found is not None:
                yield found


async def _each(user_id: str, forms: Forms, now: int) -> AsyncIterator[Imported]:
    place = 0
    async for form in forms.each():
        yield await _read(user_id, form, f"chats.{place}", now)
        place += 1


async def _read(user_id: str, form: Any, where: str, now: int) -> Imported:
    if not isinstance(form, Mapping):
        raise refused(where, "expected an object")
    meta = form.get("meta")
    if meta is not None and not isinstance(meta, dict):
        raise refused(f"{where}.meta", "expected an object")
    check(meta, f"{where}.meta")
    chat, messages = await new_chat(user_id, await read_document(form.get("chat"), f"{where}.chat"), now)
    created_at = _read_time(form, "created_at", where, now)
    chat = replace(
        chat,
        pinned=_read_flag(form, "pinned", where),
        archived=_read_flag(form, "archived", where),
        meta={name: value for name, value in (meta or {}).items() if name != "tags"},
        created_at=created_at,
        updated_at=_read_time(form, "updated_at", where, created_at),
    )
    return Imported(chat, messages, _read_tags(user_id, (meta or {}).get("tags"), f"{where}.meta.tags"))


def _read_tags(user_id: str, names: Any, where: str) -> Sequence[Tag]:
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise refused(where, "expected a list of names")
    return [make_tag(user_id, name) for name in names]


def _read_flag(form: Mapping[str, Any], name: str, where: str) -> bool:
    value = form.get(name)
    if value is not None and not isinstance(value, bool):
        raise refused(f"{where}.{name}", "expected true or false")
    return bool(value)


def _read_time(form: Mapping[str, Any], name: str, where: str, default: int) -> int:
    value = form.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LATEST:
        raise refused(f"{where}.{name}", "expected a time in seconds")
    return value
