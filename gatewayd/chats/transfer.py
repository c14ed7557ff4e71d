"""Export, import and cloning of chats as whole records."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, runtime_checkable

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.chats.access import require_chat
from gatewayd.chats.folder_paths import FOLDER_PATH, FolderPaths, ImportedPlaces, may_use_folders
from gatewayd.chats.interfaces import ChatStore
from gatewayd.chats.json_limits import check_json, invalid_field
from gatewayd.chats.message_merge import new_chat
from gatewayd.chats.parser import MAX_TIMESTAMP, MAX_TITLE_CHARACTERS, read_document
from gatewayd.chats.records import Chat, ChatQuery, NewChat, Tag
from gatewayd.chats.service import Chats, Record
from gatewayd.chats.tags import make_tag
from gatewayd.errors import ErrorKind, GatewayError

MAX_IMPORTED_CHATS: Final = 10_000


@runtime_checkable
class ImportRecords(Protocol):
    """Records to import, read one at a time because together they may exceed the memory."""

    def __len__(self) -> int:
        """Return the number of records."""
        ...

    def each(self) -> AsyncIterator[Any]:
        """Yield the records in order; may be called again."""
        ...


class ChatTransfer:
    """Imports, exports and clones chats."""

    def __init__(
        self, chats: Chats, store: ChatStore, folders: FolderPaths, clock: ids.Clock = ids.now
    ) -> None:
        self._chats = chats
        self._store = store
        self._folders = folders
        self._clock = clock

    async def take(self, actor: Actor, forms: Any, owner_id: str | None = None) -> Sequence[Chat]:
        """Import records, all or none, and return the created chats with their new ids.

        Parameters and errors are those of `check`. All records are checked before the first is stored, and
        readers find no chat before all are stored. A failed import leaves nothing; after a crash the next
        start deletes the leftovers. Other writers are not blocked. The same records imported twice make two
        sets of chats. Chats go into their folders, which are made before, if the actor may use folders.
        """
        made: list[Chat] = []

        async def collected(chats: AsyncIterator[NewChat]) -> AsyncIterator[NewChat]:
            async for each in chats:
                made.append(_without_contents(each))
                yield each

        user_id, places = owner_id or actor.user_id, ImportedPlaces()
        await self._check(actor, forms, owner_id, places)
        if may_use_folders(actor):
            await self._folders.make(user_id, places)
        await self._store.add_all(collected(_parse_all(user_id, forms, self._clock(), places)))
        return made

    async def check(self, actor: Actor, forms: Any, owner_id: str | None = None) -> Sequence[Chat]:
        """Return the chats that an import would create, without storing them.

        `forms` is `ImportRecords` of `{"chat", "meta"?, "pinned"?, "archived"?, "created_at"?, "updated_at"?,
        "folder_id"?, "folder_path"?}`, the form that `give` exports. Needs the permission chat.import. Only
        administrators may name another owner; others get forbidden. Raises invalid_request that names the
        bad member (`chats.0.chat...`), and too_large.
        """
        return await self._check(actor, forms, owner_id, ImportedPlaces())

    async def _check(
        self, actor: Actor, forms: Any, owner_id: str | None, places: ImportedPlaces
    ) -> Sequence[Chat]:
        require_chat(actor, "import")
        user_id = actor.user_id if owner_id is None else owner_id
        if user_id != actor.user_id and not actor.is_admin:
            raise GatewayError(
                ErrorKind.FORBIDDEN, "cannot import chats for another user: requires an administrator"
            )
        if not isinstance(forms, ImportRecords):
            raise invalid_field("chats", "expected a list")
        if len(forms) > MAX_IMPORTED_CHATS:
            raise invalid_field("chats", f"there are more than {MAX_IMPORTED_CHATS}")
        made = []
        async for each in _parse_all(user_id, forms, self._clock(), places):
            await self._store.check(each.messages)
            made.append(_without_contents(each))
        return made

    def records(self, chats: Sequence[Chat]) -> AsyncIterator[Record]:
        """Return the records of stored chats, one after the other."""
        return self._records(chats)

    async def give(self, actor: Actor, chat_id: str) -> Record:
        """Return the record of a chat for export; needs the permission chat.export."""
        require_chat(actor, "export")
        return await self._placed(await self._chats.get(actor, chat_id), {})

    async def give_all(self, actor: Actor, query: ChatQuery) -> AsyncIterator[Record]:
        """Return the records of the actor's own chats, one after the other; needs chat.export."""
        require_chat(actor, "export")
        found, _ = await self._chats.find(actor, query)
        return self._exported(found)

    async def give_everything(self, actor: Actor, user_id: str | None = None) -> AsyncIterator[Record]:
        """Return the records of the chats of one user or of all; forbidden unless the actor may read them."""
        self._chats.access.require_all(actor)
        found, _ = await self._store.list(ChatQuery(user_id=user_id))
        return self._exported(found)

    async def clone(self, actor: Actor, chat_id: str, title: str | None = None) -> Record:
        """Copy a chat that the actor may read into a new chat of the actor, and return the copy's record."""
        return await self._chats.copy(actor, chat_id, title)

    async def clone_shared(self, actor: Actor, share_id: str) -> Record:
        """Copy a shared snapshot into a new chat of the actor."""
        record = (await self._chats.access.shared(share_id)).document
        name = f"Clone of {record['title']}"[:MAX_TITLE_CHARACTERS]
        document = {**record["chat"], "title": name, "originalChatId": record["id"]}
        document["branchPointMessageId"] = record["chat"]["history"]["currentId"]
        return await self._chats.create(actor, document)

    async def _exported(self, chats: Sequence[Chat]) -> AsyncIterator[Record]:
        paths = dict[str, Mapping[str, Sequence[str]]]()
        async for record in self._records(chats):
            yield await self._placed(record, paths)

    async def _placed(self, record: Record, paths: dict[str, Mapping[str, Sequence[str]]]) -> Record:
        """Return a record with the names of its folders; `paths` keeps those of each user."""
        owner = record["user_id"]
        if record["folder_id"] and owner not in paths:
            paths[owner] = await self._folders.of_user(owner)
        path = paths[owner].get(record["folder_id"]) if record["folder_id"] else None
        return {**record, FOLDER_PATH: path} if path else record

    async def _records(self, chats: Sequence[Chat]) -> AsyncIterator[Record]:
        for chat in chats:
            found = await self._chats.find_record(chat.id)
            if found is not None:
                yield found


def _without_contents(new: NewChat) -> Chat:
    """Return a chat with its tags, without `head` and `meta`, which may be large."""
    return replace(new.chat, head={}, meta={}, tags=tuple(sorted({tag.id for tag in new.tags})))


async def _parse_all(
    user_id: str, forms: ImportRecords, now: int, places: ImportedPlaces
) -> AsyncIterator[NewChat]:
    position = 0
    async for form in forms.each():
        yield await _parse(user_id, form, f"chats.{position}", now, places)
        position += 1


async def _parse(user_id: str, form: Any, where: str, now: int, places: ImportedPlaces) -> NewChat:
    if not isinstance(form, Mapping):
        raise invalid_field(where, "expected an object")
    meta = form.get("meta")
    if meta is not None and not isinstance(meta, dict):
        raise invalid_field(f"{where}.meta", "expected an object")
    check_json(meta, f"{where}.meta")
    chat, messages = await new_chat(user_id, await read_document(form.get("chat"), f"{where}.chat"), now)
    created_at = _read_time(form, "created_at", where, now)
    chat = replace(
        chat,
        pinned=_read_flag(form, "pinned", where),
        archived=_read_flag(form, "archived", where),
        folder_id=places.of(form, where),
        meta={name: value for name, value in (meta or {}).items() if name != "tags"},
        created_at=created_at,
        updated_at=_read_time(form, "updated_at", where, created_at),
    )
    return NewChat(chat, messages, _read_tags(user_id, (meta or {}).get("tags"), f"{where}.meta.tags"))


def _read_tags(user_id: str, names: Any, where: str) -> Sequence[Tag]:
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise invalid_field(where, "expected a list of names")
    return [make_tag(user_id, name) for name in names]


def _read_flag(form: Mapping[str, Any], name: str, where: str) -> bool:
    value = form.get(name)
    if value is not None and not isinstance(value, bool):
        raise invalid_field(f"{where}.{name}", "expected true or false")
    return bool(value)


def _read_time(form: Mapping[str, Any], name: str, where: str, default: int) -> int:
    value = form.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_TIMESTAMP:
        raise invalid_field(f"{where}.{name}", "expected a time in seconds")
    return value
